"""What a history came to when it was read last, kept beside the locks, so that an unchanged history need not be read again.

A snapshot is only a cache: it counts while the history has the size, times and inode that it had, and while the modules that
fold are the same. It is not tracked. `mcpfactory pipeline verify` folds the history itself, and compares.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import read_regular
from mcpfactory_pipeline.state.folded import FoldedHistory
from mcpfactory_pipeline.state.state import parse

__all__ = ["Stamp", "read_snapshot", "stamp_of", "write_snapshot"]

Stamp = tuple[int, int, int, int]

_LARGEST: Final = 1 << 26  # bytes


def stamp_of(file: Path) -> Stamp:
    """Return what changes with any write to a file: size, times, inode; zeros if there is none."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def read_snapshot(file: Path, stamp: Stamp) -> FoldedHistory | None:
    """Return what the history with this stamp comes to; None if the snapshot is of another one, of other rules, or damaged."""
    try:
        content: dict[str, Any] = from_json(read_regular(file, _LARGEST))
        if tuple(content["stamp"]) != stamp or content["rules"] != _rules():
            return None
        text, last, starts = content["state"], content["last"], content["starts"]
        return FoldedHistory(parse(text, str(file)), text, last, tuple(starts))
    except (OSError, ValueError, KeyError, TypeError, StateError):
        return None


def write_snapshot(file: Path, stamp: Stamp, folded: FoldedHistory) -> None:
    """Keep what the history with this stamp comes to. If it cannot be written, there is none: that is no harm."""
    content = {
        "rules": _rules(),
        "stamp": stamp,
        "state": folded.text,
        "last": folded.last,
        "starts": list(folded.starts),
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(json.dumps(content, ensure_ascii=False).encode())


@functools.cache
def _rules() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
