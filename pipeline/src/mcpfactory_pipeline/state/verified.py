"""Servers of which a run has seen that state and history agree, so that it need not fold their histories again.

What was seen is a hash of the bytes of both files, beside the locks and not tracked: as soon as one of them has another
content, whoever wrote it, nothing is known any more and the history is asked. So a run of a thousand servers with nothing
to do takes as long as its plan, however long their histories are.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.locks import read_holder
from mcpfactory_pipeline.state.state import Event, ServerState, fold, parse, to_text
from mcpfactory_pipeline.state.store import Store

__all__ = ["unfinished_starts", "verified_state"]


def verified_state(store: Store, server: str) -> ServerState | None:
    """Return the state of a server whose files agree, which nobody runs and where no run broke off; None for any other."""
    found = _read(store, server)
    if found is None or read_holder(store.locks, server):
        return None
    try:
        if _seen(store, server) == _digest(*found):
            return parse(found[1].decode(), store.where(server, "state"))
        return _look(store, server, *found)
    except (StateError, ValueError):
        return None


def unfinished_starts(events: Iterable[Event]) -> list[Event]:
    """Return the starts of stages that never ended."""
    open_starts = {}
    for event in events:
        key = (event.get("stage"), event.get("run"))
        if event["event"] == "stage.started":
            open_starts[key] = event
        elif event["event"] in {"stage.finished", "stage.interrupted"}:
            open_starts.pop(key, None)
    return list(open_starts.values())


def _look(store: Store, server: str, history: bytes, text: bytes) -> ServerState | None:
    """Asks the history, and notes that the files agree if they do. A note that cannot be written is no harm."""
    events = store.history(server)
    state = fold(server, events)
    if text != to_text(state).encode() or unfinished_starts(events):
        return None
    with contextlib.suppress(OSError):
        file = _note(store, server)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_digest(history, text), encoding="ascii")
    return state


def _seen(store: Store, server: str) -> str:
    try:
        return _note(store, server).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _note(store: Store, server: str) -> Path:
    return store.locks / f"{server}.settled"


def _read(store: Store, server: str) -> tuple[bytes, bytes] | None:
    """History and state, in the order in which they are written."""
    try:
        return store.history_file(server).read_bytes(), store.state_file(server).read_bytes()
    except OSError:
        return None


def _digest(history: bytes, text: bytes) -> str:
    return f"{hashlib.sha256(history).hexdigest()} {hashlib.sha256(text).hexdigest()}"
