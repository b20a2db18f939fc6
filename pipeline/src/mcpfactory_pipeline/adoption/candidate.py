"""Candidates of adopted servers: their files, their record and their version."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.kinds import KINDS
from mcpfactory_pipeline.adoption.sources import LOCKS, Sources
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import why_damaged
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.plan.stage import RECORD
from mcpfactory_pipeline.workspace.adopted import Adopted

_SCHEMA: Final = 1
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """Description of an adopted server's candidate. It is one of the candidate's files, and lists the others by hash.

    `name` is that of the package, or of the server; `start` its command line, empty for one at a `url`; `environment`
    the variables that it reads; for a command, `path` is the original folder of its files, where they are restored
    before it starts.
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


@dataclass(frozen=True, slots=True)
class AdoptedFiles:
    """Build output: the folder, the hash of each file in it, and the version."""

    folder: Path
    files: Mapping[str, str]
    version: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def build_adopted(sources: Sources, config: Mapping[str, Any]) -> AdoptedFiles:
    """Gather the files that an adopted server runs from into `work/dist`; `config` is its whole `mcpfactory.toml`.

    Raises:
        ProgramRefusedError: it does not build, or differs from the adopted version.
        ConfigError: files that it is built from are missing.
        StageError: an index did not answer.
    """
    adopted = sources.adopted
    made = KINDS[adopted.kind].collect(sources)
    if wrong := [name for name in made.files if "/" in name or "\\" in name or name.startswith(".")]:
        raise ProgramRefusedError(f"{wrong[0]!r} is no name of a file")
    record = Record(
        server=sources.server,
        kind=adopted.kind,
        name=made.name,
        version=made.version,
        start=adopted.start,
        environment=environment_of(config),
        url=adopted.url,
        files={name: hash_bytes(data) for name, data in sorted(made.files.items())},
    )
    written = {record_name(sources.server, made.version): record.to_text().encode(), **made.files}
    folder = sources.work / "dist"
    folder.mkdir(exist_ok=True)
    for name, data in written.items():
        (folder / name).write_bytes(data)
    facts = {"kind": adopted.kind, "document": False, **made.facts}
    return AdoptedFiles(folder, {name: hash_bytes(data) for name, data in written.items()}, made.version, facts)


def environment_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables that a server's `mcpfactory.toml` names (`[server] environment`)."""
    table = config.get("server", {})
    wanted = table.get("environment", []) if isinstance(table, Mapping) else []
    return tuple(str(name) for name in wanted) if isinstance(wanted, list) else ()


def adopted_version(adopted: Adopted, folder: Path) -> str:
    """Return the version of the server in `folder`, which is `servers/<name>`; "" when its files do not say one."""
    read = _SAYS.get(adopted.kind)
    if read is None:
        return adopted.version
    file, parse, keys = read
    own = adopted.folder(folder.parents[1]) if adopted.kind != "url" else None
    try:
        found: Any = parse(((own or folder) / file).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


# Kind → the file that says it, how that is read, and the keys that lead there.
_SAYS: Final[Mapping[str, tuple[str, Callable[[str], Any], tuple[str, ...]]]] = {
    "python": ("pyproject.toml", tomllib.loads, ("project", "version")),
    "node": ("package.json", json.loads, ("version",)),
    "url": (LOCKS["url"], json.loads, ("server", "version")),
}
