"""Building packages in a copy of the sources, and what the name and the inside of a wheel say of it."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from mcpfactory_pipeline.build.programs import EPOCH, ProgramRefusedError, run_uv

__all__ = ["backend_of", "build_packages", "build_wheel", "copy_files", "wheel_name", "wheel_version"]


def copy_files(source: Path, files: Iterable[str], target: Path) -> None:
    """Copy files below `source` to the same places below `target`; links become what they point to."""
    for path in files:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, place)


def build_wheel(source: Path, files: Iterable[str], work: Path, *, log: bool = True) -> Path:
    """Return the wheel of the package in `source`, built from a copy of `files` in `work`: nothing is left in the tree.

    Without `log` nothing is printed.

    Raises:
        ProgramRefusedError: when the package does not build.
        StageError: when the machinery broke.
    """
    return _build(source, files, work, ("--wheel",), {"wheel": "*.whl"}, log=log)[0]


def build_packages(
    source: Path, files: Iterable[str], work: Path, *, backend: str = "", log: bool = True
) -> tuple[Path, Path]:
    """Return the wheel and the source distribution of the package in `source`; the wheel is built from the source distribution.

    `backend` is the program that they must be built by, as `backend_of` names it; "" for the newest that the package
    allows. Without `log` nothing is printed. Raises as `build_wheel` does.
    """
    options: tuple[str, ...] = ()
    if pinned := re.fullmatch(r"([\w.-]+) \(?([\w.+!-]+)\)?", backend):
        constraints = work / "constraints.txt"
        constraints.write_text(f"{pinned[1]}=={pinned[2]}\n")
        options = ("--build-constraints", str(constraints))
    wanted = {"wheel": "*.whl", "source distribution": "*.tar.gz"}
    wheel, sdist = _build(source, files, work, options, wanted, log=log)
    return wheel, sdist


def _build(
    source: Path, files: Iterable[str], work: Path, options: Iterable[str], wanted: Mapping[str, str], *, log: bool
) -> list[Path]:
    copy_files(source, files, work / "source")
    # Build backends look for rules of what to leave out as far up as the next repository: they shall not find the
    # workspace's, or the same sources would give other bytes elsewhere.
    (work / ".git").mkdir()
    run_uv(
        "build",
        *options,
        "--out-dir",
        str(work / "dist"),
        str(work / "source"),
        cwd=work,
        environ={"SOURCE_DATE_EPOCH": EPOCH, "TZ": "UTC"},
        log=log,
    )
    made = []
    for name, pattern in wanted.items():
        found = sorted((work / "dist").glob(pattern))
        if len(found) != 1:
            raise ProgramRefusedError(f"the build made {len(found)} {name}s instead of one")
        made.append(found[0])
    return made


def backend_of(wheel: Path) -> str:
    """Return the program that built a wheel, with its version (`hatchling 1.30.1`); "" when the wheel does not say."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(names[0]).decode(errors="replace").splitlines() if names else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Generator:")), "")


def wheel_name(wheel: str) -> str:
    """Return the normalised name of the distribution in a wheel's file name (PEP 427, PEP 503)."""
    return wheel.split("-", maxsplit=1)[0].replace("_", "-").replace(".", "-").lower()


def wheel_version(wheel: str) -> str:
    """Return the version in a wheel's file name."""
    return wheel.split("-")[1]
