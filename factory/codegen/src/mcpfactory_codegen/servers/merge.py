"""Three-way merge of generated files, and the lock file that records what was generated.

`git merge-file` merges the files in a separate directory. It needs no repository and changes none.

The text is canonical: sorted, without timestamps, host names or absolute paths. Equal input gives equal bytes,
so a diff can be reviewed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from mcpfactory_runtime.errors import McpfactoryError

_LABELS: Final = ("yours", "as it was made before", "as it is made now")
_MARKS: Final = re.compile(r"^<<<<<<< .*?^=======\r?$.*?^>>>>>>> ", re.M | re.S)
_MOST_CONFLICTS: Final = 127  # what git can count in an exit code; above, it failed
_SECONDS: Final = 60


class MergeError(McpfactoryError):
    """git could not merge at all. `hint` says what to do."""


@dataclass(frozen=True, slots=True)
class MergedText:
    """The merged text, and how many places are left to the person, between conflict marks."""

    text: str
    conflicts: int


def merge(base: str, ours: str, theirs: str) -> MergedText:
    """Merge the changes from `base` to `ours` with those from `base` to `theirs`; line endings are those of `ours`.

    Raises:
        MergeError: git is not there, or refused.
    """
    windows = "\r\n" in ours
    texts = [text.replace("\r\n", "\n") for text in (ours, base, theirs)]
    if texts[0] == texts[1]:
        merged = MergedText(texts[2], 0)
    elif texts[2] in (texts[0], texts[1]):
        merged = MergedText(texts[0], 0)
    else:
        merged = _by_git(texts)
    return MergedText(merged.text.replace("\n", "\r\n"), merged.conflicts) if windows else merged


def _by_git(texts: list[str]) -> MergedText:
    """`texts` in git's order: ours, base, theirs."""
    names = ("ours", "base", "theirs")
    labels = [part for label in _LABELS for part in ("-L", label)]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    with TemporaryDirectory(prefix="mcpfactory-merge-") as folder:
        for name, text in zip(names, texts, strict=True):
            (Path(folder) / name).write_bytes(text.encode())
        command = ["git", "merge-file", "-p", "--diff3", *labels, *names]
        try:
            ran = subprocess.run(
                command,
                cwd=folder,
                env=environ,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MergeError(f"git could not merge: {error}", "install git 2.39 or later") from None
    if not 0 <= ran.returncode <= _MOST_CONFLICTS:
        said = ran.stderr.decode(errors="replace").strip()[:200]
        raise MergeError(f"git could not merge: {said}", "move the file away, and run the update again")
    return MergedText(ran.stdout.decode(), ran.returncode)


def has_marks(text: str) -> bool:
    """Return True if the text still has conflict markers of an earlier merge."""
    return _MARKS.search(text) is not None


LOCK: Final = ".mcpfactory/lock.json"
_VERSION: Final = 1

Owner = Literal["machine", "person", "document"]
"""machine: rewritten whole; person: written once, merged later; document: the API document as given."""


class LockError(McpfactoryError):
    """The lock cannot be read. `hint` says how to repair it."""


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One file: its owner, the SHA-256 of the written content, and for a person-owned file the text itself."""

    owner: Owner
    sha256: str
    pristine: str | None = None


@dataclass(frozen=True, slots=True)
class Lock:
    """The files that mcpfactory wrote, by path below the server's folder (with `/`).

    `template` is the version of the template that the person's files were made from, or last merged with; "" when unknown.
    """

    files: Mapping[str, LockEntry] = field(default_factory=dict)
    template: str = ""

    @classmethod
    def read(cls, folder: Path) -> Lock:
        """Return the lock of a server's directory; empty if missing.

        Raises:
            LockError: the file is not a lock of this version.
        """
        path = folder / LOCK
        if not path.exists():
            return cls()
        try:
            data = json.loads(path.read_bytes())
            if data["lock"] != _VERSION:
                raise LockError(f"{path}: lock version {data['lock']} is not known", "update mcpfactory")
            files = {name: LockEntry(**entry) for name, entry in data["files"].items()}
            return cls(files, str(data.get("template", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "restore it from version control, or delete it: the next run writes it anew and keeps your files"
            raise LockError(f"{path} is damaged ({type(error).__name__})", hint) from None

    def text(self) -> str:
        """Return the canonical text."""
        files: dict[str, dict[str, Any]] = {}
        for path, entry in self.files.items():
            files[path] = {"owner": entry.owner, "sha256": entry.sha256}
            if entry.pristine is not None:
                files[path]["pristine"] = entry.pristine
        data = {"lock": _VERSION, "files": files} | ({"template": self.template} if self.template else {})
        return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def fingerprint(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
