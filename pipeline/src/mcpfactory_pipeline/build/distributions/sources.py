"""The packages of a distribution that is used from its sources: built from a copy, so that only content counts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_files, source_files
from mcpfactory_pipeline.build.distributions.wheel import read_wheel
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.build.wheels import build_wheel

__all__ = ["build_files", "content_of", "package_files"]

_BESIDE: Final = ("pyproject.toml", "README.md")


def package_files(source: Path) -> list[str]:
    """Return the files that a distribution is built from: its sources, and what links among them lead to."""
    linked = [
        Path(where, name).relative_to(source).as_posix()
        for where, folders, _files in os.walk(source / "src")
        for name in folders
        if Path(where, name).is_symlink()
    ]
    below = tuple(link.removeprefix("src/") for link in linked)
    own = [f"src/{path}" for path in source_files(source / "src", without=below)]
    others = [f"{link}/{path}" for link in linked for path in source_files((source / link).resolve())]
    return sorted([*(name for name in _BESIDE if (source / name).is_file()), *own, *others])


def content_of(source: Path) -> str:
    """Return a short hash of all that a distribution is built from."""
    return hash_files(source, package_files(source)).removeprefix("sha256:")[:16]


def build_files(source: Path, *, log: bool = False) -> dict[str, bytes]:
    """Return the files of the wheel of the distribution in `source`; with `log` uv's words go to the log of the stage.

    Raises `StageError` when it does not build.
    """
    with tempfile.TemporaryDirectory() as work:
        try:
            return read_wheel(build_wheel(source, package_files(source), Path(work), log=log))
        except ProgramRefusedError as error:
            raise StageError(f"{source} does not build: {error}", hint="mend its sources") from error
