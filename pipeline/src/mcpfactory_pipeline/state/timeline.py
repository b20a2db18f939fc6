"""Times, durations and actors from the history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from packaging.utils import canonicalize_version

from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.state.event_schema import STAGE_ENDS, Event
from mcpfactory_pipeline.state.state import StageRecord, finished_record

_MOVES: Final = ("promoted", "rolled-back")
_DECISIONS: Final = ("approved", "rejected")


def _is_move(event: Event) -> bool:
    return event["event"] in _MOVES or event["event"] == "stage.finished"


def _moves(events: Iterable[Event], channel: str) -> Iterator[tuple[str, str | None]]:
    """Yield (time as text, candidate) for each change of a channel's candidate.

    The candidate is None if the channel no longer offers the server.
    """
    for event in events:
        kind = event["event"]
        if kind == "retired" and event.get("channel") in {None, channel} and not event.get("kept"):
            yield str(event["at"]), None
        elif event.get("channel") == channel and _is_move(event):
            yield str(event["at"]), str(event.get("candidate"))


def last_event_time(events: Iterable[Event]) -> datetime | None:
    """Return the time of the last event, or None."""
    last = next(iter(deque(events, maxlen=1)), None)
    return parse_time(str(last["at"])) if last else None


def actor_of(event: Event) -> str:
    """Return the actor of an event. If the actor is an agent, add the person who confirmed the action."""
    actor, person = str(event.get("actor", "")), event.get("confirmed")
    return f"{actor}, whose client says that {person} said yes" if person else actor


def _stays(events: Iterable[Event], channel: str, candidate: str) -> Iterator[tuple[datetime, datetime | None]]:
    """Yield the start and the end of each period in which a channel offered a candidate.

    If the period has not ended, the end is None.
    """
    start = None
    for at, name in _moves(events, channel):
        if start is not None:
            yield start, parse_time(at)
        start = parse_time(at) if name == candidate else None
    if start is not None:
        yield start, None


def seconds_in_channel(events: Iterable[Event], channel: str, candidate: str, now: datetime) -> float:
    """Return the total time of a candidate in a channel, in seconds.

    A period is negative if the clock was set back. Such a period counts as 0.
    """
    stays = _stays(events, channel, candidate)
    return sum(max(0.0, ((end or now) - start).total_seconds()) for start, end in stays)


def soaked_since(events: Iterable[Event], channel: str, candidate: str, seconds: float) -> datetime | None:
    """Return the time at which a candidate has been in a channel for `seconds` in total, or None."""
    left = seconds
    for start, end in _stays(events, channel, candidate):
        stay = max(0.0, (end - start).total_seconds()) if end else left
        if stay >= left:
            return start + timedelta(seconds=left)
        left -= stay
    return None


def last_stage_records(events: Iterable[Event], candidate: str) -> dict[str, StageRecord]:
    """Return the last record of each stage for a candidate."""
    about = (e for e in events if e["event"] == "stage.finished" and e.get("candidate") == candidate)
    return {str(event["stage"]): finished_record(event) for event in about}


def in_channel_since(events: Iterable[Event], channel: str, candidate: str) -> datetime | None:
    """Return the time at which a channel began to offer a candidate, or None if it offers another candidate."""
    since = None
    for at, name in _moves(events, channel):
        since = (since or at) if name == candidate else None
    return parse_time(since) if since else None


def candidates_by_offered_version(events: Iterable[Event], channel: str = "") -> dict[str, set[str]]:
    """Return each version that a channel ever offered, with the candidates of this version.

    By default, the offers of all channels are included.

    Versions are canonical, because installers treat 0.1 and 0.1.0 as equal.
    """
    found = dict[str, set[str]]()
    for event in events:
        if _is_move(event) and event.get("version") and channel in {"", event.get("channel")}:
            found.setdefault(canonicalize_version(str(event["version"])), set()).add(str(event["candidate"]))
    return found


def failing_since(events: Iterable[Event], stage: str) -> datetime | None:
    """Return the time of a stage's first failure since its last success, or None."""
    since = None
    for event in events:
        if event.get("stage") != stage or event["event"] not in STAGE_ENDS:
            continue
        if event.get("outcome") == "passed":
            since = None
        elif since is None:
            since = parse_time(str(event["at"]))
    return since


def _channel_events(events: Iterable[Event], channel: str) -> Iterator[tuple[Event, str, str]]:
    """Yield each event about a channel, with its candidate and the channel's previous candidate."""
    offered = ""
    for event in events:
        if event.get("channel") == channel and event.get("candidate") is not None:
            candidate = str(event["candidate"])
            yield event, candidate, offered
            if _is_move(event):
                offered = candidate


def candidates_rolled_back(events: Iterable[Event], channel: str) -> dict[str, Event]:
    """Return the candidates that were rolled back in a channel, with the rollback events.

    Candidates that were later approved, or that returned to the channel, are omitted.
    """
    found = dict[str, Event]()
    for event, candidate, offered in _channel_events(events, channel):
        if event["event"] == "rolled-back" and offered != candidate:
            found[offered] = event
        if _is_move(event) or event["event"] == "approved":
            found.pop(candidate, None)
    return found


def last_rollbacks(events: Sequence[Event]) -> dict[tuple[str, str], Event]:
    """Return the last rollback of each candidate, by (channel, candidate)."""
    channels = dict.fromkeys(str(event["channel"]) for event in events if event["event"] == "rolled-back")
    return {
        (channel, offered): event
        for channel in channels
        for event, candidate, offered in _channel_events(events, channel)
        if event["event"] == "rolled-back" and offered not in {"", candidate}
    }


def decisions_about(events: Iterable[Event], channel: str, candidate: str) -> Iterator[Event]:
    """Yield decisions about a candidate for a channel, and rollbacks of the candidate."""
    for event, about, offered in _channel_events(events, channel):
        rolled_back = event["event"] == "rolled-back" and offered == candidate != about
        if rolled_back or (event["event"] in _DECISIONS and about == candidate):
            yield event


def approvers_since_rollback(events: Iterable[Event], channel: str, candidate: str) -> set[str] | None:
    """Return the people who approved a candidate after its last rollback. Without a rollback, return None."""
    approvers = None
    for event in decisions_about(events, channel, candidate):
        if event["event"] == "rolled-back":
            approvers = set[str]()
        elif event["event"] == "approved" and approvers is not None:
            approvers.add(str(event["actor"]))
    return approvers
