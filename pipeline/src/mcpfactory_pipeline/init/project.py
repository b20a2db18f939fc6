"""The root `pyproject.toml` of a repository that becomes a workspace: what uv needs in it, added where that is safe."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.ci.origin import Origin
from mcpfactory_pipeline.ci.recorded import with_uv_tables
from mcpfactory_pipeline.init.change import ADD, BLOCKED, NOTE, SetupChange
from mcpfactory_pipeline.init.files import PYPROJECT

__all__ = ["project_changes"]

_FILE: Final = "pyproject.toml"
_MEMBERS: Final = "servers/*"


def project_changes(folder: Path, origin: Origin | None, *, known: bool) -> Iterator[SetupChange]:
    """Yield what happens to a `pyproject.toml` that is there. That of a workspace, `known`, gets nothing but where the runtime is.

    Tables are added to one that is no package of its own: members in that of a package would change what its own
    environment and lock file are.
    """
    file = folder / _FILE
    if not file.is_file():
        return
    try:
        text = file.read_bytes().decode("utf-8")
        data = tomllib.loads(text)
    except (OSError, ValueError) as error:
        yield SetupChange(_FILE, BLOCKED, note=f"cannot be read: {error}")
        return
    made, problem = text, ""
    if not known and not _has_members(data):
        problem = _unsafe(folder, data)
        if not problem:
            made = f"{text.rstrip()}\n\n{PYPROJECT}" if text.strip() else PYPROJECT
    if problem:
        yield SetupChange(_FILE, NOTE, note=problem)
    if origin is not None:
        try:
            made = with_uv_tables(made, origin)
        except ConfigError as error:
            yield SetupChange(_FILE, NOTE, note=f"{error}; {error.hint}".removeprefix(f"{_FILE} "))
    if made != text and made.startswith(text.rstrip()):
        added = made.removeprefix(text.rstrip()).lstrip("\n")
        yield SetupChange(
            _FILE, ADD, "\n" * (2 - text.endswith("\n")) + added, "where uv finds servers and their runtime"
        )


def _has_members(data: dict[str, Any]) -> bool:
    return _MEMBERS in data.get("tool", {}).get("uv", {}).get("workspace", {}).get("members", [])


def _unsafe(folder: Path, data: dict[str, Any]) -> str:
    """Why members cannot be added, and what to do; "" when they can."""
    add = f"for `uv sync` of servers add {json.dumps(_MEMBERS)} to members in [tool.uv.workspace]"
    if "workspace" in data.get("tool", {}).get("uv", {}):
        return f"is a uv workspace: {add}"
    if "project" in data or (folder / "uv.lock").exists():
        return f"is a package of its own: {add}, which changes its lock file"
    strangers = [place.name for place in (folder / "servers").glob("[!.]*") if not (place / _FILE).is_file()]
    return f"servers/{strangers[0]} is no package: {add}, and to exclude what is none" if strangers else ""
