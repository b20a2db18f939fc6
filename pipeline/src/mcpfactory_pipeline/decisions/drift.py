"""Drift of adopted servers, and blocked promotions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.base.hashing import hash_file, shorten_hash
from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.plan.policy import PromotionBlocker, find_channel, find_promotion_blockers, read_channels
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE, OFFERS, Drift, read_known_drift, replacement_hash
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.waivers import read_waivers, uncovered_reason, unexpired_waivers
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


def drift_blockers(server: WorkspaceServer, state: ServerState, candidate: str = "") -> list[PromotionBlocker]:
    """Return the known drift of an adopted server.

    Drift is ignored if a waiver let `validate` pass. If a later offer of a URL was adopted, earlier candidates of the
    URL have also drifted.
    """
    if candidate and is_from_other_offer(server, state, candidate):
        message = f"candidate {candidate} was made from an earlier offer; its URL's current offer was adopted later"
        return [PromotionBlocker("drift", message, f"mcpfactory pipeline run {server.name}")]
    known = read_known_drift(server.folder, server.adopted)
    if not known or _accepted(state, replacement_hash(known)):
        return []
    way_out = f"adopt the current server, or waive {DRIFT_RULE} and run it again{_other_waiver(server, known)}"
    return [PromotionBlocker("drift", f"{one.message}: {way_out}", one.command) for one in known]


def refresh_offer(server: WorkspaceServer, what: str) -> None:
    """Query the current offer of a server at a URL, and record differences from the adopted offer.

    `what` is a word for error messages, such as "installed".

    Raises:
        RefusedError: the server does not respond, or the result cannot be recorded.
    """
    if server.adopted is None or not server.adopted.url:
        return
    from mcpfactory_pipeline.adoption.drift_check import check_adopted_drift, record_known_drift  # noqa: PLC0415 - heavy

    seen = check_adopted_drift(server)
    if unanswered := next((one for one in seen if one.unanswered), None):
        raise RefusedError(
            f"{server.name} cannot be {what}: the server could not be compared with the adopted version: {unanswered.message}",
            hint=(f"make sure that {server.adopted.url} answers, then run the command again"),
        )
    try:
        record_known_drift(server, seen)
    except OSError as error:
        raise RefusedError(
            f"{server.name} cannot be {what}: the current tool list of the server cannot be saved: {error}",
            hint=f"make servers/{server.name} writable",
        ) from error


def is_from_other_offer(server: WorkspaceServer, state: ServerState, candidate: str) -> bool:
    """Return True if a candidate was made from an offer that is no longer the adopted offer."""
    if server.adopted is None or not server.adopted.url:
        return False
    adopted = hash_file(server.folder / OFFERS)
    return state.candidates[candidate].files.get(OFFERS, adopted) != adopted


def _accepted(state: ServerState, offer: str) -> bool:
    """Return True if `validate` passed with a waiver for the current drift."""
    record = state.stages.get("validate")
    if record is None or record.outcome != "passed" or record.inputs.get("drift") != shorten_hash(offer):
        return False
    return DRIFT_RULE in record.summary.get("waived_rules", ())


def _other_waiver(server: WorkspaceServer, known: Sequence[Drift]) -> str:
    """Describe drift waivers that do not cover the current offer."""
    held = unexpired_waivers(read_waivers(server.folder), utc_now().date())
    others = [one for one in held if one.rule == DRIFT_RULE and uncovered_reason(one, replacement_hash(known))]
    return "".join(
        f"; the waiver by {one.person} does not count: {uncovered_reason(one, replacement_hash(known))}"
        for one in others
    )


_EARLIER: Final = "offer"  # kind of drift: the candidate in the channel was made from an earlier offer
# Kinds of blockers that a decision can remove.
_DECIDED: Final = frozenset({"hold", "rejection", "approval", "retired"})


def channel_drift_blockers(
    workspace: Workspace, server: WorkspaceServer, state: ServerState, channel: str
) -> list[PromotionBlocker]:
    """Return the reasons why clients must not use an adopted server from a channel.

    The channel "" stands for the server's local files.
    """
    candidate = state.channels[channel].candidate if channel else ""
    own = drift_blockers(server, state)
    if not candidate or not is_from_other_offer(server, state, candidate):
        return own
    words = f"{channel} offers candidate {candidate} of {server.name}, which was made from an earlier offer"
    then = f"and {own[0].message}" if own else "the current offer of its URL was adopted later"
    return [
        PromotionBlocker(
            _EARLIER, f"{words}; {then}", ", then ".join(adopted_offer_commands(workspace, server, state, channel))
        )
    ]


def default_channel_drift_blockers(
    workspace: Workspace, server: WorkspaceServer, state: ServerState
) -> list[PromotionBlocker]:
    """Return the drift blockers for the last channel that offers the server."""
    offered = [row.name for row in read_channels(workspace) if row.name in state.channels]
    return channel_drift_blockers(workspace, server, state, offered[-1] if offered else "")


def drift_sentence(server: WorkspaceServer, drift: PromotionBlocker) -> str:
    """Describe a drift blocker in a sentence with the server's name."""
    return drift.message if drift.kind == _EARLIER else f"{server.name} is not what was adopted: {drift.message}"


