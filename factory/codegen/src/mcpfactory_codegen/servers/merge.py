"""Three texts into one: what was made, what the person made of it, and what would be made now.

`git merge-file` does the merging, in a folder of its own: no repository is needed and none is touched.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mcpfactory_runtime.errors import McpfactoryError

__all__ = ["MergeError", "MergedText", "has_marks", "merge"]

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
    """Whether a conflict of an earlier merge is still in the text."""
    return _MARKS.search(text) is not None
