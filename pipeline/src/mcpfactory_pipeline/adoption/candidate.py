"""Candidates of adopted servers."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption import command, npm, projects, pypi, remote_offers
from mcpfactory_pipeline.adoption.npm import node_sandbox_paths
from mcpfactory_pipeline.adoption.pypi import venv_sandbox_paths
from mcpfactory_pipeline.adoption.sources import AdoptionSources, CollectedFiles
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import read_json, unreadable_json_reason
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.candidate_environment import changed_files, contents_hash, hash_environment_files
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.isolation.levels import path_without_mcpfactory
from mcpfactory_pipeline.plan.stage import RECORD, BuiltCandidate, candidate_id

# Arguments: folder of the candidate's files, file names, empty folder, and True to write a log.
MakeReady = Callable[..., None]
Program = Callable[[Path, Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of adopted server.

    Attributes:
        make_ready: installs a candidate's files and locked packages in a folder. `make_ready` is `program` is None for
            a server that runs elsewhere.
        program: returns the command line of the installed candidate. None for a server that runs elsewhere.
        upstream: description of the publisher, if the workspace does not publish the server.
    """

    collect: Callable[[AdoptionSources], CollectedFiles]
    make_ready: MakeReady | None
    program: Program | None
    newest: Callable[[str, Path], str] | None = None
    upstream: str = ""


KINDS: Final[Mapping[str, ServerKind]] = {
    "python": ServerKind(projects.build_python_project, pypi.create_locked_environment, pypi.resolve_python_command),
    "node": ServerKind(
        projects.build_node_project,
        projects.install_packed_node_project,
        partial(command.resolve_program_paths, "package"),
    ),
    "command": ServerKind(
        command.collect, command.unpack, partial(command.resolve_program_paths, "files"), upstream="its author"
    ),
    "pypi": ServerKind(
        pypi.collect,
        pypi.create_locked_environment,
        pypi.resolve_python_command,
        lambda package, work: pypi.find_wheel(package, work).version,
        "its authors, in the index it comes from",
    ),
    "npm": ServerKind(
        npm.collect,
        npm.install_dependency_tree,
        npm.resolve_node_command,
        npm.newest_npm_version,
        "its authors, in the registry it comes from",
    ),
    "url": ServerKind(remote_offers.collect, None, None, upstream="its operator"),
}


