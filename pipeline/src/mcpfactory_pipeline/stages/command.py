"""A stage of the workspace's own: a command that passes with exit code 0."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from mcpfactory_pipeline.errors import ConfigError
from mcpfactory_pipeline.hashing import hash_file
from mcpfactory_pipeline.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.tools import run_program
from mcpfactory_pipeline.workspace import CONFIG, Workspace

__all__ = ["command_stages"]

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_READS = ("source", "tests", "candidate", "document", "config", "generated", "runtime")


def run(inputs: StageInputs) -> StageOutputs:
    """Runs the command in the workspace's root. What it is about stands in its environment (how-to/write-a-stage)."""
    environ = {
        **os.environ,
        "MCPFACTORY_SERVER": inputs.server,
        "MCPFACTORY_SERVER_FOLDER": str(inputs.folder),
        "MCPFACTORY_CANDIDATE": inputs.candidate.id if inputs.candidate else "",
        "MCPFACTORY_WHEEL": str(inputs.candidate.wheel) if inputs.candidate else "",
        "MCPFACTORY_REPORTS": str(inputs.keep),
    }
    inputs.keep.mkdir(parents=True, exist_ok=True)
    command = list(inputs.settings["command"])
    code = run_program(command, cwd=inputs.root, environ=environ)
    if code < 0:
        return StageOutputs("errored", f"{command[0]} was ended by signal {-code}")
    return StageOutputs("passed" if code == 0 else "failed", f"{command[0]} ended with exit {code}", {"exit": code})


def command_stages(workspace: Workspace) -> list[Stage]:
    """The stages of `[[pipeline.stages]]`, in their order. Raises `ConfigError` on one that cannot be used."""
    tables = workspace.settings.get("stages", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _bad("pipeline.stages is not a list of tables", "write [[pipeline.stages]] before each stage")
    return [_stage(workspace, table) for table in tables]


def _stage(workspace: Workspace, table: Mapping[str, Any]) -> Stage:
    name, command = table.get("name"), table.get("command")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad(f"stage name {name!r}: lower-case letters, digits and dashes", 'name = "licences"')
    if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
        raise _bad(f"stage {name}: command is not a list of texts", 'command = ["python", "tools/licences.py"]')
    reads, needs = _texts(table, name, "reads", ("candidate",)), _texts(table, name, "needs", ("build",))
    if unknown := [entry for entry in reads if entry not in _READS]:
        raise _bad(f"stage {name} reads {unknown[0]!r}, which is no input", f"inputs: {', '.join(_READS)}")
    timeout = table.get("timeout", 600)
    version = table.get("version", 1)
    if not isinstance(version, int):
        raise _bad(f"stage {name}: version is not a whole number", "version = 2")
    if not isinstance(timeout, int | float) or timeout <= 0:
        raise _bad(f"stage {name}: timeout is not a number of seconds", "timeout = 600")
    scripts = {part: content for part in command if (content := hash_file(workspace.root / part)) != "none"}
    return Stage(
        name=name,
        needs=needs,
        reads=reads,
        writes=("checks",),
        version=version,
        run=run,
        timeout=float(timeout),
        check=True,
        settings={
            "command": command,
            "scripts": scripts,
        },  # a script of the workspace that changed makes the stage stale
    )


def _texts(table: Mapping[str, Any], stage: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = table.get(key, default)
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise _bad(f"stage {stage}: {key} is not a list of texts", f'{key} = ["{default[0]}"]')
    return tuple(value)


def _bad(message: str, hint: str) -> ConfigError:
    return ConfigError(f"{CONFIG}: {message}", hint=hint)
