"""What a history came to when it was read last, kept beside it, so that only what was added since has to be folded.

A snapshot is a memory, and no word of it counts against the history: it says of which bytes it is the fold by their hash, and by
which rules (the hash of the modules that fold). Where either differs, or the file is damaged, there is no snapshot. It is not
tracked, and whoever finds none writes the next one. `mcpfactory pipeline verify` folds the history itself, and compares.
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
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.state import parse, to_text

__all__ = ["read_derived", "read_recent", "read_snapshot", "stamp_of", "write_snapshot"]

Stamp = tuple[int, int, int, int]

_LARGEST: Final = 1 << 26  # bytes
_RULES: Final = ("folded.py", "schema.py", "state.py", "history.py")


def read_snapshot(file: Path, history: bytes) -> tuple[int, FoldedHistory] | None:
    """Return how many bytes of a history a snapshot stands for, and their fold; None where there is none of it."""
    try:
        content = _read(file)
        size = content["size"]
        if size > len(history) or content["history"] != hashlib.sha256(memoryview(history)[:size]).hexdigest():
            return None
        state = parse(content["state"], str(file))
        return int(size), FoldedHistory(state, content["last"], *map(tuple, content["events"]))
    except (OSError, ValueError, KeyError, TypeError, StateError):
        return None


def read_recent(file: Path, stamp: Stamp) -> tuple[Event, ...] | None:
    """Return the recent events of a history that has this stamp still; for what is shown only, as no byte of it is looked at."""
    try:
        content = _read_once(file, stamp_of(file))
        return tuple(content["events"][1]) if tuple(content["stamp"]) == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_derived(file: Path, stamp: Stamp) -> str | None:
    """Return the text of the state that a history of this stamp comes to; as `read_recent`, for what is shown only."""
    try:
        content = _read_once(file, stamp_of(file))
        return str(content["state"]) if tuple(content["stamp"]) == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stamp_of(file: Path) -> Stamp:
    """Return what changes with any write to a file: size, times, number; zeros where there is none."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@functools.lru_cache(maxsize=1)
def _read_once(file: Path, stamp: Stamp) -> dict[str, Any]:
    """Return a snapshot whose file has this stamp: what is shown of a server asks several times."""
    del stamp
    return _read(file)


def _read(file: Path) -> dict[str, Any]:
    digest, _, body = read_regular(file, _LARGEST).partition(b"\n")
    content: dict[str, Any] = from_json(body)
    if digest.decode() != hashlib.sha256(body).hexdigest() or content["rules"] != _rules():
        raise ValueError("it is damaged, or of other rules")
    return content


def write_snapshot(file: Path, history: bytes, stamp: Stamp, folded: FoldedHistory) -> None:
    """Keep what a history comes to, that had this stamp before it was read. Where it cannot be written, or half of it, there is none: that is no harm."""
    content: dict[str, Any] = {
        "rules": _rules(),
        "stamp": stamp,
        "size": len(history),
        "history": hashlib.sha256(history).hexdigest(),
        "state": to_text(folded.state),
        "last": folded.last,
        "events": [list(folded.starts), list(folded.recent)],
    }
    body = json.dumps(content, ensure_ascii=False).encode()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


@functools.cache
def _rules() -> str:
    folder, digest = Path(__file__).parent, hashlib.sha256()
    for name in _RULES:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()
