"""What a history comes to: the state, and the stages that began and never ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcpfactory_pipeline.state.order import StagesUnderWay
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.state import ServerState, apply, to_text

__all__ = ["FoldedHistory", "fold_history"]


@dataclass(frozen=True, slots=True)
class FoldedHistory:
    """A history, folded: `text` is the state as its file has it, `last` the id of the newest event, `starts` are those of stages that never ended."""

    state: ServerState
    text: str
    last: str
    starts: tuple[Event, ...]


def fold_history(server: str, events: Iterable[Event]) -> FoldedHistory:
    """Return what events come to, oldest first.

    Raises:
        StateError: on an event that cannot be folded.
    """
    state, under_way, last = ServerState(server), StagesUnderWay(), ""
    for event in events:
        state, last = apply(state, event), str(event["id"])
        under_way.take(event)
    return FoldedHistory(state, to_text(state), last, under_way.starts)
