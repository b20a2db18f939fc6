"""What a history comes to, so that it need not be read again: the state, and the events that somebody may still ask for.

Pure. Folding goes on where it stopped: what is kept of a history stands for all of it in every question of `timeline`, except
for the time that a channel offered a candidate that the state has forgotten meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from mcpfactory_pipeline.state.order import StagesUnderWay
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.state import ServerState, apply

__all__ = ["FoldedHistory", "begin", "go_on"]

# Members that no question about times asks for, and that are most of an event.
_LARGE: Final = frozenset(
    {"inputs", "artifacts", "made_from", "built", "summary", "fingerprint", "reasons", "evidence"}
)
_MOVES: Final = frozenset({"promoted", "rolled-back", "retired"})


@dataclass(frozen=True, slots=True)
class FoldedHistory:
    """A history, folded. `starts` are those of stages that never ended; `recent` are events without their large members.

    `last` is the id of the newest event.
    """

    state: ServerState
    last: str = ""
    starts: tuple[Event, ...] = ()
    recent: tuple[Event, ...] = ()


def begin(server: str) -> FoldedHistory:
    """Return what no event comes to."""
    return FoldedHistory(ServerState(server))


def go_on(folded: FoldedHistory, events: Sequence[Event]) -> FoldedHistory:
    """Return what comes of further events, oldest first, all of them newer than those that were folded.

    Raises:
        StateError: on an event that cannot be folded.
    """
    if not events:
        return folded
    state, under_way = folded.state, StagesUnderWay(folded.starts)
    for event in events:
        state = apply(state, event)
        under_way.take(event)
    recent = _still_asked([*folded.recent, *map(_small, events)], state)
    return FoldedHistory(state, str(events[-1]["id"]), tuple(map(_small, under_way.starts)), recent)


def _small(event: Event) -> Event:
    return {name: value for name, value in event.items() if name not in _LARGE}


def _still_asked(events: Sequence[Event], state: ServerState) -> tuple[Event, ...]:
    kept: dict[str, Event] = {}
    every = (events[-1:], _newest_of_each(events), _failing(events), _decided(events, state))
    for part in (*every, *_moving(events, state)):
        kept |= {str(event["id"]): event for event in part}
    kept = {str(event["id"]): event for event in _ends(events, kept)} | kept
    return tuple(kept[name] for name in sorted(kept))


def _ends(events: Sequence[Event], kept: Mapping[str, Event]) -> Iterator[Event]:
    """Yield, without its candidate, each move that ends the time of a kept one: a forgotten candidate may become known again."""
    for channel in {str(event["channel"]) for event in events if "channel" in event}:
        for one, following in pairwise(event for event in events if _moves(event, channel)):
            candidate = one.get("candidate")
            if str(one["id"]) in kept and candidate and following.get("candidate") != candidate:
                yield {name: value for name, value in following.items() if name != "candidate"}


def _newest_of_each(events: Iterable[Event]) -> Iterable[Event]:
    """Return the newest event of each kind about each stage, channel and target."""
    about = ("event", "stage", "outcome", "channel", "target", "rule")
    return {tuple(map(event.get, about)): event for event in events}.values()


def _failing(events: Iterable[Event]) -> Iterator[Event]:
    """Yield of each stage its last success, what came first after it, and its last end."""
    found: dict[object, list[Event]] = {}
    for event in events:
        if event["event"] not in {"stage.finished", "stage.interrupted"}:
            continue
        before = found.get(event["stage"], [])
        found[event["stage"]] = [event] if event.get("outcome") == "passed" else [*before[:2], event]
    for kept in found.values():
        yield from kept


def _decided(events: Iterable[Event], state: ServerState) -> Iterator[Event]:
    """Yield what people decided about candidates that are known."""
    for event in events:
        kind = str(event["event"])
        if not kind.startswith("stage.") and kind not in _MOVES and event.get("candidate") in state.candidates:
            yield event


def _moving(events: Sequence[Event], state: ServerState) -> Iterator[list[Event]]:
    """Yield for each channel what moved it: the first and the last of the moves to one candidate that follow each other.

    Moves to candidates that are forgotten count as moves to nothing: they only end the time of the one before. Every rollback is
    kept, with what the channel offered until then: that was withdrawn.
    """
    named = dict.fromkeys(str(event["channel"]) for event in events if "channel" in event)
    for channel in named:
        kept: list[tuple[str, Event]] = []
        before: Event | None = None  # the last move to a candidate
        for event in (one for one in events if _moves(one, channel)):
            to = str(event.get("candidate", "")) if event["event"] != "retired" else ""
            to = to if to in state.candidates else ""
            if event["event"] == "rolled-back":
                if before is not None and before not in (one for _, one in kept):
                    kept.append(("", before))
                kept.append((to, event))
            elif _goes_on(kept, to, event):
                kept[-1] = (to, event)
            elif to or not kept or kept[-1][0]:
                kept.append((to, event))
            before = event if event["event"] != "retired" else before
        yield [event for _, event in kept]


def _goes_on(kept: Sequence[tuple[str, Event]], to: str, event: Event) -> bool:
    """Whether a move to a candidate follows two others to it, and the clock was not set back: then the one between says nothing."""
    if [name for name, _ in kept[-2:]] != [to, to] or kept[-1][1]["event"] == "rolled-back":
        return False
    moments = [str(one["at"]) for _, one in kept[-2:]] + [str(event["at"])]
    return bool(to) and moments == sorted(moments)


def _moves(event: Mapping[str, Any], channel: str) -> bool:
    if event["event"] == "retired":
        return event.get("channel") in {None, channel} and not event.get("kept")
    return event.get("channel") == channel and (event["event"] in _MOVES or event["event"] == "stage.finished")
