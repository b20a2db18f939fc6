"""Whose a project of a channel is: two servers with one distribution name would overwrite each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StateError

__all__ = ["refuse_foreign_project"]

_RUNTIME: Final = "mcpfactory-runtime"
_HASH: Final = re.compile(r"#sha256=([0-9a-f]{64})")
_HINT: Final = (
    "give the server another name in [project] of its pyproject.toml; case, -, _ and . do not tell names apart"
)


def refuse_foreign_project(page: Path, project: str, server: str, states: Path) -> None:
    """Refuse to offer a server under a name that the runtime has, or under which the channel's page offers another server.

    `page` is that of the project in the channel, `states` the folder of the state files: in them stand the hashes of
    what each server built.

    Raises:
        StateError: with the server that has the name.
    """
    if project == _RUNTIME:
        raise StateError(f"{server} has the distribution name of the runtime, {_RUNTIME}", hint=_HINT)
    try:
        offered = set(_HASH.findall(page.read_text(encoding="utf-8")))
    except OSError:
        return
    if not offered or _names(states / f"{server}.json", offered):
        return
    for file in sorted(states.glob("*.json")):
        if file.stem != server and _names(file, offered):
            raise StateError(f"{server} has the distribution name of {file.stem}, {project}", hint=_HINT)


def _names(state: Path, hashes: set[str]) -> bool:
    """Whether a state file names one of the hashes."""
    try:
        text = state.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return any(known in text for known in hashes)
