"""Stages whose run died on this machine, before the next run has recorded that: they are shown, and planned, as interrupted.

History and state say nothing of them yet. Who holds a server, or held it when it died, stands in a note beside the locks; only
where there is one the history is looked at. A run on another machine has no note here: nobody here knows how it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpfactory_pipeline.base.locks import read_holder
from mcpfactory_pipeline.plan.stage import RUN_DIED
from mcpfactory_pipeline.state.state import Event, ServerState, apply
from mcpfactory_pipeline.state.store import Store

__all__ = ["broken_off", "with_broken_off"]


def broken_off(store: Store, server: str) -> tuple[Event, ...]:
    """Return what is to be recorded of the stages of a server that began and whose process is gone: `stage.interrupted`, of the time of the start.

    Raises:
        StateError: where the history cannot be read.
    """
    holder = read_holder(store.locks, server)
    if not holder or holder["alive"]:
        return ()
    starts = (start for start in store.folded(server).starts if start["run"] == holder.get("run"))
    return tuple({**start, "event": "stage.interrupted", "message": RUN_DIED} for start in starts)


def with_broken_off(state: ServerState, found: Iterable[Event]) -> ServerState:
    """Return the state as it will be once what `broken_off` found is recorded."""
    for event in found:
        state = apply(state, event)
    return state
