"""In which order a history has the events of stages: a stage of a run ends after it began, and once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mcpfactory_pipeline.state.schema import Event

__all__ = ["StagesUnderWay", "misplaced"]

_BEGINS: Final = "stage.started"
_ENDS: Final = frozenset({"stage.finished", "stage.interrupted"})

Step = tuple[object, object]


class StagesUnderWay:
    """The stages of runs that began and came to no end, by their starts, oldest first."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._starts: dict[Step, Event] = {}
        for event in events:
            self.take(event)

    @property
    def starts(self) -> tuple[Event, ...]:
        """The events with which they began."""
        return tuple(self._starts.values())

    def has(self, event: Event) -> bool:
        """Whether the stage that an event is about is under way in the event's run."""
        return _step(event) in self._starts

    def take(self, event: Event) -> None:
        """Go on with one more event."""
        if event["event"] == _BEGINS:
            self._starts[_step(event)] = event
        elif event["event"] in _ENDS:
            self._starts.pop(_step(event), None)


def misplaced(events: Iterable[Event]) -> Iterator[str]:
    """Yield what no run recorded so, in words: stages that ended without having begun, or twice.

    Two clones may say of one run that broke off that it was interrupted, and one of them may have gone on with it: an end
    after an interruption, and an interruption after any end, are in order.
    """
    under_way, ended = StagesUnderWay(), dict[Step, str]()
    for event in events:
        if event["event"] in _ENDS and not under_way.has(event):
            last = ended.get(_step(event))
            if last is None or (last == event["event"] == "stage.finished"):
                word = "did not begin" if last is None else "had ended"
                yield f"{event['event']} ({event['id']}): {event['stage']} {word} in run {event['run']}"
        under_way.take(event)
        if event["event"] in _ENDS:
            ended[_step(event)] = str(event["event"])
        elif event["event"] == _BEGINS:
            ended.pop(_step(event), None)


def _step(event: Event) -> Step:
    return event.get("stage"), event.get("run")
