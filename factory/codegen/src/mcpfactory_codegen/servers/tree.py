"""The only writer of servers' folders: plans first, refuses to leave its folder, and never loses a person's edit.

owner     the file exists already               it is no longer made
machine   rewritten; an edit is reported        removed
person    kept as it is                         kept
document  kept as it is                         kept
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from mcpfactory_codegen.servers.lock import LOCK, Lock, LockEntry, Owner, fingerprint
from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = ["Action", "FileStep", "TreeError", "apply", "locate", "plan", "write"]

Action = Literal["create", "rewrite", "same", "keep", "remove"]


class TreeError(McpfactoryError):
    """A path would leave the folder. `hint` says what to do."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class FileStep:
    """What happens to one file. `tampered`: the machine's file was changed by someone else since it was written."""

    path: str
    action: Action
    owner: Owner
    tampered: bool = False


def plan(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner) -> tuple[FileStep, ...]:
    """Return what `write` would do, by path. Reads the folder, changes nothing.

    Raises:
        TreeError: a path is absolute, has `..` in it, or passes through a link that leaves the folder.
        LockError: the folder's lock is damaged.
    """
    lock = Lock.read(folder)
    steps = [_step(folder, path, _bytes(content), lock, owner) for path, content in files.items()]
    if owner == "machine":
        for path, entry in lock.files.items():
            if entry.owner == "machine" and path not in files:
                place = _place(folder, path)
                if place.is_file():
                    changed = fingerprint(place.read_bytes()) != entry.sha256
                    steps.append(FileStep(path, "remove", owner, tampered=changed))
    return tuple(sorted(steps, key=lambda step: step.path))


def write(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner, template: str = "") -> tuple[FileStep, ...]:
    """Carry out the plan, file by file and each one whole, then record it in the lock; `template` as well, if it is named.

    Raises:
        TreeError, LockError: as `plan`, before anything is written.
        OSError: the disk said no; the files written so far are whole.
    """
    steps = plan(folder, files, owner=owner)
    before = Lock.read(folder)
    entries = dict(before.files)
    for step in steps:
        place = _place(folder, step.path)
        if step.action == "remove":
            place.unlink()
            _prune(place.parent, folder)
        elif step.action in {"create", "rewrite"}:
            _replace(place, _bytes(files[step.path]))
    if owner == "machine":
        entries = {path: entry for path, entry in entries.items() if entry.owner != "machine" or path in files}
    for step in steps:
        if step.action in {"create", "rewrite", "same"}:
            entries[step.path] = _entry(files[step.path], owner)
    text = Lock(entries, template or before.template).text().encode()
    place = _place(folder, LOCK)
    if not place.is_file() or place.read_bytes() != text:
        _replace(place, text)
    return steps


def apply(folder: Path, changes: Mapping[str, bytes | None], lock: Lock) -> None:
    """Write or remove (None) all of `changes`, and the lock last. Whatever goes wrong, the folder is as it was before.

    Raises:
        TreeError: a path leaves the folder; nothing was written.
        OSError: the disk said no; what had been written was taken back.
    """
    wanted = {_place(folder, path): content for path, content in {**changes, LOCK: lock.text().encode()}.items()}
    before: list[tuple[Path, bytes | None]] = []
    try:
        for place, content in wanted.items():
            there = place.read_bytes() if place.is_file() else None
            if there == content:
                continue
            before.append((place, there))
            if content is None:
                place.unlink()
                _prune(place.parent, folder)
            else:
                _replace(place, content)
    except BaseException:
        for place, there in reversed(before):
            if there is not None:
                _replace(place, there)
            elif place.parent.is_dir():
                if place.is_file():
                    place.unlink()
                _prune(place.parent, folder)
        raise


def locate(folder: Path, path: str) -> Path:
    """Where a path of the server lies.

    Raises:
        TreeError: outside its folder.
    """
    return _place(folder, path)


def _step(folder: Path, path: str, content: bytes, lock: Lock, owner: Owner) -> FileStep:
    place = _place(folder, path)
    if not place.exists():
        return FileStep(path, "create", owner)
    if place.is_dir():
        raise TreeError(f"{path} is a folder, and a file of that name is to be written", f"move {place} away")
    there = place.read_bytes()
    if there == content:
        return FileStep(path, "same", owner)
    if owner != "machine":
        return FileStep(path, "keep", owner)
    known = lock.files.get(path)
    return FileStep(path, "rewrite", owner, tampered=known is None or fingerprint(there) != known.sha256)


def _place(folder: Path, path: str) -> Path:
    """Return the file's place; refuses what would be outside the folder."""
    pure = PurePosixPath(path)
    odd = "\\" in path or "\0" in path or ":" in path
    if odd or pure.is_absolute() or not pure.parts or ".." in pure.parts or str(pure) != path:
        raise TreeError(f"{path!r} is not a path below the server's folder", "use a relative path without ..")
    root = folder.resolve()
    place = folder.joinpath(*pure.parts)
    if not place.parent.resolve().is_relative_to(root) or (place.is_symlink() and place.is_dir()):
        raise TreeError(f"{path} passes through a link that leaves {folder}", "replace the link by a folder")
    return place


def _entry(content: str | bytes, owner: Owner) -> LockEntry:
    raw = _bytes(content)
    pristine = content if owner == "person" and isinstance(content, str) else None
    return LockEntry(owner, fingerprint(raw), pristine)


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _replace(place: Path, content: bytes) -> None:
    """Whole or not at all: written beside the place, then renamed over it (a link is replaced, not followed)."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        if place.is_file():
            beside.chmod(place.stat().st_mode & 0o777)  # a script that may be run stays one
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _prune(folder: Path, root: Path) -> None:
    """Remove folders that are empty now, below the root; a leftover bytecode cache does not keep one alive."""
    while folder != root:
        cache = folder / "__pycache__"
        if {entry.name for entry in folder.iterdir()} == {"__pycache__"} and not cache.is_symlink():
            _clear(cache.iterdir())
            cache.rmdir()
        if any(folder.iterdir()):
            return
        folder.rmdir()
        folder = folder.parent


def _clear(files: Iterable[Path]) -> None:
    for file in files:
        if file.suffix == ".pyc":
            file.unlink()
