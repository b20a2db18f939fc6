from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Names, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.base.errors import PipelineError
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of one check. `level` is "ok", "warning" or "error"."""

    level: str
    about: str
    message: str
    hint: str = ""

    @classmethod
    def from_error(cls, level: str, about: str, error: PipelineError) -> Diagnosis:
        """Return the diagnosis for an error."""
        return cls(level, about, str(error), error.hint)


def doctor(names: Names = None, as_json: AsJson = False) -> None:
    """Check this machine, the workspace and server credentials.

    The command prints where to get each missing credential.
    """
    found = [*_check_machine(), *_check_workspace(names or [], every_warning=bool(names) or as_json)]
    if as_json:
        output.data([asdict(diagnosis) for diagnosis in found])
    else:
        styles = {"ok": "good", "warning": "warn", "error": "bad"}
        for diagnosis in found:
            output.line(
                f"{output.styled(f'{diagnosis.level:7}', styles[diagnosis.level])} {diagnosis.about}: {diagnosis.message}"
            )
            if diagnosis.hint:
                output.line(f"        hint: {diagnosis.hint}")
    if any(diagnosis.level == "error" for diagnosis in found):
        raise typer.Exit(Exit.SYSTEM_ERROR)


def _check_machine() -> Iterator[Diagnosis]:
    """Check Python, git, uv, and the runtime that stages after `build` need."""
    from mcpfactory_pipeline.base.errors import PipelineError
    from mcpfactory_pipeline.base.git import git_output
    from mcpfactory_pipeline.build.factory_distributions import describe_runtime

    try:
        yield Diagnosis("ok", "runtime", describe_runtime())
    except PipelineError as error:
        yield Diagnosis.from_error("error", "runtime", error)
    yield Diagnosis("ok", "python", f"{platform.python_version()} at {sys.executable}")
    if git := shutil.which("git"):
        yield Diagnosis("ok", "git", git)
        if git_output(None, "var", "GIT_COMMITTER_IDENT") is None:
            name_and_mail = (
                "git config --global user.name 'Your Name' && git config --global user.email you@example.com"
            )
            yield Diagnosis("warning", "git", "no name and email (user.name, user.email): commits fail", name_and_mail)
    else:
        yield Diagnosis("warning", "git", "not found", "install git: commit the state files")
    try:
        from uv import find_uv_bin

        yield Diagnosis("ok", "uv", find_uv_bin())
    except (ImportError, FileNotFoundError):
        yield Diagnosis("error", "uv", "not found: wheels cannot be built", "pip install --force-reinstall uv")


def _check_workspace(names: list[str], *, every_warning: bool) -> Iterator[Diagnosis]:
    from mcpfactory_pipeline.base.errors import ConfigError, WorkspaceError
    from mcpfactory_pipeline.base.text import pluralize

    try:
        workspace = selected_workspace()
    except (WorkspaceError, ConfigError) as error:
        yield Diagnosis.from_error("warning" if isinstance(error, WorkspaceError) else "error", "workspace", error)
        return
    yield _check_isolation(workspace)
    servers, broken = workspace.load_servers(names)
    yield Diagnosis("ok", "workspace", f"{workspace.name} with {pluralize(len(workspace.servers()), 'server')}")
    yield from _check_origin(workspace)
    yield from _check_variables(workspace)
    for one in broken:
        yield Diagnosis("error", one.name, one.message, one.hint)
    for server in servers:
        checks = [*_check_server(server), _check_environment(server, start=bool(names))]
        yield from checks if every_warning else _merge_warnings(checks)


def _merge_warnings(checks: list[Diagnosis]) -> Iterator[Diagnosis]:
    """Replace several warnings about a server by the first one, and count the others."""
    warnings = [one for one in checks if one.level == "warning"]
    yield from (one for one in checks if len(warnings) < 2 or one.level != "warning")
    if len(warnings) > 1:
        message = f"{warnings[0].message}; and {len(warnings) - 1} more"
        yield replace(warnings[0], message=message, hint=f"mcpfactory doctor {warnings[0].about}")


def _check_isolation(workspace: Workspace) -> Diagnosis:
    """Report the isolation level of server code that the pipeline runs on this machine."""
    from mcpfactory_pipeline.base.errors import ConfigError, StageError
    from mcpfactory_pipeline.isolation.levels import NONE, describe_unavailable_levels, find_isolation_level

    try:
        wanted = workspace.settings.pipeline.isolation
        level = find_isolation_level(wanted)
    except ConfigError as error:
        return Diagnosis.from_error("error", "isolation", error)
    except StageError as error:
        return Diagnosis.from_error("warning", "isolation", error)
    words = f"{level.name}: {level.says}"
    if level is not NONE or wanted == NONE.name:
        return Diagnosis("ok", "isolation", words)
    return Diagnosis(
        "warning",
        "isolation",
        f"{words} ({describe_unavailable_levels()})",
        "install bubblewrap, or run only servers that you trust",
    )


def _check_origin(workspace: Workspace) -> Iterator[Diagnosis]:
    """Check that CI jobs install this version of the factory, and that uv finds its runtime."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.delivery.ci.factory_origin import (
        FOLDER,
        factory_wheels,
        read_origin,
        stale_factory_wheels_error,
        unconfigured_uv_error,
    )
    from mcpfactory_pipeline.maintenance.workspace_setup import git_ignored_paths

    try:
        origin = read_origin(workspace.settings)
    except ConfigError as error:
        yield Diagnosis.from_error("error", "factory", error)
        return
    if origin is None:
        return
    problems = [stale_factory_wheels_error(workspace.root, origin), unconfigured_uv_error(workspace.root, origin)]
    warnings = [Diagnosis.from_error("warning", "factory", problem) for problem in problems if problem]
    yield from warnings
    wheels = factory_wheels(workspace.root / origin.place) if origin.kind == FOLDER else []
    if lost := git_ignored_paths(workspace.root, [wheel.relative_to(workspace.root).as_posix() for wheel in wheels]):
        yield Diagnosis("warning", "factory", f"git ignores {lost[0]}", f"git add --force {' '.join(lost)}")
    if not warnings and not lost:
        yield Diagnosis("ok", "factory", f"jobs install mcpfactory from {origin}")


