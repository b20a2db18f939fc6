"""The factory's own distributions as wheels and sdists, with the same bytes for each kind of installation."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import PipelineError, StageError
from mcpfactory_pipeline.base.files import replace_file, write_if_changed
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file, hash_files, list_source_files
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.versions import editable_source_folder, installed_version
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.wheels import (
    build_packages,
    build_wheel,
    canonical_wheel,
    canonical_wheel_name,
    digest,
    is_wheel_file,
    read_dist_info,
    read_wheel,
)

RUNTIME: Final = "mcpfactory-runtime"
DISTRIBUTIONS: Final = (RUNTIME, "mcpfactory-codegen", "mcpfactory-pipeline", "mcpfactory")  # build order
_BESIDE: Final = ("pyproject.toml", "README.md")


def write_factory_wheel(name: str, into: Path) -> Path:
    """Write the wheel of one of our distributions into a folder, and return the wheel's path.

    If this process uses the sources of the distribution, the wheel is built. The wheel of an installed distribution is
    reassembled from the installed files.
    """
    source = editable_source_folder(name)
    return write_wheel(build_wheel_contents(source) if source else installed_wheel_files(name), into)


def write_wheel(files: Mapping[str, bytes], into: Path) -> Path:
    """Write a wheel with these files into a folder atomically, and return the wheel's path."""
    place = into / canonical_wheel_name(files)
    write_if_changed(place, canonical_wheel(files))
    return place


def describe_runtime() -> str:
    """Describe the source of the runtime's wheel without building it."""
    source = editable_source_folder(RUNTIME)
    if source is not None:
        check_import_location(RUNTIME, source)
        return f"{installed_version(RUNTIME)}, built from its sources in {source}"
    count = len(installed_wheel_files(RUNTIME))
    return f"{installed_version(RUNTIME)}, {count} files as they were installed"


def cached_runtime_wheel(artifacts: Path, *, build: bool = True) -> Path | None:
    """Return the wheel of the runtime, cached by content hash in `.wheelhouse/` of the artifacts.

    If `build` is False, return None instead of building a wheel from sources.
    """
    house, source = artifacts / ".wheelhouse", editable_source_folder(RUNTIME)
    if source is None:
        return _cached_wheel(house, installed_wheel_files(RUNTIME))
    folder = house / hash_files(source, distribution_source_files(source)).removeprefix("sha256:")[:16]
    found = next(folder.glob("*.whl"), None)
    if found is None and build:
        with file_lock(house / ".lock", timeout=300):
            found = next(folder.glob("*.whl"), None) or _build_into(folder, source)
    return found


def _cached_wheel(house: Path, files: Mapping[str, bytes]) -> Path:
    """Return the wheel of installed files from the wheelhouse; write a missing or different wheel."""
    data = canonical_wheel(files)
    place = house / hash_bytes(data).removeprefix("sha256:")[:16] / canonical_wheel_name(files)
    if place.is_file() and place.read_bytes() == data:
        return place
    with file_lock(house / ".lock", timeout=300):
        return write_wheel(files, place.parent)


def _build_into(folder: Path, source: Path) -> Path:
    # This process has the lock, so killed processes left these folders.
    for leftover in (folder, *folder.parent.glob(".building-*")):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as work:
        wheel = write_wheel(build_wheel_contents(source, log=True), Path(work) / "made")
        wheel.parent.rename(folder)
    return folder / wheel.name


def installed_wheel_files(name: str) -> dict[str, bytes]:
    """Return the files of the wheel from which a distribution was installed.

    Raises:
        StageError: the distribution is not installed, a file is missing or was modified, or Python imports the
            package from another location.
    """
    found = _find(name)
    files = {path: _read(name, found, path, expected) for path, expected in _record(name, found)}
    check_import_location(name, Path(str(found.locate_file(""))))
    return files


def check_import_location(name: str, folder: Path) -> None:
    """Raise `StageError` if Python imports a distribution's package from outside `folder`."""
    package = name.replace("-", "_")
    spec = find_spec(package)
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin is None or not origin.is_relative_to(folder.resolve()):
        raise StageError(
            f"Python imports {package} from {(origin.parent if origin else 'nowhere')}, but {name} is "
            f"installed in {folder}",
            hint="unset PYTHONPATH, or start the installed mcpfactory program",
        )


