"""Distribution names across a workspace: two servers with one name would overwrite each other in every channel."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.promotion.decision import projects_of
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.broken import BrokenServer, contain
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["name_clashes"]


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
    """Return the server that was built under a name first; "" where none was, or that cannot be told."""
    store, built = Store(workspace), []
    for server in servers:
        state = contain(server, partial(store.state, server))
        if isinstance(state, BrokenServer):
            return ""
        if any(project in projects_of(state, candidate=name) for name in state.candidates):
            built.append(server)
    return built[0] if len(built) == 1 else ""


def _distribution_name(workspace: Workspace, server: str) -> str:
    """Return the normalised name in a server's pyproject.toml; "" where there is none: the stage `build` says why."""
    try:
        project = tomllib.loads((workspace.root / "servers" / server / "pyproject.toml").read_text(encoding="utf-8"))
        return re.sub(r"[-_.]+", "-", str(project["project"]["name"])).lower()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
