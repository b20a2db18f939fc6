"""A candidate of an adopted server: the files that run, and the record that names them by their hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.adoption.kinds import KINDS
from mcpfactory_pipeline.adoption.record import Record, record_name
from mcpfactory_pipeline.adoption.sources import Sources
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.programs import ProgramRefusedError

__all__ = ["AdoptedFiles", "build_adopted", "environment_of"]


@dataclass(frozen=True, slots=True)
class AdoptedFiles:
    """What was built: the folder, each file in it with its hash, and of what version it is."""

    folder: Path
    files: Mapping[str, str]
    version: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def build_adopted(sources: Sources, config: Mapping[str, Any]) -> AdoptedFiles:
    """Gather what an adopted server runs from into `work/dist`; `config` is the whole of its `mcpfactory.toml`.

    Raises:
        ProgramRefusedError: it does not build, or is not what was adopted.
        ConfigError: files that it is built from are not there.
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
