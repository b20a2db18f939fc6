"""Time, memory and isolation limits of stages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation.levels import AUTO, LEVELS, REQUIRED, find_level
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

_UNITS: Final = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
_FIELDS: Final = ("timeout", "memory")


def apply_limits(stages: Sequence[Stage], table: object) -> tuple[Stage, ...]:
    """Return the stages with the limits of `[pipeline.limits.<stage>]`.

    Raises:
        ConfigError: for unknown stages and fields.
    """
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise setting_error("pipeline.limits is not a table of tables", "[pipeline.limits.test]\ntimeout = 1800")
    names = [stage.name for stage in stages]
    if unknown := [name for name in table if name not in names]:
        raise setting_error(f"pipeline.limits: there is no stage {unknown[0]!r}", listed(unknown[0], names, "stages"))
    return tuple(_limited(stage, table[stage.name]) if stage.name in table else stage for stage in stages)


def _limited(stage: Stage, table: Mapping[str, Any]) -> Stage:
    if found := unknown_field(table, _FIELDS, f"pipeline.limits.{stage.name}"):
        raise setting_error(*found)
    return replace(
        stage,
        timeout=read_timeout(table.get("timeout", stage.timeout), stage.name),
        memory=read_memory(table.get("memory", stage.memory), stage.name),
    )


def read_timeout(value: object, stage: str) -> float:
    """Return a time limit in seconds.

    Raises:
        ConfigError: for anything but a positive number.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise setting_error(f"stage {stage}: timeout is not a number of seconds", "timeout = 600")
    return float(value)


def read_memory(value: object, stage: str) -> int:
    """Return a memory limit in bytes, from a number of them or from `512MB`, `4GiB`.

    Raises:
        ConfigError: for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"(\d{1,6})\s*([MG]i?B)", value) if isinstance(value, str) else None
    if found is None or not int(found[1]):
        raise setting_error(f"stage {stage}: memory is {value!r}", 'memory = "2GB"; units: MB, GB, MiB, GiB')
    return int(found[1]) * _UNITS[found[2]]


_CONTAINER: Final = ("program", "image")


def wanted_level(settings: Mapping[str, Any]) -> str:
    """Return the level that `[pipeline] isolation` names, `auto` if it is not set.

    Raises:
        ConfigError: the level is unknown.
    """
    wanted, names = settings.get("isolation", AUTO), (AUTO, REQUIRED, *LEVELS)
    if wanted not in names:
        raise setting_error(f"pipeline.isolation is {wanted!r}", listed(str(wanted), names, "levels"))
    return str(wanted)


def isolation_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `isolation` and `container` of `[pipeline]` if they differ from the defaults.

    Raises:
        ConfigError: the level is unknown, or `[pipeline.container]` is invalid.
    """
    level, container = wanted_level(settings), settings.get("container", {})
    if not isinstance(container, dict) or not all(isinstance(value, str) and value for value in container.values()):
        raise setting_error("pipeline.container is not a table of texts", '[pipeline.container]\nimage = "python:3.13"')
    if found := unknown_field(container, _CONTAINER, "pipeline.container"):
        raise setting_error(*found)
    return ({"isolation": level} if level != AUTO else {}) | ({"container": container} if container else {})


def apply_isolation(stages: Sequence[Stage], settings: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the stages; those that run server code get the workspace's isolation settings.

    Raises as `isolation_settings` does.
    """
    said = isolation_settings(settings)
    if not said:
        return tuple(stages)
    return tuple(replace(stage, settings={**stage.settings, **said}) if stage.sandboxed else stage for stage in stages)


def level_here(workspace: Workspace, stages: Sequence[Stage]) -> str:
    """Return the isolation level for server code on this machine; "" if none of the stages runs any.

    Raises:
        ConfigError: the level is unknown.
        StageError: the level is `required`, and none is available.
    """
    if not any(stage.sandboxed for stage in stages):
        return ""
    wanted = wanted_level(workspace.settings)
    try:
        return find_level(wanted).name
    except StageError:
        if wanted == REQUIRED:
            raise
        return wanted  # its stages will report the missing parts
