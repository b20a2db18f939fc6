from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Names

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Server


@dataclass(frozen=True)
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
        python,
        Diagnosis("ok", "git", git)
        if git
        else Diagnosis("warning", "git", "not found", "install git: state is meant to be tracked"),
        _uv(),
    ]


def _uv() -> Diagnosis:
    try:
        from uv import find_uv_bin

        return Diagnosis("ok", "uv", find_uv_bin())
    except (ImportError, FileNotFoundError):
        return Diagnosis("error", "uv", "not found: wheels cannot be built", "pip install --force-reinstall uv")


def _workspace(names: list[str]) -> list[Diagnosis]:
    from mcpfactory_pipeline.workspace.workspace import ConfigError, Workspace, WorkspaceError

    try:
        workspace = Workspace.find(Path.cwd())
    except WorkspaceError as error:
        return [Diagnosis("warning", "workspace", str(error), error.hint)]
    except ConfigError as error:
        return [Diagnosis("error", "workspace", str(error), error.hint)]
    servers, broken = workspace.survey(names)
    found = [Diagnosis("ok", "workspace", f"{workspace.name} with {len(workspace.servers())} servers")]
    found += [Diagnosis("error", one.name, one.message, one.hint) for one in broken]
    for server in servers:
        found += _server(server)
    return found


def _server(server: Server) -> list[Diagnosis]:
    """What a server lacks, scheme by scheme."""
    from mcpfactory_codegen.describe.credentials import diagnose
    from mcpfactory_pipeline.base.errors import StageError
    from mcpfactory_pipeline.workspace.coverage import report_of

    try:
        data = report_of(server.folder) or {}
    except StageError as error:
        return [Diagnosis("error", server.name, str(error), error.hint)]
    if data and "credentials" not in data:
        again = f"mcpfactory pipeline run {server.name} --until generate --force"
        return [
            Diagnosis("warning", server.name, "made by an older mcpfactory, which did not note what it needs", again)
        ]
    needed = diagnose(server.name, data["credentials"], os.environ) if data else []
    if not needed:
        return [Diagnosis("ok", server.name, "needs no credentials")]
    return [
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
