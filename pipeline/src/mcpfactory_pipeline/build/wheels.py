"""Building packages in a copy of the sources, and the wheel of the runtime that this factory itself runs on."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_files, source_files
from mcpfactory_pipeline.base.locks import held
from mcpfactory_pipeline.build.programs import EPOCH, Refused, run_uv
from mcpfactory_pipeline.base.versions import source_folder

__all__ = [
    "RUNTIME",
    "backend_of",
    "build_packages",
    "build_wheel",
    "copy_files",
    "runtime_wheel",
    "wheel_name",
    "wheel_version",
]

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
    return _build(source, files, work, ("--wheel",), {"wheel": "*.whl"})[0]


def build_packages(source: Path, files: Iterable[str], work: Path, *, backend: str = "") -> tuple[Path, Path]:
    """The wheel and the source distribution of the package in `source`; the wheel is built from the source distribution.

    `backend` is the program that they must be built by, as `backend_of` names it; "" for the newest that the package
    allows. Raises as `build_wheel` does.
    """
    options: tuple[str, ...] = ()
    if pinned := re.fullmatch(r"([\w.-]+) \(?([\w.+!-]+)\)?", backend):
        constraints = work / "constraints.txt"
        constraints.write_text(f"{pinned[1]}=={pinned[2]}\n")
        options = ("--build-constraints", str(constraints))
    wheel, sdist = _build(source, files, work, options, {"wheel": "*.whl", "source distribution": "*.tar.gz"})
    return wheel, sdist


def _build(
    source: Path, files: Iterable[str], work: Path, options: Iterable[str], wanted: Mapping[str, str]
) -> list[Path]:
    copy_files(source, files, work / "source")
    # Build backends look for rules of what to leave out as far up as the next repository: they shall not find the
    # workspace's, or the same sources would give other bytes elsewhere.
    (work / ".git").mkdir()
    run_uv(
        "build", *options, "--out-dir", str(work / "dist"), str(work / "source"),
        cwd=work, environ={"SOURCE_DATE_EPOCH": EPOCH, "TZ": "UTC"},
    )  # fmt: skip
    made = []
    for name, pattern in wanted.items():
        found = sorted((work / "dist").glob(pattern))
        if len(found) != 1:
            raise Refused(f"the build made {len(found)} {name}s instead of one")
        made.append(found[0])
    return made


def backend_of(wheel: Path) -> str:
    """The program that built a wheel, with its version (`hatchling 1.30.1`); "" when the wheel does not say."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(names[0]).decode(errors="replace").splitlines() if names else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Generator:")), "")


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
