"""What only the history knows: when, and by whom. Pure: events and a moment in, durations and moments out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.state.state import Event, StageRecord, finished_record

__all__ = [
    "actor_of",
    "approvers_since",
    "failing_since",
    "in_channel_since",
    "records_about",
    "rollbacks",
    "seconds_in_channel",
    "withdrawals",
]

_MOVES: Final = ("promoted", "rolled-back")


def _moves(events: Iterable[Event], channel: str) -> Iterator[tuple[datetime, str | None]]:
    """Each change of what a channel offers: when, and the candidate; None when it offers nothing any more."""
    for event in events:
        kind = event["event"]
        if kind == "retired" and event.get("channel") in {None, channel} and not event.get("kept"):
            yield parse_time(str(event["at"])), None
        elif event.get("channel") == channel and (kind in _MOVES or kind == "stage.finished"):
            yield parse_time(str(event["at"])), str(event.get("candidate"))


def actor_of(event: Event) -> str:
    """Who made an event happen, in words: of an agent's with the person who, as its client says, said yes."""
    actor, person = str(event.get("actor", "")), event.get("confirmed")
    return f"{actor}, whose client says that {person} said yes" if person else actor


def seconds_in_channel(events: Iterable[Event], channel: str, candidate: str, now: datetime) -> float:
    """For how many seconds in all a channel has offered a candidate; a clock that was set back adds nothing."""
    total, start = 0.0, None
    for at, name in _moves(events, channel):
        if start is not None:
            total += max(0.0, (at - start).total_seconds())
        start = at if name == candidate else None
    if start is not None:
        total += max(0.0, (now - start).total_seconds())
    return total


def records_about(events: Iterable[Event], candidate: str) -> dict[str, StageRecord]:
    """Return how each stage ended last that was about a candidate."""
    about = (e for e in events if e["event"] == "stage.finished" and e.get("candidate") == candidate)
    return {str(event["stage"]): finished_record(event) for event in about}


def in_channel_since(events: Iterable[Event], channel: str, candidate: str) -> datetime | None:
    """Since when a channel has offered this candidate without a break; None when it does not."""
    since = None
    for at, name in _moves(events, channel):
        since = (since or at) if name == candidate else None
    return since


def failing_since(events: Iterable[Event], stage: str) -> datetime | None:
    """Since when a stage has not passed: its first end in another way after it passed last."""
    since = None
    for event in events:
        if event.get("stage") != stage or event["event"] not in {"stage.finished", "stage.interrupted"}:
            continue
        if event.get("outcome") == "passed":
            since = None
        elif since is None:
            since = parse_time(str(event["at"]))
    return since


def withdrawals(events: Iterable[Event], channel: str) -> dict[str, Event]:
    """Return the candidates that were rolled back out of a channel, each with the event of the rollback.

    An approval for the channel that came later takes a candidate off the list, and so does its return into the channel.
    """
    offered, found = "", dict[str, Event]()
    for event in events:
        if event.get("channel") != channel or event.get("candidate") is None:
            continue
        kind, candidate = event["event"], str(event["candidate"])
        if kind == "rolled-back" and offered != candidate:
            found[offered] = event
        if kind in _MOVES or kind == "stage.finished":
            offered = candidate
            found.pop(candidate, None)
        elif kind == "approved":
            found.pop(candidate, None)
    return found


def rollbacks(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """Return the events by which candidates were rolled back out of channels, the last of each, by (channel, candidate)."""
    offered, found = dict[str, str](), dict[tuple[str, str], Event]()
    for event in events:
        channel, candidate = event.get("channel"), event.get("candidate")
        if channel is None or candidate is None:
            continue
        before = offered.get(str(channel))
        if event["event"] == "rolled-back" and before not in {None, str(candidate)}:
            found[str(channel), str(before)] = event
        if event["event"] in _MOVES or event["event"] == "stage.finished":
            offered[str(channel)] = str(candidate)
    return found


def approvers_since(events: Iterable[Event], channel: str, candidate: str) -> set[str] | None:
    """Return who approved a candidate for a channel after it was rolled back out of that last; None when it never was."""
    offered, approvers = "", None
    for event in events:
        if event.get("channel") != channel or event.get("candidate") is None:
            continue
        kind, about = event["event"], str(event["candidate"])
        if kind == "rolled-back" and offered == candidate != about:
            approvers = set[str]()
        if kind in _MOVES or kind == "stage.finished":
            offered = about
        elif kind == "approved" and about == candidate and approvers is not None:
            approvers.add(str(event["actor"]))
    return approvers
