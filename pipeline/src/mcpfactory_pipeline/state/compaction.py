"""Compaction of a history: one event replaces old ends of stages that nothing needs any more.

The event has the number and the hash of the replaced events, which stay in earlier commits. All decisions and offers
stay, and so do the ends that the state depends on. The state is equal before and after, so a merge of a compacted and
another branch needs no special rule: events that come back have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
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
        if event["event"] in {*STAGE_ENDS, STAGE_START} and event["at"] < oldest and event["id"] not in needed
        if event.get("candidate") not in state.candidates
    ]


def describe_replaced_events(server: str, events: Sequence[Event], replaced: Sequence[Event]) -> dict[str, Any]:
    """Return the facts of the event that replaces events.

    Raises:
        StateError: without these events, the state would be another one.
    """
    gone = {event["id"] for event in replaced}
    kept = [event for event in events if event["id"] not in gone]
    whole, left = fold(server, events), fold(server, kept)
    last, numbers = 0, {}
    known = {name: one.number for name, one in whole.candidates.items() if name in left.candidates}
    for name, number in sorted(known.items(), key=itemgetter(1)):
        if number != last + 1:
            numbers[name] = number
        last = number
    facts = {"count": len(replaced), "sha256": _hash(replaced), "numbers": numbers}
    if _facts(fold(server, [*kept, {**facts, "event": COMPACTED, "id": whole.last}])) != _facts(whole):
        raise StateError(
            f"the history of {server} cannot be compacted: its state would change",
            hint=f"mcpfactory pipeline verify {server}",
        )
    return facts


def is_compacted(server: str, before: Mapping[str, Event], now: Mapping[str, Event]) -> bool:
    """Return True if an event of a history accounts for all events of an earlier history that it lacks."""
    events = [before[key] for key in sorted(before)]
    try:
        facts = describe_replaced_events(server, events, [event for event in events if event["id"] not in now])
    except StateError:
        return False
    return any({name: event.get(name) for name in facts} == facts for event in now.values())


def _hash(events: Iterable[Event]) -> str:
    return hash_bytes("\n".join(map(event_line, events)).encode())


def _facts(state: ServerState) -> tuple[ServerState, Sequence[Event]]:
    return state, state.timeline
