"""A sandbox: one folder that a server's code may write, a few that it may read, and the level that keeps it to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.isolation.environ import clean_environ
from mcpfactory_pipeline.isolation.levels import Container, Level, Reach, find_level
from mcpfactory_pipeline.isolation.paths import interpreter_paths

__all__ = ["Sandbox", "make_sandbox"]

_RULES: Final = "landlock.json"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where a server's code runs. `folder` is all that it may write: its home, its temporary files, what it works on.

    `reach` is what it may read and write, for the level; `environ` its environment variables, none of which is secret.
    """

    level: Level
    folder: Path
    reach: Reach
    environ: Mapping[str, str]

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another inside; it gets the variables that it is started with."""
        return self.level.command(self.reach, command)


def make_sandbox(
    settings: Mapping[str, object],
    work: Path,
    *,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    name: str = "sandbox",
) -> Sandbox:
    """Make a sandbox below a work folder, at the level of the settings of a stage (`isolation`, `container`).

    What stands beside the sandbox in the work folder, its rules among it, is out of its reach, but for what is `writable`.

    Raises:
        StageError: when the level that the workspace demands is not to be had here.
    """
    level = find_level(str(settings.get("isolation", "auto")))
    container = settings.get("container")
    folder = work / name
    environ = clean_environ(folder / "home")
    reach = Reach(
        read=(*interpreter_paths(), *map(str, readable)),
        write=(str(folder), *map(str, writable)),
        rules=work / f"{name}.{_RULES}",
        container=Container(**container) if isinstance(container, Mapping) else Container(),
    )
    reach.rules.write_text(json.dumps(reach.for_landlock()), encoding="utf-8")
    return Sandbox(level, folder, reach, environ)
