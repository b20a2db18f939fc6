"""Promotion of a candidate to a channel. The promoted bytes are exactly the checked bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PromotionError, StateError
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.channels.candidate import (
    copy_into_channel,
    find_artifact,
    prune_by_policy,
    verify_candidate_files,
)
from mcpfactory_pipeline.decisions.channel_review import is_older_than_offer, pending_candidate
from mcpfactory_pipeline.decisions.decision import Decision, choose_candidate, open_decision, require_operator
from mcpfactory_pipeline.decisions.integrity import refuse_faults, require_integrity
from mcpfactory_pipeline.decisions.stage_decision import DecisionOptions
from mcpfactory_pipeline.plan.policy import PromotionBlocker, approve_command, describe_decision, unhold_command
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import candidates_rolled_back
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace, broken_server_of_error


def promote(
    workspace: Workspace,
    server: str,
    channel: str = "staging",
    *,
    candidate: str = "",
    reason: str = "",
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Promote a candidate to a channel, and record actor and reason.

    The default is the candidate in the preceding channel, or the newest candidate for the first channel. `candidate`
    may be an ID prefix. If the channel already offers the candidate, only its files are repaired.

    In the result, `already` is True if the channel already offered the candidate. `pruned` has the deleted files of old
    candidates, with their sizes in bytes. `callers` describes breaking changes, or is "".

    Raises:
        PromotionError: the policy forbids the promotion, or the bytes on disk differ from the checked bytes.
        RefusedError: `verify` would refuse the server, or the server's URL does not respond.
    """
    require_integrity(workspace, workspace.server(server).name)
    with open_decision(workspace, server, channel, reason=reason, **options) as decision:
        chosen = choose_candidate(decision.state, candidate, decision.policy)
        rests_on = decision.check_precondition(chosen)
        require_operator(decision.policy, "promote to")
        if decision.state.offered(channel) == chosen:
            _fill_channel(decision, chosen)
            return {**decision.about(chosen), "already": True, "pruned": {}, "callers": "", **rests_on}
        callers = decision.callers(decision.review.breaking(chosen))
        decision.refresh_offer(f"promoted to {channel}")
        _refuse_move(decision, chosen)
        _fill_channel(decision, chosen)
        made = decision.record("promoted", chosen)
    pruned = {} if made["dry_run"] else prune_by_policy(workspace, [server])
    return {**made, "already": False, "pruned": pruned, "callers": callers, **rests_on}


def require_promotable(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    candidate: str = "",
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
    head: Mapping[str, str] | None = None,
) -> None:
    """Raise an error if `promote` would fail, without a lock and without changes.

    A candidate that the channel already offers is refused. For checks of many servers, pass the result of
    `head_history_blobs` as `head`.
    """
    with open_decision(workspace, server, channel, dry_run=True, stages=stages, clock=clock) as decision:
        chosen = choose_candidate(decision.state, candidate, decision.policy)
        if decision.state.offered(channel) == chosen:
            raise PromotionError(
                f"channel {channel} already offers candidate {chosen} of {server}",
                hint=f"mcpfactory pipeline status {server}",
            )
        _refuse_move(decision, chosen)
        _fill_channel(decision, chosen)
    refuse_faults(workspace, server, head=head)


def _refuse_move(decision: Decision, candidate: str) -> None:
    server, channel = decision.state.server, decision.policy.name
    _refuse_older(decision, candidate)
    if blockers := decision.blockers(candidate):
        words = _describe_blockers(blockers)
        raise PromotionError(
            f"candidate {candidate} of {server} cannot be promoted to {channel}: {words}", hint=blockers[0].command
        )


def _describe_blockers(blockers: Sequence[PromotionBlocker]) -> str:
    return "; ".join(blocker.message for blocker in blockers)


def promote_due(
    workspace: Workspace,
    channel: str,
    *,
    confirmed: Mapping[str, str] | None = None,
    dry_run: bool = False,
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
) -> list[dict[str, Any]]:
    """Promote all candidates of the preceding channel that the policy permits.

    `confirmed` limits this to servers that a person has seen in a dry run: it maps each name to its `precondition`.

    A failed promotion is reported with `error` and `hint`. A candidate that the policy does not permit is reported with
    `waits_for` (the unmet requirements) and `hint`.
    """
    servers, broken = workspace.load_servers()
    done: list[dict[str, Any]] = [
        {"server": one.name, "channel": channel, "error": one.message, "hint": one.hint} for one in broken
    ]
    for server in servers:
        try:
            with open_decision(workspace, server.name, channel, dry_run=True, stages=stages, clock=clock) as decision:
                due = pending_candidate(decision.state, decision.policy)
                if not due:
                    continue
                if blockers := decision.blockers(due):
                    waits_for = _describe_blockers(blockers)
                    done.append({**decision.about(due), "waits_for": waits_for, "hint": blockers[0].command})
                    continue
            if confirmed is not None and server.name not in confirmed:
                continue
            done.append(
                promote(
                    workspace,
                    server.name,
                    channel,
                    candidate=due,
                    reason="its policy allows it",
                    precondition=(confirmed or {}).get(server.name, ""),
                    dry_run=dry_run,
                    stages=stages,
                    clock=clock,
                )
            )
        except (NotFoundError, ConfigError):  # errors of the channel concern all servers
            raise
        except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the other servers
            broke = broken_server_of_error(server.name, error)
            done.append({"server": server.name, "channel": channel, "error": broke.message, "hint": broke.hint})
    return done