def adopted_offer_commands(
    workspace: Workspace, server: WorkspaceServer, state: ServerState, channel: str
) -> tuple[str, ...]:
    """Return the commands that bring the adopted offer into a channel with an older offer.

    If the URL has a newer offer, the first commands adopt this offer. An outdated preceding channel is updated first.
    If no command can help, for example after a failed check, the result is `mcpfactory inbox`.
    """
    if own := drift_blockers(server, state):
        return (own[0].command,)
    channels, name = read_channels(workspace), server.name
    if channel not in {row.name for row in channels}:
        return (f"mcpfactory pipeline status {name}",)
    policy = find_channel(channels, channel)
    while policy.source and not _has_present(server, state, policy.source):
        policy = find_channel(channels, policy.source)
    chosen = state.offered(policy.source) if policy.source else state.candidate
    if not chosen or is_from_other_offer(server, state, chosen):
        failed = any(record.outcome != "passed" for record in state.stages.values())
        return (f"mcpfactory inbox {name}" if failed else f"mcpfactory pipeline run {name}",)
    return _way_of(workspace, state, policy, chosen)


def _has_present(server: WorkspaceServer, state: ServerState, channel: str) -> bool:
    offered = state.offered(channel)
    return bool(offered) and not is_from_other_offer(server, state, offered)


def _way_of(workspace: Workspace, state: ServerState, policy: ChannelPolicy, candidate: str) -> tuple[str, ...]:
    from mcpfactory_pipeline.plan.plan import required_checks  # noqa: PLC0415 - imports all stages
    from mcpfactory_pipeline.stages import workspace_stages  # noqa: PLC0415 - imports all stages; few servers need it

    server, channels = state.server, read_channels(workspace)
    there, known = state.channels.get(policy.name), state.candidates[candidate]
    # An older candidate became current again, because its offer was adopted again.
    if there and state.candidates[there.candidate].number > known.number:
        back = f"mcpfactory pipeline rollback {server} --channel {policy.name} --candidate {candidate} --reason '…'"
        return (back if policy.name in known.channels else f"mcpfactory inbox {server}",)
    blockers = find_promotion_blockers(
        policy,
        required_checks(workspace_stages(workspace), policy, channels),
        state,
        candidate,
        events=Store(workspace).history(server),
        now=utc_now(),
    )
    if any(blocker.kind not in _DECIDED for blocker in blockers):
        return (f"mcpfactory inbox {server}",)
    promote = f"mcpfactory pipeline promote {server} --channel {policy.name}"
    return tuple(dict.fromkeys([*(blocker.command for blocker in blockers), promote]))
