"""The files of a server's directory: three-way merge, lock, formatting and writing. Edits by the user are kept.

Machine-owned files are rewritten, and removed if they are no longer generated. Edits of machine-owned files are
reported. Person-owned files are kept or merged. API documents are kept.

`git merge-file` merges in a temporary directory and needs no repository. The lock is canonical: sorted, without
timestamps, host names and absolute paths. Equal input therefore yields an identical lock. Nothing is written outside
the server's directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from ruff import find_ruff_bin  # type: ignore[import-untyped]  # a binary with one Python function

from mcpfactory_runtime.errors import Exit, McpfactoryError

_LABELS: Final = ("yours", "as generated before", "as generated now")
_MARKS: Final = re.compile(r"^<<<<<<< .*?^=======\r?$.*?^>>>>>>> ", re.M | re.S)
_MOST_CONFLICTS: Final = 127  # git returns the number of conflicts, at most 127; a higher exit code means failure
_SECONDS: Final = 60  # seconds; timeout of a merge


class MergeError(McpfactoryError):
    """Error for a merge that git cannot carry out."""


@dataclass(frozen=True, slots=True)
class MergedText:
    """The merged text with conflict markers, and the number of conflicts."""

    text: str
    conflicts: int


def merge(base: str, ours: str, theirs: str) -> MergedText:
    """Merge the changes from `base` to `ours` and to `theirs`, with the line endings of `ours`.

    Raise a MergeError if git is not installed or fails.
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
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MergeError(f"git could not merge: {error}", "install git 2.39 or later") from None
    if not 0 <= ran.returncode <= _MOST_CONFLICTS:
        said = ran.stderr.decode(errors="replace").strip()[:200]
        raise MergeError(f"git could not merge: {said}", "move the file away, and run the update again")
    return MergedText(ran.stdout.decode(), ran.returncode)


def has_conflict_markers(text: str) -> bool:
    """Return True if the text still has conflict markers of an earlier merge."""
    return _MARKS.search(text) is not None


# --- the lock: records of written files ---


LOCK: Final = ".mcpfactory/lock.json"
_VERSION: Final = 1

Owner = Literal["machine", "person", "document"]
"""Owner of a file. Machine-owned files are regenerated, and person-owned files are merged."""


class LockfileError(McpfactoryError):
    """Error for a lock that cannot be read."""


@dataclass(frozen=True, slots=True)
class LockfileEntry:
    """One file: its owner, the SHA-256 of the written content, and the text of a person-owned file."""

    owner: Owner
    sha256: str
    pristine: str | None = None