def _check_variables(workspace: Workspace) -> Iterator[Diagnosis]:
    """Find API addresses and variables that several servers share. `run` and `serve` refuse shared addresses."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.workspace.api_addresses import refuse_shared_in_workspace, shared_variables

    try:
        for server in workspace.servers():
            refuse_shared_in_workspace(workspace, server, os.environ)
    except ConfigError as error:
        yield Diagnosis.from_error("warning", "workspace", error)
    hint = "run each in its own environment, or rename one: mcpfactory rename"
    for names, variables in shared_variables(workspace.load_servers()[0]).items():
        yield Diagnosis("warning", "workspace", f"{' and '.join(names)} both read {', '.join(variables)}", hint)


def _check_environment(server: WorkspaceServer, *, start: bool) -> Diagnosis:
    from mcpfactory_pipeline.base.errors import PipelineError, ServerError
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.launch.server_environment import find_server_python

    try:
        python, lacking = find_server_python(server)
    except ServerError as error:
        return Diagnosis.from_error("warning", server.name, error)
    if lacking:
        unused = f"servers/{server.name}/.venv is not used: it lacks {lacking}"
        return Diagnosis("warning", server.name, unused, "install the missing packages, or delete .venv")
    if python is None:
        return Diagnosis("ok", server.name, "its environment is created at the first start")
    if not start:
        return Diagnosis("ok", server.name, f"has {python}; mcpfactory doctor {server.name} starts it")
    try:
        tools = asyncio.run(_count_tools(server))
    except PipelineError as error:
        return Diagnosis.from_error("error", server.name, error)
    return Diagnosis("ok", server.name, f"starts with {python}, and lists {pluralize(tools, 'tool')}")


async def _count_tools(server: WorkspaceServer) -> int:
    from mcpfactory_pipeline.launch.server_connection import connect_server

    async with connect_server(server) as client:
        return len(await client.list_tools())


def _check_server(server: WorkspaceServer) -> Iterator[Diagnosis]:
    """Check a server's API address, permission for calls, and credentials of each security scheme."""
    from mcpfactory_pipeline.base.errors import StageError
    from mcpfactory_pipeline.workspace.api_addresses import api_addresses, security_scheme_statuses
    from mcpfactory_pipeline.workspace.coverage import inspection_report

    try:
        data = inspection_report(server.folder) or {}
    except StageError as error:
        yield Diagnosis.from_error("error", server.name, error)
        return
    if data and "credentials" not in data:
        again = f"mcpfactory pipeline run {server.name} --until generate --force"
        yield Diagnosis(
            "warning", server.name, "generated by an older mcpfactory that did not record its credentials", again
        )
        return
    if address := data.get("address"):
        for one in api_addresses(address, os.environ, server=server.name):
            yield Diagnosis("ok" if one.is_usable and not one.hint else "warning", server.name, one.message, one.hint)
    schemes = security_scheme_statuses(server.name, data["credentials"], os.environ) if data else []
    if not schemes:
        yield Diagnosis("ok", server.name, "needs no credentials")
    for scheme in schemes:
        if not scheme.missing:
            yield Diagnosis("ok", server.name, f"{scheme.scheme}: has what it needs")
        else:
            then = f"{scheme.tools} tools cannot be called" if scheme.tools else "every tool supports another scheme"
            level = "warning" if scheme.tools else "ok"
            yield Diagnosis(level, server.name, f"{scheme.scheme}: {scheme.missing}; {then}", scheme.hint)
