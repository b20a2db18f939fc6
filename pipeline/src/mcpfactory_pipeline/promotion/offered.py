"""What channels have of a server at a URL: a candidate of the offer that was adopted last, or of an earlier one, and what brings that one in."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.plan.policy import Blocker, ChannelPolicy, find_blockers, find_channel, read_channels
from mcpfactory_pipeline.promotion.drifted import drift_blockers, is_of_other_offer
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["channel_drift", "drift_sentence", "offered_drift", "way_to_offer"]

_EARLIER: Final = "offer"  # kind of what a channel has, where the server is what was adopted
_DECIDED: Final = frozenset({"hold", "rejection", "approval", "retired"})  # kinds that a decision removes


def channel_drift(workspace: Workspace, server: WorkspaceServer, state: ServerState, channel: str) -> list[Blocker]:
    """Return why an adopted server is not given to a client from a channel ("": from its files here); nothing where it may be.

    Raises:
        ConfigError: what is known, or waived, or the channels cannot be read.
    """
    candidate = state.channels[channel].candidate if channel else ""
    own = drift_blockers(server, state)
    if not candidate or not is_of_other_offer(server, state, candidate):
        return own
    words = f"{channel} offers candidate {candidate} of {server.name}, which is of an earlier offer"
    then = f"and {own[0].message}" if own else "what its URL offers now was adopted since"
    return [Blocker(_EARLIER, f"{words}; {then}", ", then ".join(way_to_offer(workspace, server, state, channel)))]


def offered_drift(workspace: Workspace, server: WorkspaceServer, state: ServerState) -> list[Blocker]:
    """Return `channel_drift` of the last channel that offers a server: what clients are given by default.

    Raises:
        ConfigError: as `channel_drift`.
    """
    offered = [row.name for row in read_channels(workspace) if row.name in state.channels]
    return channel_drift(workspace, server, state, offered[-1] if offered else "")


def drift_sentence(server: WorkspaceServer, drift: Blocker) -> str:
    """Return one of `channel_drift` as a sentence that names the server."""
    return drift.message if drift.kind == _EARLIER else f"{server.name} is not what was adopted: {drift.message}"


def way_to_offer(workspace: Workspace, server: WorkspaceServer, state: ServerState, channel: str) -> tuple[str, ...]:
    """Return the commands, one after another, that bring what was adopted last of a URL into a channel which has an earlier offer.

    Where its URL offers something else by now, that is adopted first; where a channel before it has an earlier offer, too, it
    is the way into that one. What no decision removes, as a failed check, `inbox` tells.

    Raises:
        ConfigError: as `channel_drift`.
    """
    if own := drift_blockers(server, state):
        return (own[0].command,)
    channels, name = read_channels(workspace), server.name
    if channel not in {row.name for row in channels}:
        return (f"mcpfactory pipeline status {name}",)
    policy = find_channel(channels, channel)
    while policy.source and not _has_present(server, state, policy.source):
        policy = find_channel(channels, policy.source)
    chosen = state.channels[policy.source].candidate if policy.source else state.candidate
    if chosen is None or is_of_other_offer(server, state, chosen):
        failed = any(record.outcome != "passed" for record in state.stages.values())
        return (f"mcpfactory inbox {name}" if failed else f"mcpfactory pipeline run {name}",)
    return _way_of(workspace, state, policy, chosen)


def _has_present(server: WorkspaceServer, state: ServerState, channel: str) -> bool:
    release = state.channels.get(channel)
    return release is not None and not is_of_other_offer(server, state, release.candidate)


def _way_of(workspace: Workspace, state: ServerState, policy: ChannelPolicy, candidate: str) -> tuple[str, ...]:
    """Return the commands that move a candidate into a channel."""
    from mcpfactory_pipeline.plan.order import required_checks  # noqa: PLC0415 - with all stages, and few servers need it
    from mcpfactory_pipeline.stages import workspace_stages  # noqa: PLC0415 - as above

    server, channels = state.server, read_channels(workspace)
    there, known = state.channels.get(policy.name), state.candidates[candidate]
    if there and state.candidates[there.candidate].number > known.number:  # built before, and adopted again
        back = f"mcpfactory pipeline rollback {server} --channel {policy.name} --candidate {candidate} --reason '…'"
        return (back if policy.name in known.channels else f"mcpfactory inbox {server}",)
    blockers = find_blockers(
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
