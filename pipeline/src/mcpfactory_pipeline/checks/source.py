"""A server of a workspace, examined as its sources are now; the stage `validate` examines what was built of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from mcpfactory_pipeline.checks.examine import validate
from mcpfactory_pipeline.checks.places import tool_locations
from mcpfactory_pipeline.checks.report import Report
from mcpfactory_pipeline.checks.target import ValidationTarget
from mcpfactory_pipeline.launch.command import server_command
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.workspace.launch import server_environ
from mcpfactory_pipeline.workspace.waivers import read_waivers
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["validate_source"]


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

    Raises `NotFoundError` for an unknown server, `ConfigError` for waivers that cannot be read, and as `server_command` does.
    """
    server = workspace.server(name)
    target = ValidationTarget(
        command=tuple(await asyncio.to_thread(server_command, server)),
        environ=server_environ(server)
        | {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard"},  # there are cases for every tool
        cases=server.cases if server.cases.exists() else None,
        package=server.folder,
        api_timeout=api_timeout,
        limits={**cost_limits(read_channels(workspace)), **(limits or {})},
    )
    report = await validate(target, timeout=timeout, waivers=read_waivers(server.folder))
    tools = [str(tool["name"]) for tool in report.listed if isinstance(tool, dict) and "name" in tool]
    return replace(report, locations=tool_locations(workspace.root, server.folder, tools))