@dataclass(frozen=True, slots=True)
class Lockfile:
    """The files that mcpfactory wrote, by path below the server's folder (with `/`).

    `template` is the version of the template at the last merge, or "" if unknown.
    """

    files: Mapping[str, LockfileEntry] = field(default_factory=dict)
    template: str = ""

    @classmethod
    def read(cls, folder: Path) -> Lockfile:
        """Return the lock of a server's directory, or raise a LockfileError."""
        path = folder / LOCK
        if not path.exists():
            return cls()
        try:
            data = json.loads(path.read_bytes())
            if data["lock"] != _VERSION:
                raise LockfileError(f"{path}: unknown lock version {data['lock']}", "update mcpfactory")
            files = {name: LockfileEntry(**entry) for name, entry in data["files"].items()}
            return cls(files, str(data.get("template", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "restore the file from version control, or delete the file: the next run writes a new file, and keeps your files"
            raise LockfileError(f"{path} is damaged ({type(error).__name__})", hint) from None

    def text(self) -> str:
        """Return the canonical text."""
        files: dict[str, dict[str, Any]] = {}
        for path, entry in self.files.items():
            files[path] = {"owner": entry.owner, "sha256": entry.sha256}
            if entry.pristine is not None:
                files[path]["pristine"] = entry.pristine
        data = {"lock": _VERSION, "files": files} | ({"template": self.template} if self.template else {})
        return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


Action = Literal["create", "rewrite", "merge", "conflict", "same", "keep", "remove", "deleted", "collision"]
"""Action for a file of a server.

The action "merge" means that the user and mcpfactory both changed the file. The action "conflict" means that the user
must resolve a merge conflict. The action "keep" means that the user's edit is kept. The action "deleted" means that the
user removed the file, so that it is not created again. The action "collision" means that mcpfactory did not write the
existing file.
"""


class UnsafePathError(McpfactoryError):
    """Error for a path that is outside the server's directory, or is a folder."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class FileStep:
    """Action for one file. `edited` means that the user edited a machine-owned file."""

    path: str
    action: Action
    owner: Owner
    edited: bool = False
    note: str = ""


class FilePlan:
    """Planned changes of a server's directory: contents to write (None: removal), lock entries, and steps to report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = Lockfile.read(folder)
        self.changes: dict[str, bytes | None] = {}
        self.entries = dict(self.lock.files)
        self.steps: list[FileStep] = []

    def put(self, path: str, content: str | bytes, owner: Owner) -> None:
        """Plan to write a file. Existing person-owned files and documents are never overwritten.

        Raise an UnsafePathError if the path is absolute, contains `..`, or passes through a link that leaves the
        directory.
        """
        raw = content if isinstance(content, bytes) else content.encode("utf-8")
        step = _step(self.folder, path, raw, self.lock, owner)
        self.steps.append(step)
        if step.action == "keep":
            return
        if step.action != "same":
            self.changes[path] = raw
        pristine = content if owner == "person" and isinstance(content, str) else None
        self.entries[path] = LockfileEntry(owner, sha256_hex(raw), pristine)

    def plan_machine_files(self, files: Mapping[str, str]) -> None:
        """Plan all machine-owned files, and the removal of machine-owned files that are only in the lock."""
        for path, content in files.items():
            self.put(path, content, "machine")
        for path, entry in self.lock.files.items():
            if entry.owner == "machine" and path not in files:
                target = resolve_server_path(self.folder, path)
                del self.entries[path]
                if target.is_file():
                    changed = sha256_hex(target.read_bytes()) != entry.sha256
                    self.changes[path] = None
                    self.steps.append(FileStep(path, "remove", "machine", edited=changed))

    @property
    def sorted_steps(self) -> tuple[FileStep, ...]:
        """Return the steps, sorted by path."""
        return tuple(sorted(self.steps, key=lambda step: step.path))

    def apply(self, template: str = "") -> None:
        """Write the changes and the lock. `template` is the new template version in the lock, if given."""
        apply(self.folder, self.changes, Lockfile(self.entries, template or self.lock.template))


def apply(folder: Path, changes: Mapping[str, bytes | None], lock: Lockfile) -> None:
    """Write the changed files, remove files whose new content is None, and write the lock last.

    If any step fails, restore the directory. Raise an UnsafePathError if a path leaves the directory, and an OSError if
    the disk reports an error.
    """
    wanted = {
        resolve_server_path(folder, path): content for path, content in {**changes, LOCK: lock.text().encode()}.items()
    }
    before: list[tuple[Path, bytes | None]] = []
    try:
        for target, content in wanted.items():
            existing = target.read_bytes() if target.is_file() else None
            if existing == content:
                continue
            before.append((target, existing))
            if content is None:
                target.unlink()
                _prune(target.parent, folder)
            else:
                _write_whole(target, content)
    except BaseException:
        for target, existing in reversed(before):
            if existing is not None:
                _write_whole(target, existing)
            elif target.parent.is_dir():
                if target.is_file():
                    target.unlink()
                _prune(target.parent, folder)
        raise


def _step(folder: Path, path: str, content: bytes, lock: Lockfile, owner: Owner) -> FileStep:
    target = resolve_server_path(folder, path)
    if not target.exists():
        return FileStep(path, "create", owner)
    if target.is_dir():
        raise UnsafePathError(f"cannot write the file {path}: a folder has that name", f"move {target} away")
    existing = target.read_bytes()
    if existing == content:
        return FileStep(path, "same", owner)
    if owner != "machine":
        return FileStep(path, "keep", owner)
    known = lock.files.get(path)
    return FileStep(path, "rewrite", owner, edited=known is None or sha256_hex(existing) != known.sha256)


def resolve_server_path(folder: Path, path: str) -> Path:
    """Return the location of a path in the server's directory, or raise an UnsafePathError."""
    pure = PurePosixPath(path)
    odd = "\\" in path or "\0" in path or ":" in path
    if odd or pure.is_absolute() or not pure.parts or ".." in pure.parts or str(pure) != path:
        raise UnsafePathError(f"{path!r} is not a path below the server's folder", "use a relative path without ..")
    root = folder.resolve()
    target = folder.joinpath(*pure.parts)
    if not target.parent.resolve().is_relative_to(root) or (target.is_symlink() and target.is_dir()):
        raise UnsafePathError(f"{path} contains a link to a place outside {folder}", "replace the link with a folder")
    return target


def _write_whole(target: Path, content: bytes) -> None:
    """Write a file atomically by renaming a temporary file, and replace a link instead of following the link."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        if target.is_file():
            beside.chmod(target.stat().st_mode & 0o777)  # scripts must stay executable
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _prune(folder: Path, root: Path) -> None:
    """Remove empty folders up to the root. A folder with only a bytecode cache counts as empty."""
    while folder != root:
        cache = folder / "__pycache__"
        if {entry.name for entry in folder.iterdir()} == {"__pycache__"} and not cache.is_symlink():
            for file in cache.glob("*.pyc"):
                file.unlink()
            cache.rmdir()
        if any(folder.iterdir()):
            return
        folder.rmdir()
        folder = folder.parent


LINE_LENGTH: Final = 120
_SHOWN: Final = 800


class FormatError(Exception):
    """Error for generated code that cannot be formatted because of a bug in the generator."""


def format_python_files(files: Mapping[str, str]) -> dict[str, str]:
    """Format Python files, or raise a FormatError. Configuration files of the formatter are ignored."""
    modules = {path: text for path, text in files.items() if path.endswith(".py")}
    if not modules:
        return dict(files)
    with TemporaryDirectory(prefix="mcpfactory-format-") as folder:
        root = Path(folder)
        for path, text in modules.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
        options = ["--isolated", "--no-cache", "--quiet", f"--line-length={LINE_LENGTH}", "--target-version=py311"]
        command = [str(find_ruff_bin()), "format", *options, folder]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            said = ran.stderr.replace(folder, "").strip()[:_SHOWN]
            raise FormatError(f"generated code could not be formatted: {said}")
        done = {path: (root / path).read_text("utf-8") for path in modules}
    return {path: done.get(path, text) for path, text in files.items()}
