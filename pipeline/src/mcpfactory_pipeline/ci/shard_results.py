"""What the job that assigns says of the folders that the others hand over: which run they are of, and which servers each may be about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError

__all__ = ["ShardResult", "assigned_results", "named_results", "read_run"]

_RUN: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A folder that a job handed over, and the servers that the job was assigned."""

    folder: Path
    servers: tuple[str, ...]


def read_run(text: str) -> str:
    """Return the id of a run, as `ci matrix` gives one.

    Raises:
        ConfigError: it is none.
    """
    if not _RUN.fullmatch(text):
        raise ConfigError(
            f"{text!r} is no id of a run", hint="the one that mcpfactory ci matrix printed for these jobs"
        )
    return text


def assigned_results(folders: Sequence[Path], assigned: str) -> list[ShardResult]:
    """Return the shard results below the folders, `shard-N` each, by the matrix that the jobs came from.

    Raises:
        NotFoundError: there is no such folder.
        ConfigError: the matrix cannot be read.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(assigned)["include"]
        servers = {f"shard-{int(entry['shard'])}": tuple(str(entry["servers"]).split()) for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"--assigned is no matrix: {error}", hint="what mcpfactory ci matrix --json prints"
        ) from error
    found = []
    for folder in _folders(folders):
        found += [
            ShardResult(place, servers.get(place.name, ())) for place in sorted(folder.iterdir()) if place.is_dir()
        ]
    return found


def named_results(folders: Sequence[Path], servers: Iterable[str]) -> list[ShardResult]:
    """Return the folders as shard results of jobs that were assigned these servers.

    Raises:
        NotFoundError: there is no such folder.
    """
    return [ShardResult(folder, tuple(servers)) for folder in _folders(folders)]


def _folders(folders: Sequence[Path]) -> Sequence[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", hint="name folders that hold what jobs packed")
    return folders
