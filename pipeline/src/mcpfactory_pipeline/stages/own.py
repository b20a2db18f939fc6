"""The stages that a workspace adds: `[[pipeline.stages]]`, each a command or a Python function. Reading is strict."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_codegen.text.nearest import listed, unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.plan.limits import read_memory, read_timeout
from mcpfactory_pipeline.plan.stage import MEMORY, Stage
from mcpfactory_pipeline.stages import command, entry
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

__all__ = ["own_stages"]

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_ENTRY: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_READS: Final = ("source", "tests", "candidate", "document", "config", "generated", "runtime")
_FIELDS: Final = ("name", "command", "entry", "settings", "needs", "reads", "version", "timeout", "memory")


def own_stages(workspace: Workspace) -> list[Stage]:
    """Return the stages of `[[pipeline.stages]]`, in their order. Raises `ConfigError` on one that cannot be used."""
    tables = workspace.settings.get("stages", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _bad("pipeline.stages is not a list of tables", "write [[pipeline.stages]] before each stage")
    return [_stage(workspace, table) for table in tables]


def _stage(workspace: Workspace, table: Mapping[str, Any]) -> Stage:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad(f"stage name {name!r}: lower-case letters, digits and dashes", 'name = "licences"')
    if found := unknown_field(table, _FIELDS, f"stage {name}"):
        raise _bad(*found)
    reads, needs = _texts(table, name, "reads", ("candidate",)), _texts(table, name, "needs", ("build",))
    if wrong := [one for one in reads if one not in _READS]:
        raise _bad(f"stage {name} reads {wrong[0]!r}, which is no input", listed(wrong[0], _READS, "inputs"))
    version = table.get("version", 1)
    if not isinstance(version, int):
        raise _bad(f"stage {name}: version is not a whole number", "version = 2")
    return Stage(
        name=name,
        needs=needs,
        reads=reads,
        writes=("checks",),
        version=version,
        run=entry.run if "entry" in table else command.run,
        timeout=read_timeout(table.get("timeout", 600), name),
        memory=read_memory(table.get("memory", MEMORY), name),
        check=True,
        settings=_settings(workspace, name, table),
    )


def _settings(workspace: Workspace, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is handed to the stage and counts as an input: also the code of the workspace that it runs."""
    if "entry" in table and "command" in table:
        raise _bad(f"stage {name} has a command and an entry", "give it one of the two")
    if "entry" in table:
        where, own = table["entry"], table.get("settings", {})
        if not isinstance(where, str) or not _ENTRY.fullmatch(where):
            raise _bad(f"stage {name}: entry is {where!r}", 'entry = "tools.licences:stage"')
        if not isinstance(own, dict) or not _is_json(own):
            raise _bad(f"stage {name}: settings is not a table of plain values", "settings = { most = 10 }")
        return {"entry": where, "settings": own, "sources": entry.sources(workspace.root, where)}
    words = table.get("command")
    if not isinstance(words, list) or not words or not all(isinstance(part, str) for part in words):
        raise _bad(f"stage {name}: command is not a list of texts", 'command = ["python", "tools/licences.py"]')
    if "settings" in table:
        raise _bad(f"stage {name}: settings are for an entry", "give a command its settings as arguments")
    scripts = {part: content for part in words if (content := hash_file(workspace.root / part)) != "none"}
    return {"command": words, "scripts": scripts}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):  # a date of TOML
        return False
    return True


def _texts(table: Mapping[str, Any], stage: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = table.get(key, default)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise _bad(f"stage {stage}: {key} is not a list of texts", f'{key} = ["{default[0]}"]')
    return tuple(value)


def _bad(message: str, hint: str) -> ConfigError:
    return ConfigError(f"{CONFIG}: {message}", hint=hint)
