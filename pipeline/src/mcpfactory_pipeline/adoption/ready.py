"""A candidate of an adopted server, laid out so that it can be started: from its own files, and what its lock names by hashes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.candidate import Record, read_record
from mcpfactory_pipeline.adoption.kinds import KINDS
from mcpfactory_pipeline.adoption.npm import node_paths
from mcpfactory_pipeline.adoption.pypi import environment_paths
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.environment import changed_files, contents, contents_hash
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.isolation.levels import foreign_path

_MARK: Final = "ready.json"  # written last
_PATIENCE: Final = 600  # seconds for another process that makes the same


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """Candidate that can be started: its record, its folder, and the command line.

    `readable` lists the paths outside the system that its process must read. `holds` is the folder's original
    content.
    """

    record: Record
    folder: Path
    command: tuple[str, ...]
    readable: tuple[Path, ...]
    holds: Mapping[str, str]

    def changes(self) -> list[str]:
        """Return the files that were changed since they were made."""
        return changed_files(self.holds, contents(self.folder, without=_MARK))


def make_ready(
    files: Path, hashes: Mapping[str, str], place: Path, *, log: bool = True, verify: bool = True
) -> ReadyServer:
    """Return a candidate that can be started from `place`; it is installed there if it is missing or was changed.

    Args:
        files: the folder of the candidate's files.
        hashes: their verified hashes.
        place: the folder for it.
        log: True to print the output of programs.
        verify: True to check every file that already exists.

    Raises:
        StateError: a file of the candidate is missing, or differs from its verified hash.
        ProgramRefusedError: a locked dependency is not available.
        StageError: an index did not answer.
    """
    for name, wanted in hashes.items():
        if (found := hash_file(files / name)) != wanted:
            raise StateError(
                f"{name} of the candidate is {'not on this machine' if found == 'none' else 'not what was checked'}",
                hint="mcpfactory pipeline restore NAME, or run it",
            )
    record = read_record(files, hashes)
    kind = KINDS[record.kind]
    if kind.make_ready is None or kind.program is None:
        return ReadyServer(record, place, (), (), {})
    place.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(place.parent / f".{place.name}.lock", timeout=_PATIENCE):
        holds = _whole(place, hashes, verify=verify)
        if holds is None:
            holds = _lay_out(record, files, hashes, place, log=log)
    command = _located(kind.program(place, record.start))
    machine = (*node_paths(), *environment_paths(Path(command[0]))) if record.kind == "command" else ()
    readable = (place, *(node_paths() if record.kind in {"node", "npm"} else machine))
    return ReadyServer(record, place, command, readable, holds)


def _located(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with its program by a whole path."""
    found = shutil.which(command[0], path=foreign_path())
    if found is None:
        raise ProgramRefusedError(
            f"there is no program {Path(command[0]).name}, by which it starts, among its files and on this machine"
        )
    return (str(Path(found).absolute()), *command[1:])


def _whole(place: Path, hashes: Mapping[str, str], *, verify: bool) -> Mapping[str, str] | None:
    try:
        made: dict[str, Any] = json.loads((place / _MARK).read_bytes())
    except (OSError, ValueError):
        return None
    if made.get("files") != dict(hashes):
        return None
    if not verify:
        return {}
    holds = contents(place, without=_MARK)
    return holds if contents_hash(holds) == made.get("holds") else None


def _lay_out(record: Record, files: Path, hashes: Mapping[str, str], place: Path, *, log: bool) -> Mapping[str, str]:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    make = KINDS[record.kind].make_ready
    assert make is not None  # the caller looked
    # Use a private copy, so that the installed bytes are exactly those that were hashed.
    with tempfile.TemporaryDirectory(prefix=".files-", dir=place.parent) as copy:
        for name, wanted in hashes.items():
            shutil.copyfile(files / name, Path(copy) / name)
            if hash_file(Path(copy) / name) != wanted:
                raise StateError(f"{name} of the candidate changed while it was read", hint="run again")
        make(Path(copy), tuple(record.files), place, log=log)
    holds = contents(place, without=_MARK)
    (place / _MARK).write_text(json.dumps({"files": dict(hashes), "holds": contents_hash(holds)}), encoding="utf-8")
    return holds
