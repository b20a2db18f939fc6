"""Making a candidate: the wheel of some sources, its id (the hash of its bytes), and its place on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpfactory_pipeline.fingerprint import NOT_BUILT
from mcpfactory_pipeline.hashing import hash_file, hash_record, source_files
from mcpfactory_pipeline.wheels import build_wheel

__all__ = ["Made", "build_candidate", "keep"]


@dataclass(frozen=True)
class Made:
    """A wheel in a work folder, and the candidate that it is."""

    id: str
    wheel: Path
    files: Mapping[str, str]


def build_candidate(source: Path, work: Path) -> Made:
    """Builds the wheel of the server in `source` in the folder `work`. Raises `Refused` when it does not build, `StageError`."""
    wheel = build_wheel(source, source_files(source, without=NOT_BUILT), work)
    files = {wheel.name: hash_file(wheel)}
    return Made(hash_record(files).removeprefix("sha256:")[:16], wheel, files)


def keep(made: Made, folder: Path) -> None:
    """Puts a candidate's wheel into its folder, whole or not at all; nothing happens when it is there."""
    place = folder / made.wheel.name
    if hash_file(place) == made.files[made.wheel.name]:
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{made.wheel.name}.tmp"
    shutil.copyfile(made.wheel, temporary)
    temporary.replace(place)
