"""Making a candidate: the packages of some sources, its id (the hash of their bytes), and its place on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpfactory_pipeline.base.hashing import hash_file, hash_record, source_files
from mcpfactory_pipeline.build.wheels import backend_of, build_packages
from mcpfactory_pipeline.plan.fingerprint import NOT_BUILT

__all__ = ["Made", "build_candidate", "keep"]


@dataclass(frozen=True, slots=True)
class Made:
    """Packages in a work folder, and the candidate that they are; `backend` is the program that built them."""

    id: str
    folder: Path
    files: Mapping[str, str]
    backend: str = ""


def build_candidate(source: Path, work: Path, *, backend: str = "") -> Made:
    """Build wheel and source distribution of the server in `source` in the folder `work`, by a certain `backend` if one is named.

    Raises `ProgramRefusedError` when the server does not build, `StageError` when the machinery broke.
    """
    packages = build_packages(source, source_files(source, without=NOT_BUILT), work, backend=backend)
    files = {package.name: hash_file(package) for package in packages}
    return Made(hash_record(files).removeprefix("sha256:")[:16], work / "dist", files, backend_of(packages[0]))


def keep(made: Made, folder: Path) -> None:
    """Put a candidate's files into its folder, each whole or not at all; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.files.items():
        if hash_file(folder / name) != content:
            temporary = folder / f".{name}.tmp"
            shutil.copyfile(made.folder / name, temporary)
            temporary.replace(folder / name)
