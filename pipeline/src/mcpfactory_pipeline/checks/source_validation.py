"""Validate a server of the workspace from its sources, and locate findings in the sources."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.adoption.drift_check import compare_with_adopted
from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.checks.exchange import ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.validation import validate
from mcpfactory_pipeline.launch.start_command import server_command, server_environ
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.workspace.waivers import read_waivers
from mcpfactory_pipeline.workspace.workspace import CALLS, Workspace, WorkspaceServer

Place = tuple[str, int]  # path below the workspace, and line number

_MANIFEST: Final = re.compile(r'^\{"name": ?"([^"]{1,200})"')  # each line of the manifest names one tool
_LARGEST: Final = 2_000_000  # bytes; larger hand-written modules are not searched
_REGISTERS: Final = ("tool", "add_tool")  # methods of a server that register a tool
# Subject of a finding about the package → file that causes the finding.
_FILES: Final[Mapping[str, str]] = {
    "README": "README.md",
    "project": "pyproject.toml",
    "pyproject.toml": "pyproject.toml",
}


def find_source_locations(root: Path, folder: Path, tools: Iterable[str]) -> dict[str, Place]:
    """Return the places of the tools, and of other subjects of findings, for the server in `folder`.

    The place of a tool is its registration (decorator or call) under its listed name. Without a registration, the place
    is a line in a manifest, or a function with the tool's name. Tools without a place are omitted. The key "" means the
    server; its place is the line that creates the server, or else its `mcpfactory.toml`.
    """
    modules = [(file, tree) for file in sorted((folder / "src").rglob("*.py")) if (tree := _parsed(file)) is not None]
    found: dict[str, Place] = {}
    for find in (find_registered_tools, _functions):
        for file, tree in modules:
            for name, line in find(tree):
                found.setdefault(name, (file.relative_to(root).as_posix(), line))
        if find is find_registered_tools:
            found = {**_manifest_lines(root, folder), **found}
    wanted = set(tools)
    places = {name: place for name, place in found.items() if name in wanted}
    for about, name in _FILES.items():
        if (folder / name).is_file():
            places.setdefault(about, ((folder / name).relative_to(root).as_posix(), 1))
    made = next(
        ((file, line) for file, tree in modules for line in _server_lines(tree)), (folder / "mcpfactory.toml", 1)
    )
    return {**places, "": (made[0].relative_to(root).as_posix(), made[1])}


def find_registered_tools(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of each tool: `@server.tool`, `@server.tool("name")`, `server.tool(function, name="name")`."""
    functions = dict(_functions(tree))
    decorating: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                if _is_register(call.func if call else decorator):
                    decorating.add(id(decorator))
                    yield (_given_name(call) if call else "") or node.name, node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_register(node.func) and id(node) not in decorating:
            function = node.args[0].id if node.args and isinstance(node.args[0], ast.Name) else ""
            if name := _given_name(node) or function:
                yield name, functions.get(function, node.lineno)


def _parsed(file: Path) -> ast.Module | None:
    try:
        if "_generated" in file.parts or file.stat().st_size > _LARGEST:
            return None
        return ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def _manifest_lines(root: Path, folder: Path) -> dict[str, Place]:
    lines: dict[str, Place] = {}
    for file in sorted(one for one in (folder / "src").rglob("manifest.json") if one.is_file()):
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if name := _MANIFEST.match(line):
                lines.setdefault(name[1], (file.relative_to(root).as_posix(), number))
    return lines


def _server_lines(tree: ast.Module) -> Iterator[int]:
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Server":
            yield node.lineno


def _is_register(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _REGISTERS


def _given_name(call: ast.Call) -> str:
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "name")]
    return next((one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)), "")


# The server lists all its tools in the standard dialect, because each tool has cases. A server from a template returns
# its example data, because the real data is not available here.
FULL_TOOL_SET: Final = {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard", "MCPFACTORY_DEMO": "1"}


async def validate_source(
    workspace: Workspace,
    name: str,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109 - seconds, as for `validate`
    api_timeout: float = 1.5,
    limits: Mapping[str, float] | None = None,
) -> ValidationReport:
    """Return the report on a server's sources; waivers are applied, and tools have locations.

    `limits` are resource limits that override the limits of the workspace's channels.

    Raises:
        NotFoundError: unknown server.
        ConfigError: the waivers cannot be read. Other errors are those of `server_command`.
    """
    server = workspace.server(name)
    target = replace(
        await (_adopted_target(server, server.adopted) if server.adopted else _own_target(server)),
        api_timeout=api_timeout,
        limits={**cost_limits(read_channels(workspace)), **(limits or {})},
    )
    policy = workspace.settings.waivers
    report = await validate(target, timeout=timeout, waivers=read_waivers(server.folder), policy=policy)
    return with_locations(replace(report, target=name), workspace.root, server.folder)


async def _own_target(server: WorkspaceServer) -> ValidationTarget:
    return ValidationTarget(
        command=tuple(await asyncio.to_thread(server_command, server)),
        environ=server_environ(server) | FULL_TOOL_SET,
        cases=server.cases if server.cases.exists() else None,
        package=server.folder,
    )


async def _adopted_target(server: WorkspaceServer, adopted: AdoptedSettings) -> ValidationTarget:
    calls = server.folder / CALLS
    examples = calls if calls.is_file() else None
    try:
        drift, offer = await compare_with_adopted(adopted, server.folder, server.folder / LOCKS["url"])
    except (ServerError, ToolRejectedInputError, OSError):
        drift, offer = None, ""  # the drift is unknown; other rules check if the server answers
    about: dict[str, Any] = {"examples": examples, "drift": drift, "drift_offer": offer}
    if adopted.url:
        return ValidationTarget(url=adopted.url, **about)
    command = tuple(await asyncio.to_thread(server_command, server))
    return ValidationTarget(command=command, environ=server_environ(server), **about)


def with_locations(report: ValidationReport, root: Path, folder: Path) -> ValidationReport:
    """Return the report with the file and line of each finding, for the server in `folder`.

    Paths of files are relative to the root of the repository, which may be a parent folder of the workspace.
    """
    names = [tool["name"] for tool in report.listed if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    prefix = git_text(root, "rev-parse", "--show-prefix")
    places = find_source_locations(root, folder, names)
    return replace(report, locations={about: (prefix + file, line) for about, (file, line) in places.items()})
