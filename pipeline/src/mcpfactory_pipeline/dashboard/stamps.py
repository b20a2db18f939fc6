"""Whether files are as they were, by what the system says of each: the board asks this of thirty thousand at every look."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["Marks", "below", "marks"]

_LITTER: Final = frozenset(
    {".git", ".venv", "__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)

Marks = tuple[tuple[int, int, int] | None, ...]


def below(folder: str) -> Iterator[str]:
    """Yield a folder, and every folder and file below it; what comes or goes changes the mark of the folder that it is in."""
    yield folder
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name in _LITTER:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from below(entry.path)
        else:
            yield entry.path


def marks(places: Iterable[str]) -> Marks:
    """Time, size and number of each file or folder, None where there is none: equal marks, equal content."""
    return tuple(map(_mark, places))


def _mark(place: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(place)  # noqa: PTH116 - see the head of this file; pathlib takes twice as long
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
