from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Names, workspace_in

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at. `level`: ok, warning (something will not work) or error (nothing will)."""

    level: str
    about: str
    message: str
    hint: str = ""


def doctor(names: Names = None, as_json: AsJson = False) -> None:
    """Look for what is missing: tools, workspace, and the credentials of each server, with where to get them."""
    found = [*_machine(), *_workspace(names or [])]
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
        raise typer.Exit(Exit.BROKEN)


def _machine() -> list[Diagnosis]:
    python = Diagnosis("ok", "python", f"{platform.python_version()} at {sys.executable}")
    git = shutil.which("git")
    return [
        *_runtime(),
        python,
        Diagnosis("ok", "git", git)
        if git
        else Diagnosis("warning", "git", "not found", "install git: state is meant to be tracked"),
        _uv(),
    ]


def _runtime() -> list[Diagnosis]:
    """Whether the runtime can be handed out to servers: comes first, for without it no stage after `build` works."""
    from mcpfactory_pipeline.base.errors import PipelineError
    from mcpfactory_pipeline.build.distributions import describe_runtime

    try:
        return [Diagnosis("ok", "runtime", describe_runtime())]
    except PipelineError as error:
        return [Diagnosis("error", "runtime", str(error), error.hint)]


def _uv() -> Diagnosis:
    try:
        from uv import find_uv_bin

        return Diagnosis("ok", "uv", find_uv_bin())
    except (ImportError, FileNotFoundError):
        return Diagnosis("error", "uv", "not found: wheels cannot be built", "pip install --force-reinstall uv")


def _workspace(names: list[str]) -> list[Diagnosis]:
    from mcpfactory_pipeline.workspace.workspace import ConfigError, WorkspaceError

    try:
        workspace = workspace_in()
    except WorkspaceError as error:
        return [Diagnosis("warning", "workspace", str(error), error.hint)]
    except ConfigError as error:
        return [Diagnosis("error", "workspace", str(error), error.hint)]
    servers, broken = workspace.survey(names)
    found = [
        Diagnosis("ok", "workspace", f"{workspace.name} with {len(workspace.servers())} servers"),
        *_factory(workspace),
    ]
    found += _shared_address(workspace)
    found += _in_common(workspace.survey()[0])
    found += [Diagnosis("error", one.name, one.message, one.hint) for one in broken]
    for server in servers:
        found += [*_server(server), _environment(server)]
    return found


def _factory(workspace: Workspace) -> list[Diagnosis]:
    """Whether jobs get the factory that is at work here, and uv its runtime."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.ci.origin import FOLDER, read_origin
    from mcpfactory_pipeline.ci.origin_files import stale_wheels, unconfigured_project
    from mcpfactory_pipeline.ci.vendored import own_wheels
    from mcpfactory_pipeline.init.repository import ignored

    try:
        origin = read_origin(workspace.config)
    except ConfigError as error:
        return [Diagnosis("error", "factory", str(error), error.hint)]
    if origin is None:
        return []
    found = [stale_wheels(workspace.root, origin), unconfigured_project(workspace.root, origin)]
    bad = [Diagnosis("warning", "factory", str(error), error.hint) for error in found if error]
    wheels = own_wheels(workspace.root / origin.place) if origin.kind == FOLDER else []
    if lost := ignored(workspace.root, [wheel.relative_to(workspace.root).as_posix() for wheel in wheels]):
        bad.append(Diagnosis("warning", "factory", f"git ignores {lost[0]}", f"git add --force {' '.join(lost)}"))
    return bad or [Diagnosis("ok", "factory", f"jobs take it from {origin}")]


def _environment(server: WorkspaceServer) -> Diagnosis:
    """Return what a server runs with on this machine."""
    from mcpfactory_pipeline.base.errors import ServerError
    from mcpfactory_pipeline.launch.environment import find_python

    try:
        python, lacking = find_python(server)
    except ServerError as error:
        return Diagnosis("warning", server.name, str(error), error.hint)
    if lacking:
        return Diagnosis(
            "warning",
            server.name,
            f"servers/{server.name}/.venv is not used: it lacks {lacking}",
            "install that, or delete it",
        )
    return Diagnosis(
        "ok", server.name, f"runs with {python}" if python else "its environment is made at its first start"
    )


def _shared_address(workspace: Workspace) -> list[Diagnosis]:
    """One address for the APIs of several servers is what `run`, `call` and `serve` refuse."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.workspace.address import refuse_among_many

    for server in workspace.servers():
        try:
            refuse_among_many(workspace, server, os.environ)
        except ConfigError as error:
            return [Diagnosis("warning", "workspace", str(error), error.hint)]
    return []


def _in_common(servers: Sequence[WorkspaceServer]) -> list[Diagnosis]:
    """Names of servers that lead to the same variables."""
    from mcpfactory_pipeline.workspace.address import shared_variables

    hint = "run them where each has its own environment, or give one another name: mcpfactory rename"
    return [
        Diagnosis("warning", "workspace", f"{' and '.join(names)} both read {', '.join(variables)}", hint)
        for names, variables in shared_variables(servers).items()
    ]


def _addresses(server: str, address: Mapping[str, Any]) -> list[Diagnosis]:
    """Where its API lives, and whether it may be called there."""
    from mcpfactory_pipeline.workspace.upstream import api_addresses

    found = api_addresses(address, os.environ, server=server) if address else []
    return [Diagnosis("ok" if one.works else "warning", server, one.message, one.hint) for one in found]


def _server(server: WorkspaceServer) -> list[Diagnosis]:
    """Where its API is, and what it lacks, scheme by scheme."""
    from mcpfactory_pipeline.base.errors import StageError
    from mcpfactory_pipeline.workspace.coverage import inspection_report
    from mcpfactory_pipeline.workspace.upstream import scheme_statuses

    try:
        data = inspection_report(server.folder) or {}
    except StageError as error:
        return [Diagnosis("error", server.name, str(error), error.hint)]
    if data and "credentials" not in data:
        again = f"mcpfactory pipeline run {server.name} --until generate --force"
        return [
            Diagnosis("warning", server.name, "made by an older mcpfactory, which did not note what it needs", again)
        ]
    needed = scheme_statuses(server.name, data["credentials"], os.environ) if data else []
    where = _addresses(server.name, data.get("address", {}))
    if not needed:
        return [*where, Diagnosis("ok", server.name, "needs no credentials")]
    return where + [
        Diagnosis("ok", server.name, f"{one.scheme}: has what it needs")
        if not one.missing
        else Diagnosis(
            "warning" if one.tools else "ok",
            server.name,
            f"{one.scheme}: {one.missing}"
            + (f"; {one.tools} tools cannot be called" if one.tools else "; every tool has another way"),
            one.hint,
        )
        for one in needed
    ]
