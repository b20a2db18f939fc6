"""How stages keep a server's code apart: `isolation` and `container` of `[pipeline]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation.levels import AUTO, LEVELS, REQUIRED, find_level
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

__all__ = ["apply_isolation", "isolation_settings", "level_here", "wanted_level"]

_CONTAINER: Final = ("program", "image")


def wanted_level(settings: Mapping[str, Any]) -> str:
    """Return the level that `[pipeline] isolation` names, `auto` where it names none.

    Raises:
        ConfigError: for a name that is none.
    """
    wanted, names = settings.get("isolation", AUTO), (AUTO, REQUIRED, *LEVELS)
    if wanted not in names:
        raise setting_error(f"pipeline.isolation is {wanted!r}", listed(str(wanted), names, "levels"))
    return str(wanted)


def isolation_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `isolation` and `container` of `[pipeline]`, where they say something else than is usual.

    Raises:
        ConfigError: for a level that there is none of, and a `[pipeline.container]` that cannot be used.
    """
    level, container = wanted_level(settings), settings.get("container", {})
    if not isinstance(container, dict) or not all(isinstance(value, str) and value for value in container.values()):
        raise setting_error("pipeline.container is not a table of texts", '[pipeline.container]\nimage = "python:3.13"')
    if found := unknown_field(container, _CONTAINER, "pipeline.container"):
        raise setting_error(*found)
    return ({"isolation": level} if level != AUTO else {}) | ({"container": container} if container else {})


def apply_isolation(stages: Sequence[Stage], settings: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the stages, those that run code of a server with what the workspace says of isolation among their settings.

    Raises as `isolation_settings` does.
    """
    said = isolation_settings(settings)
    if not said:
        return tuple(stages)
    return tuple(replace(stage, settings={**stage.settings, **said}) if stage.sandboxed else stage for stage in stages)


def level_here(workspace: Workspace, stages: Sequence[Stage]) -> str:
    """Return the name of the level at which stages run code of servers on this machine; "" when none of them does.

    Raises:
        ConfigError: for a level that there is none of.
        StageError: `required` is demanded, and none is to be had.
    """
    if not any(stage.sandboxed for stage in stages):
        return ""
    wanted = wanted_level(workspace.settings)
    try:
        return find_level(wanted).name
    except StageError:
        if wanted == REQUIRED:
            raise
        return wanted  # its stages will say what is missing