def rollback(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    reason: str,
    candidate: str = "",
    stage: str | None = None,
    store: Store | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Roll a channel back to an earlier candidate, and hold the channel. The default is the newest older candidate.

    Gates and approvals are not checked again. Candidates that were rejected or rolled back are skipped. The candidate
    that was rolled back can return only with new approvals. For automatic rollbacks, `stage` is the failed stage, and
    `store` is the store of its run.

    In the result, `skipped` has the skipped candidates with reasons. `drift` has the known differences from the adopted
    server. `unhold` is the command that lifts the hold.

    Raises:
        PromotionError: no suitable candidate exists, or its bytes are not on this machine.
    """
    with open_decision(workspace, server, channel, reason=reason, store=store, **options) as decision:
        rests_on = decision.check_precondition()
        if stage is None:
            require_operator(decision.policy, "roll back")
        unwanted = (
            {}
            if candidate and decision.policy.source is None
            else _unwanted(decision.state, channel, decision.transaction.events)
        )
        chosen, skipped = _earlier_candidate(decision.state, decision.policy, candidate, unwanted)
        _fill_channel(decision, chosen)
        made = decision.record("rolled-back", chosen, stage=stage)
        drift = [one.message for one in decision.drift(chosen)]
        return {
            **made,
            "skipped": skipped,
            "drift": drift,
            "unhold": unhold_command(server, decision.policy),
            **rests_on,
        }


def _unwanted(state: ServerState, channel: str, events: Sequence[Event]) -> dict[str, str]:
    """Return the candidates that must not return to the channel, with the decisions against these candidates."""
    withdrawn = candidates_rolled_back(events, channel)
    found = {name: describe_decision("rolled back", event) for name, event in withdrawn.items()}
    for name, known in state.candidates.items():
        for who, why in known.rejections.get(channel, {}).items():
            found[name] = describe_decision("rejected", {"actor": who, "reason": why})
    return found


def _earlier_candidate(
    state: ServerState, policy: ChannelPolicy, wanted: str, unwanted: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return the candidate for the rollback, and the skipped candidates with reasons."""
    channel = policy.name
    release = state.channels.get(channel)
    if release is None:
        raise PromotionError(
            f"{state.server} has no release in {channel}: there is nothing to roll back",
            hint=f"check the releases: mcpfactory pipeline status {state.server}",
        )
    known = [name for name in release.before if name in state.candidates]
    if wanted:
        chosen = choose_candidate(state, wanted)
        if chosen == release.candidate or channel not in state.candidates[chosen].channels:
            left = [name for name in known if name != release.candidate and name not in unwanted]
            there = f"choose one of the candidates {', '.join(left)}"
            nothing = _way_out(state.server, channel)
            raise PromotionError(
                f"candidate {chosen} of {state.server} is not an earlier release of {channel}",
                hint=there if left else nothing,
            )
        if chosen in unwanted:
            raise PromotionError(
                f"candidate {chosen} of {state.server} cannot return to {channel}: the candidate was {unwanted[chosen]}",
                hint=approve_command(state.server, policy, chosen),
            )
        return chosen, {}
    current = state.candidates.get(release.candidate)
    older = [name for name in known if current is None or state.candidates[name].number < current.number]
    skipped = {name: unwanted[name] for name in older if name in unwanted}
    left = [name for name in older if name not in unwanted]
    if not left:
        passed = "".join(f"; {name} was {why}" for name, why in skipped.items())
        raise PromotionError(
            f"{channel} has no older candidate of {state.server} for a rollback{passed}",
            hint=_way_out(state.server, channel),
        )
    return left[0], {name: why for name, why in skipped.items() if older.index(name) < older.index(left[0])}


def _way_out(server: str, channel: str) -> str:
    return f"remove the server from the channel: mcpfactory pipeline retire {server} --channel {channel} --reason '…'"


def _refuse_older(decision: Decision, candidate: str) -> None:
    server, channel = decision.state.server, decision.policy.name
    if is_older_than_offer(decision.state, channel, candidate):
        back = f"mcpfactory pipeline rollback {server} --channel {channel} --candidate {candidate} --reason '…'"
        was_there = channel in decision.state.candidates[candidate].channels
        raise PromotionError(
            f"candidate {candidate} of {server} is older than the candidate in {channel}",
            hint=f"roll back and hold the channel: {back}"
            if was_there
            else f"mcpfactory pipeline status {server} shows the newest candidate; {channel} never offered {candidate}",
        )


def _fill_channel(decision: Decision, candidate: str) -> None:
    artifact = find_artifact(decision.workspace, decision.state, candidate)
    assert artifact is not None
    try:
        verify_candidate_files(artifact)
    except StateError as error:
        raise PromotionError(
            f"candidate {candidate} of {decision.state.server} cannot be promoted: {error}",
            hint=f"mcpfactory pipeline restore {decision.state.server} --candidate {candidate}",
        ) from error
    if not decision.dry_run:
        copy_into_channel(decision.workspace, decision.policy.name, artifact)
