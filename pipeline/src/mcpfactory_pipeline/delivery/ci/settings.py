"""CI settings of a workspace: `[ci]` of the root `mcpfactory.toml`. Unknown keys are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.text import unknown_field
from mcpfactory_pipeline.delivery.ci.origin import INDEX, Origin, install_line, read_origin
from mcpfactory_pipeline.workspace.workspace import setting_error

MOST_JOBS: Final = 256  # what GitHub Actions allows a matrix


@dataclass(frozen=True, slots=True)
class CiSettings:
    """The maximum number of jobs, minimum number of servers per job, branch for results, and job setup.

    Releases are published from `channel`; `environment` is the provider's environment that protects this; `image` is
    the container for GitLab jobs, "" for the official Python image of that version. `install` is a line that installs
    the factory, from its origin unless the workspace overrides it.
    """

    jobs: int
    servers: int
    branch: str
    python: str
    install: str
    channel: str
    environment: str
    image: str


def read_ci(config: Mapping[str, Any]) -> CiSettings:
    """Return the settings in the content of a root `mcpfactory.toml`.

    Raises:
        ConfigError: one cannot be used.
    """
    table: Any = config.get("ci", {})
    if not isinstance(table, dict):
        raise setting_error("ci is not a table", "write [ci] on its own line")
    known = {
        "jobs": MOST_JOBS, "servers": 4, "branch": "main", "python": "3.12",
        "channel": "production", "environment": "release", "image": "",
        "install": "",
    }  # fmt: skip
    origin = read_origin(config) or Origin(INDEX)
    if found := unknown_field(table, known, "[ci]"):
        raise setting_error(*found)
    return CiSettings(
        jobs=_count(table.get("jobs", known["jobs"]), "jobs", MOST_JOBS),
        servers=_count(table.get("servers", known["servers"]), "servers", 100_000),
        branch=_text(table.get("branch", known["branch"]), "branch", r"[A-Za-z0-9][\w./-]{0,99}"),
        python=_text(table.get("python", known["python"]), "python", r"3\.\d{1,2}"),
        install=_text(table["install"], "install", r"[^\r\n]{1,500}") if "install" in table else install_line(origin),
        channel=_text(table.get("channel", known["channel"]), "channel", r"[A-Za-z0-9][\w.-]{0,99}"),
        environment=_text(table.get("environment", known["environment"]), "environment", r"[A-Za-z0-9][\w.-]{0,99}"),
        image=_text(table.get("image", known["image"]), "image", r"[A-Za-z0-9][\w./:@-]{0,299}|"),
    )


def _count(value: object, field: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise setting_error(f"ci.{field} is not valid: {value!r}", f"set a number from 1 to {most}")
    return value


def _text(value: object, field: str, shape: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(shape, value):
        raise setting_error(f"ci.{field} is not valid: {value!r}", f'set {field} = "…" on one line')
    return value
