"""The record of an adopted candidate: what it is, how it starts, and the hash of each file that it starts from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.damage import why_damaged
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.plan.stage import RECORD

__all__ = ["Record", "read_record", "record_name"]

_SCHEMA: Final = 1
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """What a candidate of an adopted server is. It stands among the files of the candidate, and names all others by their hashes.

    `name` is that of the package, or of the server; `start` its command line, empty for one at a `url`; `environment` the
    variables that it reads; `path` says for a command where its files stood, as they are laid out again before it is started.
    """

    server: str
    kind: str
    name: str
    version: str
    start: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    url: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        """Canonical JSON."""
        return json.dumps({"record": _SCHEMA, **asdict(self)}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def record_name(server: str, version: str) -> str:
    """Return the file name of the record: a channel takes project and version from it, as from the name of a wheel."""
    return f"{re.sub(r'[-_.]+', '_', server).lower()}-{re.sub(r'[^A-Za-z0-9.+!_]+', '_', version) or '0'}{RECORD}"


def read_record(folder: Path, files: Mapping[str, str]) -> Record:
    """Return the record among the files of a candidate.

    Raises:
        StateError: it is not there, or cannot be read.
    """
    name = next((name for name in sorted(files) if name.endswith(RECORD)), None)
    hint = "mcpfactory pipeline run NAME --force builds and checks it again"
    if name is None:
        raise StateError("the candidate has no record of how it starts", hint=hint)
    try:
        if (folder / name).stat().st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} bytes")
        data: dict[str, Any] = json.loads((folder / name).read_bytes())
        if data.pop("record") != _SCHEMA:
            raise ValueError("it is of another version of mcpfactory")
        return Record(**{**data, **{key: tuple(map(str, data[key])) for key in ("start", "environment")}})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{name} cannot be read: {why_damaged(error)}", hint=hint) from error
