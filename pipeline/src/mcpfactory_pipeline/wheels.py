"""Building wheels in a copy of the sources, and the wheel of the runtime that this factory itself runs on."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mcpfactory_pipeline.errors import StageError
from mcpfactory_pipeline.hashing import hash_files, source_files
from mcpfactory_pipeline.locks import held
from mcpfactory_pipeline.tools import EPOCH, Refused, run_uv
from mcpfactory_pipeline.versions import source_folder

__all__ = ["build_wheel", "copy_files", "runtime_wheel", "wheel_name", "wheel_version"]

RUNTIME = "mcpfactory-runtime"


def copy_files(source: Path, files: Iterable[str], target: Path) -> None:
    """Copies files below `source` to the same places below `target`; links become what they point to."""
    for path in files:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, place)


def build_wheel(source: Path, files: Iterable[str], work: Path) -> Path:
    """The wheel of the package in `source`, built from a copy of `files` in `work`: nothing is left in the tree.

    Raises `Refused` when the package does not build, `StageError` when the machinery broke.
    """
    copy_files(source, files, work / "source")
    run_uv(
        "build", "--wheel", "--out-dir", str(work / "dist"), str(work / "source"),
        cwd=work, environ={"SOURCE_DATE_EPOCH": EPOCH},
    )  # fmt: skip
    wheels = sorted((work / "dist").glob("*.whl"))
    if len(wheels) != 1:
        raise Refused(f"the build made {len(wheels)} wheels instead of one")
    return wheels[0]


def wheel_name(wheel: str) -> str:
    """The normalised name of the distribution in a wheel's file name (PEP 427, PEP 503)."""
    return wheel.split("-", maxsplit=1)[0].replace("_", "-").replace(".", "-").lower()


def wheel_version(wheel: str) -> str:
    """The version in a wheel's file name."""
    return wheel.split("-")[1]


def runtime_wheel(artifacts: Path, *, build: bool = True) -> Path | None:
    """The wheel of the running runtime when it is used from its sources, for no index has that one; else None.

    It is built once for each content of the sources and kept in `.wheelhouse/` of the artifacts; without `build`, None when
    it is not there.
    """
    source = source_folder(RUNTIME)
    if source is None:
        return None
    files = source_files(source)
    content = hash_files(source, files).removeprefix("sha256:")[:16]
    house = artifacts / ".wheelhouse"
    folder = house / f"{content}-{sys.version_info.major}"
    if not folder.is_dir():
        if not build:
            return None
        with held(house / ".lock", timeout=300):
            if not folder.is_dir():
                _build_into(folder, source, files)
    return next(folder.glob("*.whl"))


def _build_into(folder: Path, source: Path, files: list[str]) -> None:
    for leftover in folder.parent.glob(".building-*"):  # of a process that was killed; we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as work:
        try:
            wheel = build_wheel(source, files, Path(work))
        except Refused as error:
            raise StageError(f"the runtime in {source} does not build: {error}", hint="mend its sources") from error
        wheel.parent.rename(folder)
