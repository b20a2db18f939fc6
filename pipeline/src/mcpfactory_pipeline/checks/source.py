"""A server of a workspace, examined as its sources are now; the stage `validate` examines what was built of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.adoption.watch import look_now
from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.checks.examine import validate
from mcpfactory_pipeline.checks.places import source_places
from mcpfactory_pipeline.checks.report import Report
from mcpfactory_pipeline.checks.target import ValidationTarget
from mcpfactory_pipeline.launch.command import server_command, server_environ
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.workspace.adopted import Adopted
from mcpfactory_pipeline.workspace.waivers import read_waiver_policy, read_waivers
from mcpfactory_pipeline.workspace.workspace import CALLS, Workspace, WorkspaceServer

__all__ = ["FULL_TOOL_SET", "validate_source", "with_locations"]


# All tools, in the standard dialect: there are cases for every one. Servers of a template answer from their example, for the data that they are
# for is not here.
FULL_TOOL_SET: Final = {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard", "MCPFACTORY_DEMO": "1"}


async def validate_source(
    workspace: Workspace,
    name: str,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109 - as `validate`
    api_timeout: float = 1.5,
    limits: Mapping[str, float] | None = None,
) -> Report:
    """Return the report on a server's sources, with its waivers counted and the places of its tools.

    `limits` are what it may cost; they go before those of the workspace's channels.

    Raises:
        NotFoundError: for an unknown server.
        ConfigError: for waivers that cannot be read, and as `server_command` does.
    """
    server = workspace.server(name)
    target = replace(
        await (_adopted_target(server, server.adopted) if server.adopted else _own_target(server)),
        api_timeout=api_timeout,
        limits={**cost_limits(read_channels(workspace)), **(limits or {})},
    )
    policy = read_waiver_policy(workspace.config.get("waivers", {}))
    report = await validate(target, timeout=timeout, waivers=read_waivers(server.folder), policy=policy)
    return with_locations(report, workspace.root, server.folder)


async def _own_target(server: WorkspaceServer) -> ValidationTarget:
    return ValidationTarget(
        command=tuple(await asyncio.to_thread(server_command, server)),
        environ=server_environ(server) | FULL_TOOL_SET,
        cases=server.cases if server.cases.exists() else None,
        package=server.folder,
    )


async def _adopted_target(server: WorkspaceServer, adopted: Adopted) -> ValidationTarget:
    """One that others wrote is judged from outside, as its stage does: by calls that a person gave, and not by how it is packed."""
    calls = server.folder / CALLS
    examples = calls if calls.is_file() else None
    try:
        drift, offer = await look_now(adopted, server.folder, server.folder / LOCKS["url"])
    except (ServerError, ProgramRefusedError, OSError):
        drift, offer = None, ""  # nobody can tell; whether it answers, the rules say
    about: dict[str, Any] = {"examples": examples, "drift": drift, "drift_offer": offer}
    if adopted.url:
        return ValidationTarget(url=adopted.url, **about)
    command = tuple(await asyncio.to_thread(server_command, server))
    return ValidationTarget(command=command, environ=server_environ(server), **about)


def with_locations(report: Report, root: Path, folder: Path) -> Report:
    """Return a report with the files and lines that its findings are about, of the server in `folder`."""
    names = [tool["name"] for tool in report.listed if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    return replace(report, locations=source_places(root, folder, names))
