"""Building packages in a copy of the sources, and what the name and the inside of a wheel say of it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from glob import escape
from importlib.metadata import PathDistribution
from pathlib import Path

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.build.frontend import build_in_sandbox

__all__ = [
    "backend_of",
    "build_packages",
    "build_wheel",
    "entry_pattern",
    "foreign_entries",
    "wheel_name",
    "wheel_version",
]


def build_wheel(source: Path, files: Iterable[str], work: Path, *, log: bool = True) -> Path:
    """Return the wheel of the package in `source`, built from a copy of `files` in `work`: nothing is left in the tree.

    Without `log` nothing is printed.

    Raises:
        ProgramRefusedError: when the package does not build.
        StageError: when the machinery broke.
    """
    return build_in_sandbox(source, files, work, ("wheel",), settings={}, log=log)[0]


def build_packages(
    source: Path,
    files: Iterable[str],
    work: Path,
    *,
    backend: str = "",
    settings: Mapping[str, object] | None = None,
    log: bool = True,
) -> tuple[Path, Path]:
    """Return the wheel and the source distribution of the package in `source`; the wheel is built from the source distribution.

    `backend` is the program that they must be built by, as `backend_of` names it; "" for the newest that the package
    allows. `settings` say how it is kept apart (`isolation`, `container`). Without `log` nothing is printed. Raises as
    `build_wheel` does.
    """
    pinned = re.fullmatch(r"([\w.-]+) \(?([\w.+!-]+)\)?", backend)
    constraints = f"{pinned[1]}=={pinned[2]}" if pinned else ""
    sdist, wheel = build_in_sandbox(
        source, files, work, ("sdist", "wheel"), constraints=constraints, settings=settings or {}, log=log
    )
    return wheel, sdist


def backend_of(wheel: Path) -> str:
    """Return the program that built a wheel, with its version (`hatchling 1.30.1`); "" when the wheel does not say."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(names[0]).decode(errors="replace").splitlines() if names else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Generator:")), "")


def foreign_entries(wheel: Path, package: str, server: str) -> list[str]:
    """Return what a wheel installs besides its package, its metadata, and scripts named after the server or the distribution.

    An entry is a path, or an entry point written as `group:name`.
    """
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    with zipfile.ZipFile(wheel) as archive:
        paths = [path for path in archive.namelist() if not path.endswith("/")]
        points = PathDistribution(zipfile.Path(archive, f"{info}/")).entry_points
    found = [path for path in paths if not _is_below(path, (package.split("."), [info]))]
    found += [f"{one.group}:{one.name}" for one in points if not _is_own_script(one.group, one.name, wheel, server)]
    return sorted(found)


def entry_pattern(entry: str, wheel: str) -> str:
    """Return the pattern (`fnmatch`) that an entry of a wheel has in every version of it: its data is in NAME-VERSION.data."""
    name, version = wheel.split("-")[:2]
    data = f"{name}-{version}.data/"
    return f"{name}-*.data/{escape(entry.removeprefix(data))}" if entry.startswith(data) else escape(entry)


def _is_below(path: str, folders: Iterable[list[str]]) -> bool:
    parts = path.replace("\\", "/").split("/")
    return ".." not in parts and any(parts[: len(folder)] == folder for folder in folders)


def _is_own_script(group: str, name: str, wheel: Path, server: str) -> bool:
    names = (canonicalize_name(server), wheel_name(wheel.name))
    return group == "console_scripts" and f"{canonicalize_name(name)}-".startswith(tuple(f"{one}-" for one in names))


def wheel_name(wheel: str) -> str:
    """Return the normalised name of the distribution in a wheel's file name (PEP 427, PEP 503)."""
    return wheel.split("-", maxsplit=1)[0].replace("_", "-").replace(".", "-").lower()


def wheel_version(wheel: str) -> str:
    """Return the version in a wheel's file name."""
    return wheel.split("-")[1]