def _find(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise StageError(f"{name} is not installed in {sys.prefix}", hint=_reinstall_hint(name)) from error


def _record(name: str, found: Distribution) -> Iterator[tuple[str, str]]:
    """Yield the files of the wheel and their hashes.

    Parse `RECORD` directly, because `Distribution.files` omits missing files.
    """
    text = found.read_text("RECORD")
    if text is None:
        raise StageError(f"{name} is installed without RECORD, the list of its files", hint=_reinstall_hint(name))
    for row in csv.reader(text.splitlines()):
        path = row[0].replace("\\", "/")
        if is_wheel_file(path):
            yield path, row[1]


def _read(name: str, found: Distribution, path: str, expected: str) -> bytes:
    place = Path(str(found.locate_file(path)))
    try:
        data = place.read_bytes()
    except OSError as error:
        raise StageError(f"{name} is incomplete: {place}: {error.strerror}", hint=_reinstall_hint(name)) from error
    if digest(data) != expected:
        raise StageError(f"{name} was changed after installation: {place}", hint=_reinstall_hint(name))
    return data


def _reinstall_hint(name: str) -> str:
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        # uv hard-links files from its cache, so a change of an installed file also changes the cache.
        return f"uv cache clean {name}, then: uv tool upgrade --reinstall mcpfactory"
    return (
        f"install {name} again: {sys.executable} -m pip install --force-reinstall --no-deps, and the arguments "
        "of the first installation"
    )


def distribution_source_files(source: Path) -> list[str]:
    """Return the source files of a distribution, including files that symlinks point to."""
    linked = [
        Path(where, name).relative_to(source).as_posix()
        for where, folders, files in os.walk(source / "src")
        for name in (*folders, *files)
        if Path(where, name).is_symlink()
    ]
    below = tuple(link.removeprefix("src/") for link in linked)
    own = [f"src/{path}" for path in list_source_files(source / "src", without=below)]
    others = [link for link in linked if (source / link).is_file()]
    others += [f"{link}/{path}" for link in linked for path in list_source_files((source / link).resolve())]
    return sorted([*(name for name in _BESIDE if (source / name).is_file()), *own, *others])


def build_wheel_contents(source: Path, *, log: bool = False) -> dict[str, bytes]:
    """Build the wheel of the distribution in `source`, and return the wheel's files."""
    with tempfile.TemporaryDirectory() as work:
        try:
            return read_wheel(build_wheel(source, distribution_source_files(source), Path(work), log=log))
        except ToolRejectedInputError as error:
            raise StageError(
                f"{source} cannot be built: {error}", hint="correct the sources of the distribution"
            ) from error


def write_sdist_and_wheel(source: Path, into: Path) -> dict[str, str]:
    """Build the source distribution of `source`, then build the wheel from it; return the hash of each file.

    Other versions in `into` are deleted.
    """
    if not (source / "pyproject.toml").is_file():
        raise StageError(f"{source} has no pyproject.toml", hint="give a folder that contains a pyproject.toml")
    with tempfile.TemporaryDirectory() as work:
        try:
            built, sdist = build_packages(source, distribution_source_files(source), Path(work), log=False)
        except ToolRejectedInputError as error:
            raise StageError(
                f"{source} cannot be built: {error}", hint="correct the sources of the distribution"
            ) from error
        wheel = write_wheel(read_wheel(built), into)
        replace_file(into / sdist.name, sdist.read_bytes())
    made = (wheel.name, sdist.name)
    for pattern in (f"{wheel.name.partition('-')[0]}-*.whl", f"{wheel.name.partition('-')[0]}-*.tar.gz"):
        for old in into.glob(pattern):
            if old.name not in made:
                old.unlink()
    return {name: hash_file(into / name) for name in made}


def requires_runtime(wheel: Path) -> bool:
    """Return True if a wheel declares the runtime as a dependency; False if the wheel is damaged."""
    try:
        declared = read_dist_info(wheel, "METADATA").get_all("Requires-Dist", [])
    except zipfile.BadZipFile:
        return False
    return any(canonicalize_name(re.split(r"[^\w.-]", text.strip())[0]) == RUNTIME for text in declared)


def main(arguments: list[str]) -> int:
    """Build the packages of each folder, and print the name and hash of each package."""
    if len(arguments) < 2:
        print("usage: python -m mcpfactory_pipeline.build.factory_distributions INTO FOLDER…", file=sys.stderr)  # noqa: T201 - output for the Makefile
        return 2
    into, *folders = map(Path, arguments)
    try:
        for folder in folders:
            for name, content in write_sdist_and_wheel(folder.resolve(), into).items():
                print(f"{content.removeprefix('sha256:')}  {into / name}", flush=True)  # noqa: T201 - output for the Makefile
    except PipelineError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)  # noqa: T201 - output for the Makefile
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
