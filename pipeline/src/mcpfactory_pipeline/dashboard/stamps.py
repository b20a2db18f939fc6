"""Times and sizes of files: what says that something has changed, without reading it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.locks import active_runs

__all__ = ["Stamps", "channel_pages", "files_below", "stamps_of", "workspace_digest"]

FileStamp = tuple[int, int, int, int]
Stamps = tuple[FileStamp | None, ...]

_FOLDERS: Final = ("state", "history", "locks", "locks/runs")
_SUFFIXES: Final = (".json", ".jsonl", ".running")  # a lock that is only held says nothing
_IGNORED: Final = frozenset(
    {".git", ".venv", "__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)


def workspace_digest(pipeline: Path) -> str:
    """Hash names, times, sizes and inodes of the files of states, histories and locks: it changes with any of them."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        digest.update(repr(sorted(_entries_of(pipeline / folder))).encode())
    digest.update(repr(sorted(active_runs(pipeline / "locks"))).encode())  # a run that is killed changes no file
    return digest.hexdigest()[:16]


def _entries_of(folder: Path) -> Iterator[tuple[str, FileStamp]]:
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(_SUFFIXES) and not entry.name.startswith("."):
                with suppress(OSError):
                    yield entry.name, _stamp_in(entry.stat())


def channel_pages(channels: Path) -> Iterator[tuple[str, FileStamp | None]]:
    """Yield the folders of channels on this machine and of the projects in them, each with its stamp."""
    for channel in _folders_in(str(channels)):
        for folder in (f"{channel}/simple", *_folders_in(f"{channel}/simple")):
            yield folder, _stamp(folder)


def _folders_in(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    return []


def files_below(folder: str) -> Iterator[str]:
    """Yield a folder, and every folder and file below it; a file that comes or goes changes the stamp of its folder."""
    yield folder
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name in _IGNORED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(entry.path)
        else:
            yield entry.path


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Return times, size and inode of each file or folder, None where there is none: equal stamps, equal content."""
    return tuple(map(_stamp, paths))


def _stamp(path: str) -> FileStamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked of thirty thousand files at every look; pathlib takes twice as long
    except OSError:
        return None
    return _stamp_in(found)


def _stamp_in(found: os.stat_result) -> FileStamp:
    """The time of the last write comes first. Whoever writes can put that back, and not the one of the last change, which is the last here."""
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
