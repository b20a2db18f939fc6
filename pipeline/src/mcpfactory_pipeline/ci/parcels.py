"""What the job that deals says of the folders that the others hand over: which run they are of, and which servers each may be about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError

__all__ = ["Parcel", "dealt_parcels", "named_parcels", "read_run"]

_RUN: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A folder that a job handed over, and the servers that the job was dealt."""

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


def dealt_parcels(folders: Sequence[Path], dealt: str) -> list[Parcel]:
    """Return the parcels below the folders, `shard-N` each, by the matrix that the jobs came from.

    Raises:
        NotFoundError: there is no such folder.
        ConfigError: the matrix cannot be read.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(dealt)["include"]
        servers = {f"shard-{int(entry['shard'])}": tuple(str(entry["servers"]).split()) for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"--dealt is no matrix: {error}", hint="what mcpfactory ci matrix --json prints") from error
    found = []
    for folder in _folders(folders):
        found += [Parcel(place, servers.get(place.name, ())) for place in sorted(folder.iterdir()) if place.is_dir()]
    return found


def named_parcels(folders: Sequence[Path], servers: Iterable[str]) -> list[Parcel]:
    """Return the folders as parcels of jobs that were dealt these servers.

    Raises:
        NotFoundError: there is no such folder.
    """
    return [Parcel(folder, tuple(servers)) for folder in _folders(folders)]


def _folders(folders: Sequence[Path]) -> Sequence[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", hint="name folders that hold what jobs packed")
    return folders
