from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was looked at. `level`: ok, warning (something will not work) or error (nothing will)."""

    level: str
    about: str
    message: str
    hint: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Look for what is missing: tools, workspace, credentials."""
    found = [*_machine(), *_workspace()]
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


def _workspace() -> list[Diagnosis]:
    from mcpfactory_pipeline.workspace import Workspace, WorkspaceError

    try:
        workspace = Workspace.find(Path.cwd())
        servers = workspace.servers()
    except WorkspaceError as error:
        return [Diagnosis("warning", "workspace", str(error), error.hint)]
    found = [Diagnosis("ok", "workspace", f"{workspace.name} with {len(servers)} servers")]
    for server in servers:
        report = server.folder / ".mcpfactory" / "report.json"
        wanted = json.loads(report.read_bytes())["environment"] if report.exists() else []
        missing = [variable for variable in wanted if not os.environ.get(variable["name"])]
        if not missing:
            found.append(Diagnosis("ok", server.name, "has all the credentials that it can use"))
        found += [
            Diagnosis(
                "warning",
                server.name,
                f"{variable['name']} is not set ({variable['description']})",
                f"export {variable['name']}=… before `mcpfactory run {server.name}`",
            )
            for variable in missing
        ]
    return found
