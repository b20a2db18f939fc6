"""Decisions about a server: approvals, rejections, holds and retirement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Unpack

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError
from mcpfactory_pipeline.base.ids import Clock, current_actor, describe_actor, utc_now
from mcpfactory_pipeline.base.text import normalize_reason
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.channels.channel import withdraw_project
from mcpfactory_pipeline.channels.contract import BreakingChanges
from mcpfactory_pipeline.decisions.channel_review import ChannelReview
from mcpfactory_pipeline.decisions.drift import (
    adopted_offer_commands,
    drift_blockers,
    is_from_other_offer,
    refresh_offer,
)
from mcpfactory_pipeline.decisions.precondition import (
    breaking_changes_line,
    channel_decision_facts,
    describe_check_results,
    require_precondition,
)
from mcpfactory_pipeline.decisions.signatures import approval_signature_faults, require_signing_key, sign_decision
from mcpfactory_pipeline.decisions.stage_decision import DecisionOptions, refuse_second_approval
from mcpfactory_pipeline.plan.policy import (
    PromotionBlocker,
    describe_decision,
    describe_failed_checks,
    find_channel,
    normalize_person_name,
    read_channels,
    unhold_command,
)
from mcpfactory_pipeline.plan.stage import Stage, offered_file_name
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store, Transaction
from mcpfactory_pipeline.state.timeline import approvers_since_rollback, candidates_rolled_back
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace

_RECORDED: Final = ("channel", "candidate", "version")
_HOLDING: Final = ("held", "rolled-back", "retired")  # events that hold a channel


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a channel, during which the server's state is locked."""

    workspace: Workspace
    transaction: Transaction
    policy: ChannelPolicy
    stages: tuple[Stage, ...]
    channels: tuple[ChannelPolicy, ...]
    dry_run: bool
    clock: Clock = utc_now
    recorded: list[Event] = field(default_factory=list)
    precondition: str = ""
    reason: str = ""

    @property
    def events(self) -> list[Event]:
        """Return all events of the server, including this decision."""
        return [*self.transaction.events, *self.recorded]

    @property
    def review(self) -> ChannelReview:
        """Return a review of the channel's candidates based on the current state."""
        return ChannelReview(
            self.workspace, self.stages, self.channels, self.policy, self.state, lambda: self.events, self.clock()
        )

    def drift(self, candidate: str) -> list[PromotionBlocker]:
        """Return the drift of the adopted server that blocks a candidate."""
        server = self.workspace.server(self.state.server)
        found = drift_blockers(server, self.state, candidate)
        if not is_from_other_offer(server, self.state, candidate):
            return found
        way = ", then ".join(adopted_offer_commands(self.workspace, server, self.state, self.policy.name))
        return [replace(blocker, command=way) for blocker in found]

    def callers(self, breaking: BreakingChanges) -> str:
        """Describe changes that break callers of the channel's release, or return ""."""
        return breaking_changes_line(
            breaking, self.state.channels.get(self.policy.name), self.policy.name, self.state.server
        )

    @property
    def state(self) -> ServerState:
        """Return the state of the server."""
        return self.transaction.state

    def refresh_offer(self, what: str) -> None:
        """Request the current tools, resources and prompts of a server at a URL. A dry run sends no request."""
        if not self.dry_run:
            refresh_offer(self.workspace.server(self.state.server), what)

    def record(
        self,
        event: str,
        candidate: str | None,
        *,
        sign_with: Path | None = None,
        stage: str | None = None,
        breaking: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Record the decision and return its subject.

        For an automatic decision, `stage` is the failed stage. An approval names the changes that break callers.
        """
        about = self.about(candidate)
        facts = {**{name: about[name] for name in _RECORDED}, "reason": self.reason}
        signed = sign_decision(sign_with, self.state.server, event, facts) if sign_with else {}
        self.recorded.append(
            self.transaction.append(event, **facts, **signed, stage=stage, breaking=list(breaking) or None)
        )
        return about

    def check_precondition(self, candidate: str | None = None) -> dict[str, Any]:
        """Return the facts of the decision as a token and as text.

        Raises:
            StaleDecisionError: the facts do not match the token `precondition`.
        """
        facts = channel_decision_facts(self.state, self.policy, candidate)
        require_precondition(self.precondition, facts, f"{self.policy.name} of {self.state.server}")
        return {"precondition": facts.precondition, "facts": dict(facts.parts)}

    def blockers(self, candidate: str) -> list[PromotionBlocker]:
        """Return the blockers for the promotion of a candidate to the channel."""
        review = self.review
        return review.blockers(candidate, stale=review.stale(candidate), drift=self.drift(candidate))

    def about(self, candidate: str | None) -> dict[str, Any]:
        """Return the subject of a decision: server, channel, candidate and version."""
        known = self.state.candidates.get(candidate or "")
        version = known.version if known else None
        about = {"server": self.state.server, "channel": self.policy.name, "candidate": candidate, "version": version}
        return {**about, "dry_run": self.dry_run}


@contextmanager
def open_decision(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    dry_run: bool = False,
    reason: str = "",
    precondition: str = "",
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
    store: Store | None = None,
) -> Iterator[Decision]:
    """Yield a decision about a channel, and lock the server's state. A dry run takes no lock and writes nothing.

    `precondition` is the token of the facts that the user saw (`decisions.precondition`). An empty token skips the
    check.
    """
    reason = normalize_reason(reason)
    workspace.server(server)
    channels = read_channels(workspace)
    policy = find_channel(channels, channel)
    known = tuple(stages or workspace_stages(workspace))
    with (store or Store(workspace, clock)).transaction(server, rehearsal=dry_run) as transaction:
        yield Decision(
            workspace, transaction, policy, known, channels, dry_run, clock, precondition=precondition, reason=reason
        )


def choose_candidate(state: ServerState, wanted: str, channel: ChannelPolicy | None = None) -> str:
    """Return the candidate whose ID begins with `wanted`.

    The default is the candidate in the preceding channel, or the newest candidate for the first channel.
    """
    if not wanted:
        if chosen := state.offered(channel.source if channel else None) or state.candidate:
            return chosen
        raise PromotionError(
            f"{state.server} has no candidate yet",
            hint=f"mcpfactory pipeline run {state.server}; list pending approvals with 'mcpfactory inbox {state.server}'",
        )
    found = [name for name in state.candidates if name.startswith(wanted)]
    if not found:
        raise NotFoundError(
            f"{state.server} has no candidate whose id begins with {wanted!r}",
            hint=did_you_mean(wanted, state.candidates, "candidates"),
        )
    if len(found) > 1:
        raise PromotionError(
            f"{state.server} has {len(found)} candidates whose id begins with {wanted!r}",
            hint=f"give a longer prefix of the ID: {', '.join(sorted(found))}",
        )
    return found[0]


def approve(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    candidate: str = "",
    reason: str = "",
    sign_with: Path | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Record the approval of a candidate for a channel, and withdraw earlier rejections. The candidate is not promoted.

    `sign_with` is an SSH key that signs the approval. In the result, `blockers` are the remaining reasons against the
    promotion. `lifted` are the withdrawn rejections.

    Raises:
        PromotionError: the approval is not permitted, or a required signature is missing.
        RefusedError: the server is at a URL and does not respond.
    """
    with open_decision(workspace, server, channel, reason=reason, **options) as decision:
        require_signing_key(workspace, sign_with, f"an approval for {channel}", signed=decision.policy.signed)
        chosen = choose_candidate(decision.state, candidate, decision.policy)
        rests_on = decision.check_precondition(chosen)
        known = decision.state.candidates[chosen]
        _require_approver(decision, lifts=chosen in candidates_rolled_back(decision.transaction.events, channel))
        if missing := describe_failed_checks(decision.review.checks, known):
            raise PromotionError(
                f"candidate {chosen} of {server} cannot be approved yet: {'; '.join(missing)}",
                hint=f"mcpfactory pipeline run {server}",
            )
        _refuse_drifted(decision, chosen)
        source = decision.policy.source or ""
        if source not in known.channels:
            raise PromotionError(
                f"candidate {chosen} of {server} was never in {source}",
                hint=f"mcpfactory pipeline promote {server} --channel {source}",
            )
        _refuse_repeated(decision, chosen)
        lifted = [f"{who}: {why or 'no reason'}" for who, why in known.rejections.get(channel, {}).items()]
        waived = known.summary("validate").get("waived", 0)
        decision.blockers(chosen)  # a failed query must raise its error before the decision is recorded
        breaking = decision.review.breaking(chosen)
        made = decision.record("approved", chosen, sign_with=sign_with, breaking=breaking.recorded)
        blockers = [asdict(one) for one in decision.blockers(chosen)]
        proof = [*filter(None, [decision.callers(breaking)]), *describe_check_results(known)]
        about = {"waived": waived, "proof": proof, "blockers": blockers, "lifted": lifted}
        return {**made, **about, **rests_on}


def _refuse_repeated(decision: Decision, candidate: str) -> None:
    """Refuse a second approval, unless the first lacks a required signature or does not name all breaking changes."""
    state, events, channel = decision.state, decision.transaction.events, decision.policy.name
    if decision.review.has_unnamed_changes(candidate):
        return
    if decision.policy.signed and current_actor() in approval_signature_faults(
        decision.workspace, state, events, channel, candidate
    ):
        return
    # Approvals before a rollback do not count.
    since = approvers_since_rollback(events, channel, candidate)
    given = [who for who in state.candidates[candidate].approvals.get(channel, {}) if since is None or who in since]
    about, subject = {"channel": channel, "candidate": candidate}, f"candidate {candidate} of {state.server}"
    missing = decision.blockers(candidate)
    hint = f"mcpfactory pipeline promote {state.server} --channel {channel}"
    if missing:
        hint = f"mcpfactory inbox {state.server} shows what is missing: {missing[0].message}"
    refuse_second_approval(events, about, given, f"{subject} for {channel}", hint)


def _refuse_drifted(decision: Decision, candidate: str) -> None:
    decision.refresh_offer("approved")
    if drift := decision.drift(candidate):
        words = "; ".join(one.message for one in drift)
        raise PromotionError(
            f"candidate {candidate} of {decision.state.server} cannot be approved: {words}", hint=drift[0].command
        )


def reject(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    reason: str,
    candidate: str = "",
    sign_with: Path | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Record the rejection of a candidate for a channel, and remove its approvals.

    A candidate that the channel already offers cannot be rejected. Use `rollback` for such a candidate. A later
    approval withdraws the rejection.

    Raises:
        PromotionError: the rejection is not permitted, or a required signature is missing.
    """
    with open_decision(workspace, server, channel, reason=reason, **options) as decision:
        require_signing_key(workspace, sign_with, f"a rejection for {channel}", signed=decision.policy.signed)
        chosen = choose_candidate(decision.state, candidate, decision.policy)
        rests_on = decision.check_precondition(chosen)
        _require_approver(decision, "reject")
        if decision.state.offered(channel) == chosen:
            raise PromotionError(
                f"candidate {chosen} of {server} is already in {channel}",
                hint=f"mcpfactory pipeline rollback {server} --channel {channel} --reason '…'",
            )
        return decision.record("rejected", chosen, sign_with=sign_with) | rests_on


def hold(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    reason: str,
    sign_with: Path | None = None,
    stage: str | None = None,
    store: Store | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Hold a channel. The channel cannot change until the hold is lifted (`pipeline unhold`).

    For automatic holds, `stage` is the failed stage, and `store` is the store of its run.
    """
    with open_decision(workspace, server, channel, reason=reason, store=store, **options) as decision:
        require_signing_key(
            workspace, sign_with, f"a hold of {channel}", signed=decision.policy.signed and stage is None
        )
        rests_on = decision.check_precondition()
        if known := decision.state.holds.get(channel):
            raise PromotionError(
                f"{channel} of {server} is {describe_decision('held', known)}",
                hint=unhold_command(server, decision.policy),
            )
        return decision.record("held", None, sign_with=sign_with, stage=stage) | rests_on


def unhold(
    workspace: Workspace,
    server: str,
    channel: str,
    *,
    reason: str = "",
    sign_with: Path | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Lift the hold of a channel. In the result, `hold` describes the hold."""
    with open_decision(workspace, server, channel, reason=reason, **options) as decision:
        require_signing_key(workspace, sign_with, f"the release of {channel}", signed=decision.policy.signed)
        rests_on = decision.check_precondition()
        require_operator(decision.policy, "lift the hold of")
        if channel not in decision.state.holds:
            held = ", ".join(sorted(decision.state.holds))
            raise PromotionError(
                f"channel {channel} of {server} is not held",
                hint=f"choose a held channel: {held}" if held else "mcpfactory inbox lists holds",
            )
        made = [one for one in decision.events if one.get("channel") == channel and one["event"] in _HOLDING]
        since = f", since {made[-1]['at']}" if made else ""
        hold = f"{describe_decision('held', decision.state.holds[channel])}{since}"
        return {**decision.record("released", None, sign_with=sign_with), "hold": hold, **rests_on}


def retire(
    workspace: Workspace,
    server: str,
    channel: str | None = None,
    *,
    reason: str,
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Remove a server from a channel and hold the channel.

    Without a channel, the server is removed from all channels and from runs. The folder of the server may be missing.
    """
    reason = normalize_reason(reason)
    if not workspace.has_folder(server) and server not in Store(workspace).servers():
        workspace.server(server)
    names = [find_channel(read_channels(workspace), channel).name] if channel else None
    with Store(workspace, clock).transaction(server, rehearsal=dry_run) as transaction:
        state = transaction.state
        if state.retired:
            raise PromotionError(
                f"{server} is {describe_decision('retired', state.retired)}",
                hint=f"mcpfactory pipeline revive {server}",
            )
        if channel is not None and channel not in state.channels:
            raise PromotionError(f"{server} has no release in {channel}", hint="mcpfactory pipeline status")
        out = names or sorted(state.channels)
        for known in read_channels(workspace):
            if known.name in out:
                require_operator(known, f"retire {server} from")
        if not dry_run:
            for name in out:
                for project in offered_project_names(state, name):
                    withdraw_project(channels_folder(workspace), name, project)
        transaction.append("retired", channel=channel, reason=reason)
    return {"server": server, "channels": out, "retired": channel is None, "dry_run": dry_run}


def revive(
    workspace: Workspace, server: str, *, reason: str = "", dry_run: bool = False, clock: Clock = utc_now
) -> dict[str, Any]:
    """Revoke a retirement."""
    reason = normalize_reason(reason)
    workspace.server(server)
    with Store(workspace, clock).transaction(server, rehearsal=dry_run) as transaction:
        if transaction.state.retired is None:
            raise PromotionError(f"{server} is not retired", hint="mcpfactory pipeline status")
        transaction.append("revived", reason=reason)
    return {"server": server, "dry_run": dry_run}


def offered_project_names(state: ServerState, channel: str = "", *, candidate: str = "") -> set[str]:
    """Return the package names under which a channel offers a server.

    With `candidate`, return the names of this candidate.
    """
    known = state.candidates.get(candidate or state.channels[channel].candidate)
    offered = offered_file_name(known.files) if known else None
    return {wheel_name(offered)} if offered else set()


def require_operator(policy: ChannelPolicy, verb: str) -> None:
    """Refuse an actor who is not an operator of the channel. Without operators, everybody is permitted."""
    if policy.operators and normalize_person_name(current_actor()) not in map(normalize_person_name, policy.operators):
        raise PromotionError(
            f"{current_actor()} has no permission to {verb} {policy.name}",
            hint=f"ask an operator: {', '.join(policy.operators)} (mcpfactory.toml); {describe_actor()}",
        )


def _require_approver(decision: Decision, verb: str = "approve", *, lifts: bool = False) -> None:
    """Refuse an actor who must not approve or reject (`verb`).

    With `lifts`, the decision reverts a rollback. Every channel except the first permits approvals that revert a
    rollback.
    """
    policy = decision.policy
    if policy.source is None or not (policy.approvals or lifts):
        raise PromotionError(
            f"channel {policy.name} requires no approval",
            hint=f"mcpfactory pipeline promote {decision.state.server} --channel {policy.name}"
            if verb == "approve"
            else f"mcpfactory pipeline hold {decision.state.server} --channel {policy.name} --reason '…'",
        )
    if decision.state.retired:
        raise PromotionError(
            f"{decision.state.server} is {describe_decision('retired', decision.state.retired)}",
            hint=f"mcpfactory pipeline revive {decision.state.server}",
        )
    if policy.approvers and current_actor() not in policy.approvers:
        raise PromotionError(
            f"{current_actor()} has no permission to {verb} for {policy.name}",
            hint=f"ask an approver: {', '.join(policy.approvers)} (mcpfactory.toml); {describe_actor()}",
        )