_SCHEMA: Final = 1
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class AdoptionRecord:
    """Record of an adopted server's candidate. The record is one of the candidate's files.

    Attributes:
        start: command line, or empty for a server at a `url`.
        files: hashes of all other files of the candidate.
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
        """Return the record as canonical JSON."""
        return json.dumps({"record": _SCHEMA, **asdict(self)}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def record_file_name(server: str, version: str) -> str:
    """Return the file name of the record. The name contains project and version, like the name of a wheel."""
    return f"{re.sub(r'[-_.]+', '_', server).lower()}-{re.sub(r'[^A-Za-z0-9.+!_]+', '_', version) or '0'}{RECORD}"


def read_record(folder: Path, files: Mapping[str, str]) -> AdoptionRecord:
    """Return the adoption record of a candidate."""
    name = next((name for name in sorted(files) if name.endswith(RECORD)), None)
    hint = "build and check a new candidate with 'mcpfactory pipeline run NAME --force'"
    if name is None:
        raise StateError("the candidate does not record the start command", hint=hint)
    try:
        if (folder / name).stat().st_size > _LARGEST:
            raise ValueError(f"the file is larger than {_LARGEST} bytes")
        data: dict[str, Any] = json.loads((folder / name).read_bytes())
        if data.pop("record") != _SCHEMA:
            raise ValueError("another version of mcpfactory wrote the file")
        return AdoptionRecord(**{**data, **{key: tuple(map(str, data[key])) for key in ("start", "environment")}})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{name} cannot be read: {unreadable_json_reason(error)}", hint=hint) from error


def build_adopted_candidate(sources: AdoptionSources, environment: tuple[str, ...]) -> BuiltCandidate:
    """Collect the files of an adopted server in `work/dist`.

    Raises:
        ToolRejectedInputError: the server does not build, or differs from the adopted version.
    """
    adopted = sources.adopted
    made = KINDS[adopted.kind].collect(sources)
    if wrong := [name for name in made.files if "/" in name or "\\" in name or name.startswith(".")]:
        raise ToolRejectedInputError(f"{wrong[0]!r} is not a valid file name")
    record = AdoptionRecord(
        server=sources.server,
        kind=adopted.kind,
        name=made.name,
        version=made.version,
        start=adopted.start,
        environment=environment,
        url=adopted.url,
        files={name: hash_bytes(data) for name, data in sorted(made.files.items())},
    )
    written = {record_file_name(sources.server, made.version): record.to_text().encode(), **made.files}
    folder = sources.work / "dist"
    folder.mkdir(exist_ok=True)
    for name, data in written.items():
        (folder / name).write_bytes(data)
    facts = {"kind": adopted.kind, "document": False, **made.facts}
    hashes = {name: hash_bytes(data) for name, data in written.items()}
    return BuiltCandidate(candidate_id(hashes), folder, hashes, version=made.version, facts=facts)


_MARK: Final = "ready.json"  # written last, so a folder with this file is complete
_PATIENCE: Final = 600  # seconds; maximum time to wait while another process prepares the same folder


@dataclass(frozen=True, slots=True)
class InstalledCandidate:
    """A candidate that can be started.

    Attributes:
        readable: paths that the process must read, in addition to system paths.
        holds: hashes of the installed files. `holds` is empty if the files were not verified.
    """

    record: AdoptionRecord
    folder: Path
    command: tuple[str, ...]
    readable: tuple[Path, ...]
    holds: Mapping[str, str]

    def changes(self) -> list[str]:
        """Return the files that changed since the installation."""
        return changed_files(self.holds, hash_environment_files(self.folder, without=_MARK))


def ensure_candidate_installed(
    files: Path, hashes: Mapping[str, str], place: Path, *, log: bool = True, verify: bool = True
) -> InstalledCandidate:
    """Return an installed candidate. A missing or modified candidate is installed in `place`.

    `hashes` has the verified hashes of the `files`. With `verify`, all files of an existing installation are checked.

    Raises:
        StateError: a file of the candidate is missing, or differs from its hash.
    """
    for name, wanted in hashes.items():
        if (found := hash_file(files / name)) != wanted:
            raise StateError(
                f"{name} of the candidate is {'not on this machine' if found == 'none' else 'not the checked file'}",
                hint="run 'mcpfactory pipeline restore NAME' or 'mcpfactory pipeline run NAME'",
            )
    record = read_record(files, hashes)
    kind = KINDS[record.kind]
    if kind.make_ready is None or kind.program is None:
        return InstalledCandidate(record, place, (), (), {})
    with file_lock(place.parent / f".{place.name}.lock", timeout=_PATIENCE):
        holds = _whole(place, hashes, verify=verify)
        if holds is None:
            holds = _lay_out(record, files, hashes, place, log=log)
    command = _located(kind.program(place, record.start))
    machine = (*node_sandbox_paths(), *venv_sandbox_paths(Path(command[0]))) if record.kind == "command" else ()
    readable = (place, *(node_sandbox_paths() if record.kind in {"node", "npm"} else machine))
    return InstalledCandidate(record, place, command, readable, holds)


def _located(command: tuple[str, ...]) -> tuple[str, ...]:
    found = shutil.which(command[0], path=path_without_mcpfactory())
    if found is None:
        raise ToolRejectedInputError(
            f"the start program {Path(command[0]).name} is neither among the server's files nor on this machine"
        )
    return (str(Path(found).absolute()), *command[1:])


def _whole(place: Path, hashes: Mapping[str, str], *, verify: bool) -> Mapping[str, str] | None:
    made = read_json(place / _MARK)
    if made.get("files") != dict(hashes):
        return None
    if not verify:
        return {}
    holds = hash_environment_files(place, without=_MARK)
    return holds if contents_hash(holds) == made.get("holds") else None


def _lay_out(
    record: AdoptionRecord, files: Path, hashes: Mapping[str, str], place: Path, *, log: bool
) -> Mapping[str, str]:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    make = KINDS[record.kind].make_ready
    assert make is not None  # callers skip kinds without `make_ready`
    # Copy the files first, so that no process can change a file after its hash was checked.
    with tempfile.TemporaryDirectory(prefix=".files-", dir=place.parent) as copy:
        for name, wanted in hashes.items():
            shutil.copyfile(files / name, Path(copy) / name)
            if hash_file(Path(copy) / name) != wanted:
                raise StateError(
                    f"{name} of the candidate changed while mcpfactory read the file", hint="run the command again"
                )
        make(Path(copy), tuple(record.files), place, log=log)
    holds = hash_environment_files(place, without=_MARK)
    (place / _MARK).write_text(json.dumps({"files": dict(hashes), "holds": contents_hash(holds)}), encoding="utf-8")
    return holds
