"""Moving a candidate into a channel: only when its checks passed, and exactly the bytes that were checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory_pipeline.channel import publish
from mcpfactory_pipeline.errors import PromotionError, StateError
from mcpfactory_pipeline.runner import artifact_of
from mcpfactory_pipeline.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state import State
from mcpfactory_pipeline.store import Store
from mcpfactory_pipeline.wheels import runtime_wheel
from mcpfactory_pipeline.workspace import Workspace

__all__ = ["promote"]


def promote(
    workspace: Workspace,
    server: str,
    channel: str = "staging",
    *,
    candidate: str | None = None,
    reason: str = "",
    stages: Sequence[Stage] | None = None,
) -> dict[str, Any]:
    """Moves a candidate (the newest by default; the beginning of an id will do) into a channel and records who did it and why.

    Returns `{"server", "channel", "candidate", "version"}`. `stages` takes the place of
    those of the workspace. Raises `PromotionError` when a check is missing or did not
    pass, or the bytes on disk are not those that were checked; `NotFoundError` for an unknown server.
    """
    workspace.server(server)
    if not channel.replace("-", "").replace("_", "").isalnum() or not channel.isascii():
        raise PromotionError(
            f"{channel!r} is no name for a channel", hint="letters, digits, - and _: staging, production"
        )
    store = Store(workspace)
    with store.transaction(server) as transaction:
        chosen = _choose(transaction.state, candidate)
        known = transaction.state.candidates[chosen]
        if lacking := _lacking(stages or workspace_stages(workspace), transaction.state, chosen):
            raise PromotionError(
                f"candidate {chosen} of {server} may not be promoted: {'; '.join(lacking)}",
                hint=f"mcpfactory pipeline run {server}",
            )
        artifact = artifact_of(workspace, transaction.state, chosen)
        assert artifact is not None
        runtime = runtime_wheel(workspace.artifacts)
        wheel = artifact.wheel
        try:
            publish(
                workspace.pipeline / "channels",
                channel,
                wheel,
                artifact.files[wheel.name],
                [runtime] if runtime else [],
            )
        except StateError as error:
            raise PromotionError(
                f"candidate {chosen} of {server} may not be promoted: {error}", hint=error.hint
            ) from error
        transaction.append("promoted", channel=channel, candidate=chosen, version=known.version, reason=reason)
    return {"server": server, "channel": channel, "candidate": chosen, "version": known.version}


def _choose(state: State, wanted: str | None) -> str:
    if wanted is None:
        if state.candidate is None:
            raise PromotionError(f"{state.server} has no candidate yet", hint=f"mcpfactory pipeline run {state.server}")
        return state.candidate
    found = [name for name in state.candidates if name.startswith(wanted)]
    if len(found) != 1:
        raise PromotionError(
            f"{state.server} has {len(found)} candidates whose id begins with {wanted!r}",
            hint=f"candidates: {', '.join(sorted(state.candidates)) or 'none'}",
        )
    return found[0]


def _lacking(stages: Sequence[Stage], state: State, candidate: str) -> list[str]:
    """What stands against a promotion, in words; empty when nothing does."""
    checks = state.candidates[candidate].checks
    lacking = []
    for stage in stages:
        if not stage.check:
            continue
        outcome = checks.get(stage.name, {}).get("outcome")
        if outcome is None:
            lacking.append(f"{stage.name} was not run on it")
        elif outcome != "passed":
            lacking.append(f"{stage.name} {outcome}")
    return lacking
