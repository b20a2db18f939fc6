"""How long a stage may take and how much memory it may use: `[pipeline.limits]` of the workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.workspace import setting_error

__all__ = ["apply_limits", "read_memory", "read_timeout"]

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
