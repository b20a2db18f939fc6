"""Integrity checks before a promotion: state against history, names across servers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.decisions.decision import projects_of
from mcpfactory_pipeline.decisions.signatures import SIGNERS, approval_faults, hold_faults, stage_faults
from mcpfactory_pipeline.plan.policy import ChannelPolicy, read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import BrokenServer, Workspace, contain


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
        if wrong and not isinstance(wrong, BrokenServer):  # an unreadable server is a separate difference
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


def name_clashes(workspace: Workspace, names: Sequence[str]) -> dict[str, BrokenServer]:
    """Return those of the named servers whose distribution name is the runtime's or another server's, each with the reason.

    Of servers with one name, the one that was built under it first keeps it. Where none was built yet, all are refused.
    """
    holders: dict[str, list[str]] = {}
    for server in workspace.names():
        if project := _distribution_name(workspace, server):
            holders.setdefault(project, []).append(server)
    return {one.name: one for one in _clashes(workspace, holders) if one.name in set(names)}


def _clashes(workspace: Workspace, holders: dict[str, list[str]]) -> Iterator[BrokenServer]:
    hint = "give the server another name in [project] of its pyproject.toml; case, -, _ and . do not tell names apart"
    for project, servers in holders.items():
        if project == RUNTIME:
            yield from (
                BrokenServer(server, f"{server} has the distribution name of the runtime, {RUNTIME}", hint)
                for server in servers
            )
        elif len(servers) > 1:
            owner = _owner(workspace, project, servers)
            for server in servers:
                if server != owner:
                    others = owner or ", ".join(other for other in servers if other != server)
                    yield BrokenServer(server, f"{server} has the distribution name of {others}, {project}", hint)


def _owner(workspace: Workspace, project: str, servers: Iterable[str]) -> str:
    """Return the server that was first built under a name; "" if none was, or if unknown."""
    store, built = Store(workspace), []
    for server in servers:
        state = contain(server, partial(store.state, server))
        if isinstance(state, BrokenServer):
            return ""
        if any(project in projects_of(state, candidate=name) for name in state.candidates):
            built.append(server)
    return built[0] if len(built) == 1 else ""


def _distribution_name(workspace: Workspace, server: str) -> str:
    """Return the normalized name in a server's pyproject.toml; "" if missing: the stage `build` reports why."""
    try:
        project = tomllib.loads((workspace.root / "servers" / server / "pyproject.toml").read_text(encoding="utf-8"))
        return re.sub(r"[-_.]+", "-", str(project["project"]["name"])).lower()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
