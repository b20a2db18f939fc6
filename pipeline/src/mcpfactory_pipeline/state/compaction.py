"""Compaction of a history: one event replaces old stage ends that the state does not depend on.

The event has the number and the hash of the replaced events, which stay in earlier commits. All decisions and offers
stay. The state is equal before and after, so merges with other branches need no special rule: replaced events that a
merge adds again have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.state.event_schema import COMPACTED, STAGE_ENDS, STAGE_START, Event
from mcpfactory_pipeline.state.history import event_line
from mcpfactory_pipeline.state.state import ServerState, fold


def find_replaceable_events(server: str, events: Sequence[Event], oldest: str) -> list[Event]:
    """Return the events before the time `oldest` that the state does not depend on."""
    state = fold(server, events)
    needed = {str(event["id"]) for event in state.timeline}
    return [
        event
        for event in events
        if event["event"] in STAGE_ENDS | {STAGE_START} and event["at"] < oldest and event["id"] not in needed
        if event.get("candidate") not in state.candidates
    ]


def describe_replaced_events(server: str, events: Sequence[Event], replaced: Sequence[Event]) -> dict[str, Any]:
    """Return the facts of the event that replaces events.

    Raises:
        StateError: the state would change without these events.
    """
    gone, state = {event["id"] for event in replaced}, fold(server, events)
    numbers = {name: candidate.number for name, candidate in state.candidates.items()}
    facts = {"count": len(replaced), "sha256": _hash(replaced), "numbers": numbers}
    kept = [event for event in events if event["id"] not in gone]
    if not _is_equal(state, fold(server, [*kept, {**facts, "event": COMPACTED, "id": state.last}])):
        raise StateError(
            f"the history of {server} cannot be compacted: its state would change",
            hint="keep more events with --days, or name the other servers",
        )
    return facts


def is_compacted(server: str, before: Mapping[str, Event], now: Mapping[str, Event]) -> bool:
    """Return True if one event of a history replaced all missing events of an earlier history without effect."""
    missing = _hash([before[key] for key in sorted(before.keys() - now.keys())])
    if not any((event.get("event"), event.get("sha256")) == (COMPACTED, missing) for event in now.values()):
        return False
    try:
        whole, left = (fold(server, [some[key] for key in sorted(some)]) for some in ({**now, **before}, now))
    except (StateError, KeyError, AttributeError):  # these events are not validated
        return False
    return _is_equal(whole, left)


def _hash(events: Iterable[Event]) -> str:
    return hash_bytes("\n".join(map(event_line, events)).encode())


def _is_equal(state: ServerState, other: ServerState) -> bool:
    return (state, state.timeline) == (other, other.timeline)
