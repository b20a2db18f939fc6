"""Moving a candidate into a channel: only when the channel's policy allows it, and exactly the bytes that were checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory_pipeline.base.errors import PromotionError, StateError
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.channels.candidate import artifact_of, publish_candidate, verify_files
from mcpfactory_pipeline.plan.policy import Blocker, ChannelPolicy, find_blockers
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.promotion.decision import Decision, choose_candidate, open_decision
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["promote", "promote_due", "rollback"]


def promote(
    workspace: Workspace,
    server: str,
    channel: str = "staging",
    *,
    candidate: str | None = None,
    reason: str = "",
    dry_run: bool = False,
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Move a candidate into a channel and record who did it and why.

    By default it is what the channel before offers (for the first channel, the newest); the beginning of an id will do.
    Returns `{"server", "channel", "candidate", "version", "dry_run"}`. `stages` takes the place of those of the workspace.

    Raises:
        PromotionError: when the policy says no, or the bytes on disk are not those that were checked.
        NotFoundError: for an unknown server or channel.
    """
    with open_decision(workspace, server, channel, dry_run=dry_run, stages=stages, clock=clock) as decision:
        chosen = choose_candidate(decision.state, candidate, decision.policy)
        _refuse_older(decision, chosen)
        if blockers := _blockers(decision, chosen, clock):
            raise PromotionError(
                f"candidate {chosen} of {server} may not be promoted to {channel}: {'; '.join(blocker.message for blocker in blockers)}",
                hint=blockers[0].command,
            )
        _fill_channel(decision, chosen)
        return decision.record("promoted", chosen, reason)


def promote_due(
    workspace: Workspace,
    channel: str,
    *,
    dry_run: bool = False,
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
) -> list[dict[str, Any]]:
    """Promote to a channel, of all servers, what its policy allows by now and the channel before it holds; for timers and CI.

    What is not allowed yet is left out in silence, but not what is broken: that is an entry with `error` and `hint`.
    """
    servers, broken = workspace.survey()
    done: list[dict[str, Any]] = [
        {"server": one.name, "channel": channel, "error": one.message, "hint": one.hint} for one in broken
    ]
    for server in servers:
        try:
            with open_decision(workspace, server.name, channel, dry_run=True, stages=stages, clock=clock) as decision:
                source = decision.state.channels.get(decision.policy.source or "")
                release = decision.state.channels.get(channel)
                if source is None or (release and release.candidate == source.candidate):
                    continue
                if _blockers(decision, source.candidate, clock) or _is_older(
                    decision.state, decision.policy, source.candidate
                ):
                    continue
            done.append(
                promote(
                    workspace,
                    server.name,
                    channel,
                    candidate=source.candidate,
                    reason="its policy allows it",
                    dry_run=dry_run,
                    stages=stages,
                    clock=clock,
                )
            )
        except (PromotionError, StateError) as error:
            done.append({"server": server.name, "channel": channel, "error": str(error), "hint": error.hint})
    return done


def rollback(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    reason: str,
    candidate: str | None = None,
    dry_run: bool = False,
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Roll a channel back to a candidate that it had before (the last older one by default), and hold the channel.

    It was allowed in once, so neither gates nor approvals are asked again. Returns what `promote` does.

    Raises:
        PromotionError: when there is none, or its bytes are not on this machine.
    """
    with open_decision(workspace, server, channel, dry_run=dry_run, stages=stages, clock=clock) as decision:
        chosen = _earlier_candidate(decision.state, channel, candidate)
        _fill_channel(decision, chosen)
        return decision.record("rolled-back", chosen, reason)


def _blockers(decision: Decision, candidate: str, clock: Clock) -> list[Blocker]:
    events, now = decision.transaction.events, clock()
    return find_blockers(decision.policy, decision.checks, decision.state, candidate, events=events, now=now)


def _earlier_candidate(state: ServerState, channel: str, wanted: str | None) -> str:
    release = state.channels.get(channel)
    if release is None:
        raise PromotionError(
            f"{channel} offers nothing of {state.server}",
            hint=f"mcpfactory pipeline promote {state.server} --channel {channel}",
        )
    known = [name for name in release.before if name in state.candidates]
    if wanted is not None:
        chosen = choose_candidate(state, wanted)
        if chosen == release.candidate or channel not in state.candidates[chosen].channels:
            raise PromotionError(
                f"candidate {chosen} of {state.server} is not one that {channel} offered before",
                hint=f"candidates: {', '.join(known) or 'none'}",
            )
        return chosen
    current = state.candidates.get(release.candidate)
    older = [name for name in known if current is None or state.candidates[name].number < current.number]
    if not older:
        raise PromotionError(
            f"{channel} offered no older candidate of {state.server}",
            hint=f"mcpfactory pipeline retire {state.server} --channel {channel} takes it out of the channel",
        )
    return older[0]


def _is_older(state: ServerState, channel: ChannelPolicy, candidate: str) -> bool:
    """Whether the channel offers a candidate that was built after this one."""
    release = state.channels.get(channel.name)
    current = state.candidates.get(release.candidate) if release else None
    return current is not None and state.candidates[candidate].number < current.number


def _refuse_older(decision: Decision, candidate: str) -> None:
    if _is_older(decision.state, decision.policy, candidate):
        server, channel = decision.state.server, decision.policy.name
        raise PromotionError(
            f"candidate {candidate} of {server} is older than what {channel} offers",
            hint=f"mcpfactory pipeline rollback {server} --channel {channel} --candidate {candidate} --reason '…'; "
            "it also keeps automation from undoing it",
        )


def _fill_channel(decision: Decision, candidate: str) -> None:
    artifact = artifact_of(decision.workspace, decision.state, candidate)
    assert artifact is not None
    try:
        verify_files(artifact)
    except StateError as error:
        raise PromotionError(
            f"candidate {candidate} of {decision.state.server} may not be promoted: {error}",
            hint=f"mcpfactory pipeline restore {decision.state.server} --candidate {candidate}",
        ) from error
    if not decision.dry_run:
        publish_candidate(decision.workspace, decision.policy.name, artifact)
