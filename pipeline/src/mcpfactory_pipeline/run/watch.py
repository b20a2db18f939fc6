"""Stages that watch what a channel offers: they run again until its soak is over, and a failure moves the channel back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.ids import AUTOMATION, Clock, acting_as
from mcpfactory_pipeline.base.reason import LONGEST_REASON
from mcpfactory_pipeline.base.text import format_duration, on_one_line, truncate
from mcpfactory_pipeline.plan.stage import Stage, StageOutputs
from mcpfactory_pipeline.promotion.decision import hold
from mcpfactory_pipeline.promotion.promote import rollback
from mcpfactory_pipeline.state.state import Event, ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import seconds_in_channel
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["move_back", "soaking"]


def soaking(stage: Stage, outputs: StageOutputs, candidate: str, events: Sequence[Event], clock: Clock) -> StageOutputs:
    """Return the outputs of a stage that passed; `inconclusive` as long as the channel that it watches must go on offering the candidate.

    Neither message nor summary says how long that is: the state holds no clock.
    """
    if not stage.soak or outputs.outcome != "passed":
        return outputs
    if seconds_in_channel(events, stage.watches, candidate, clock()) >= stage.soak:
        return outputs
    words = f"{outputs.message}; soaks until {stage.watches} has offered it for {format_duration(stage.soak)}"
    return replace(outputs, outcome="inconclusive", message=words, summary={**outputs.summary, "soaking": True})


def move_back(workspace: Workspace, stages: Sequence[Stage], state: ServerState, store: Store) -> list[str]:
    """Move each channel back that offers a candidate of which a stage with `on_failure = "rollback"` says that it failed.

    The channel is held then; where it offered nothing older, it is held only. Returns what was done, in words. What is held
    already is left alone, so that doing this again does nothing.
    """
    done = []
    for stage in stages:
        record, release = state.stages.get(stage.name), state.channels.get(stage.watches)
        if not stage.rollback or record is None or record.outcome != "failed" or state.retired:
            continue
        if release is None or release.candidate != record.candidate or stage.watches in state.holds:
            continue
        reason = f"{stage.name} failed on {release.version} ({release.candidate}): {record.message}"
        reason = truncate(on_one_line(reason), LONGEST_REASON)  # what a stage says has no limit
        with acting_as(AUTOMATION):
            try:
                moved = rollback(
                    workspace,
                    state.server,
                    stage.watches,
                    reason=reason,
                    stages=stages,
                    clock=store.clock,
                    stage=stage.name,
                    store=store,
                )
                done.append(f"{stage.watches} is back at {moved['version']} ({moved['candidate']}), and held: {reason}")
            except PromotionError as error:
                reason = truncate(on_one_line(f"it was not moved back: {error}; {reason}"), LONGEST_REASON)
                hold(
                    workspace, state.server, stage.watches, reason=reason, stages=stages, stage=stage.name, store=store
                )
                done.append(f"{stage.watches} is held: {reason}")
    return done
