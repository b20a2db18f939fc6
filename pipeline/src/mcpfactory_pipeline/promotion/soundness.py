"""What `verify` refuses, nobody promotes, publishes or restores: state against history, history against commits, signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.plan.policy import ChannelPolicy, read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.promotion.signatures import SIGNERS, approval_faults, hold_faults, stage_faults
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.broken import BrokenServer, contain
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["faults", "refuse_unsound", "require_sound", "signature_faults"]


def faults(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    against: str = "",
    head: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return all that is wrong with what servers say of themselves, as `verify` returns differences; `head` is as there.

    Raises:
        NotFoundError: for a server that never was, or a commit.
    """
    return [*verify(workspace, names, against=against, head=head), *signature_faults(workspace, names)]


def signature_faults(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the servers whose decisions lack a signature that a channel or a stage asks for."""
    channels, stages = read_channels(workspace), workspace_stages(workspace)
    if not any(channel.signed for channel in channels) and not any(s.approval and s.approval.signed for s in stages):
        return []
    store, found = Store(workspace), []
    for server in names or store.servers():
        wrong = contain(server, partial(_unsigned, workspace, server, channels, stages))
        if wrong and not isinstance(wrong, BrokenServer):  # what cannot be read is a difference of its own
            message = f"{server} has decisions that do not count: {wrong[0]}"
            hint = f"who decides signs: mcpfactory pipeline approve {server} --sign-with KEY; keys are in {SIGNERS}"
            found.append({"server": server, "message": message, "hint": hint, "changes": wrong})
    return found


def _unsigned(
    workspace: Workspace, server: str, channels: Sequence[ChannelPolicy], stages: Sequence[Stage]
) -> list[str]:
    events = Store(workspace).history(server)
    state = fold(server, events)
    return [
        *approval_faults(workspace, state, events, channels),
        *hold_faults(workspace, state, events, channels),
        *stage_faults(workspace, state, events, stages),
    ]


def require_sound(workspace: Workspace, server: str) -> None:
    """Raise `RefusedError` for a server that `verify` would refuse; a state that is behind its history is brought up to date first.

    Raises:
        RefusedError: what is wrong, as `verify` says it.
        StateError: its files cannot be read.
    """
    store = Store(workspace)
    if not store.history_file(server).exists() and store.state_text(server) is None:
        return
    with store.transaction(
        server
    ):  # a run that broke off leaves a state that is behind, and writing brings it up to date
        pass
    refuse_unsound(workspace, server)


def refuse_unsound(workspace: Workspace, server: str, *, head: Mapping[str, str] | None = None) -> None:
    """Raise `RefusedError` for a server that `verify` would refuse, as its files are. Nothing is written.

    `head` is what `head_histories` gave, where many servers are judged one after another.

    Raises:
        RefusedError: what is wrong, as `verify` says it.
        StateError: its files cannot be read.
    """
    for wrong in faults(workspace, [server], head=head):
        raise RefusedError(f"{wrong['message']}: {'; '.join(wrong['changes'][:3])}".rstrip(": "), hint=wrong["hint"])
