"""The projection of a history, and its cached copy.

A snapshot is only a cache: it counts while the history has the size, times and inode that it had, and while the modules that
fold are the same. It is not tracked. `mcpfactory pipeline verify` folds the history itself, and compares.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import read_regular
from mcpfactory_pipeline.state.schema import Event, StagesUnderWay
from mcpfactory_pipeline.state.state import ServerState, apply, parse, to_text


@dataclass(frozen=True, slots=True)
class FoldedHistory:
    """A history, folded: `text` is the state as its file has it, `last` the id of the newest event, `starts` are those of stages that never ended."""

    state: ServerState
    text: str
    last: str
    starts: tuple[Event, ...]


def fold_history(server: str, events: Iterable[Event]) -> FoldedHistory:
    """Fold events, oldest first, into state, last event and open starts.

    Raises:
        StateError: an event cannot be folded.
    """
    state, under_way, last = ServerState(server), StagesUnderWay(), ""
    for event in events:
        state, last = apply(state, event), str(event["id"])
        under_way.take(event)
    return FoldedHistory(state, to_text(state), last, under_way.starts)


Stamp = tuple[int, int, int, int]

_LARGEST: Final = 1 << 26  # bytes


def stamp_of(file: Path) -> Stamp:
    """Return values that change with any write to a file: size, times, inode; zeros if the file is missing."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def read_snapshot(file: Path, stamp: Stamp) -> FoldedHistory | None:
    """Return the folded history with this stamp; None if the snapshot is stale, of other rules, or damaged."""
    try:
        content: dict[str, Any] = from_json(read_regular(file, _LARGEST))
        if tuple(content["stamp"]) != stamp or content["rules"] != _rules():
            return None
        text, last, starts = content["state"], content["last"], content["starts"]
        return FoldedHistory(parse(text, str(file)), text, last, tuple(starts))
    except (OSError, ValueError, KeyError, TypeError, StateError):
        return None


def write_snapshot(file: Path, stamp: Stamp, folded: FoldedHistory) -> None:
    """Write a snapshot of the history with this stamp; ignore write errors, because it is only a cache."""
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
