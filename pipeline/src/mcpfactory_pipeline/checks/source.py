"""A server of a workspace, examined as its sources are now; the stage `validate` examines what was built of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.checks.examine import validate
from mcpfactory_pipeline.checks.report import Report
from mcpfactory_pipeline.checks.target import ValidationTarget
from mcpfactory_pipeline.launch.command import server_command, server_environ
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.workspace.waivers import read_waiver_policy, read_waivers
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["FULL_TOOL_SET", "validate_source", "with_locations"]


# All tools, in the standard dialect: there are cases for every one.
FULL_TOOL_SET: Final = {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard"}
_MANIFEST: Final = re.compile(r'^\{"name": ?"([^"]{1,200})"')  # one tool a line
_FUNCTION: Final = re.compile(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(")
_LARGEST: Final = 2_000_000  # bytes of a hand-written module that is searched


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
    target = ValidationTarget(
        command=tuple(await asyncio.to_thread(server_command, server)),
        environ=server_environ(server) | FULL_TOOL_SET,
        cases=server.cases if server.cases.exists() else None,
        package=server.folder,
        api_timeout=api_timeout,
        limits={**cost_limits(read_channels(workspace)), **(limits or {})},
    )
    policy = read_waiver_policy(workspace.config.get("waivers", {}))
    report = await validate(target, timeout=timeout, waivers=read_waivers(server.folder), policy=policy)
    return with_locations(report, workspace.root, server.folder)


def with_locations(report: Report, root: Path, folder: Path) -> Report:
    """Return a report with the file and line of each tool of the server in `folder`."""
    names = [tool["name"] for tool in report.listed if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    return replace(report, locations=tool_locations(root, folder, names))


def tool_locations(root: Path, folder: Path, tools: Iterable[str]) -> dict[str, tuple[str, int]]:
    """(file, line) of each tool of the server in `folder`, with the file below `root`; "" is the server's `mcpfactory.toml`.

    A tool of a manifest is on its line there, a written one at the function of its name; one that is in neither is left out.
    """
    wanted, found = set(tools), {"": ((folder / "mcpfactory.toml").relative_to(root).as_posix(), 1)}
    for file in sorted((folder / "src").rglob("*.py")):
        if "_generated" not in file.parts:
            _find_lines(file, root, _FUNCTION, wanted, found)
    for file in sorted((folder / "src").rglob("manifest.json")):
        _find_lines(file, root, _MANIFEST, wanted, found)
    return found


def _find_lines(
    file: Path, root: Path, mark: re.Pattern[str], wanted: set[str], found: dict[str, tuple[str, int]]
) -> None:
    if mark is _FUNCTION and file.stat().st_size > _LARGEST:
        return
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        name = mark.match(line)
        if name and name[1] in wanted:
            found.setdefault(name[1], (file.relative_to(root).as_posix(), number))
