"""Handing out the factory's own wheels: the same bytes wherever this factory was installed from."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.versions import source_folder, tool_version
from mcpfactory_pipeline.build.distributions.installed import check_imported, installed_files
from mcpfactory_pipeline.build.distributions.sources import build_files, content_of
from mcpfactory_pipeline.build.distributions.wheel import canonical_name, canonical_wheel

__all__ = ["DISTRIBUTIONS", "RUNTIME", "describe_runtime", "distribution_wheel", "runtime_wheel", "write_wheel"]

RUNTIME: Final = "mcpfactory-runtime"
DISTRIBUTIONS: Final = (
    RUNTIME,
    "mcpfactory-codegen",
    "mcpfactory-pipeline",
    "mcpfactory",
)  # what one needs comes before it


def distribution_wheel(name: str, into: Path) -> Path:
    """Write the wheel of one of our distributions, as it is used here, into a folder; return its path.

    One that is used from its sources is built from them; any other is put together from its installed files, without a
    network. Raises `StageError` when it cannot be had.
    """
    source = source_folder(name)
    return write_wheel(build_files(source) if source else installed_files(name), into)


def write_wheel(files: Mapping[str, bytes], into: Path) -> Path:
    """Write the wheel that holds these files into a folder, whole or not at all; return its path."""
    into.mkdir(parents=True, exist_ok=True)
    place, data = into / canonical_name(files), canonical_wheel(files)
    if not place.is_file() or place.read_bytes() != data:
        replace_file(place, data)
    return place


def describe_runtime() -> str:
    """Where the runtime's wheel comes from, in words. Raises `StageError` when it cannot be had; nothing is built."""
    source = source_folder(RUNTIME)
    if source is not None:
        check_imported(RUNTIME, source)
        return f"{tool_version(RUNTIME)}, built from its sources in {source}"
    count = len(installed_files(RUNTIME))
    return f"{tool_version(RUNTIME)}, {count} files as they were installed"


def runtime_wheel(artifacts: Path, *, build: bool = True) -> Path | None:
    """Return the wheel of the runtime that this factory runs on, kept in `.wheelhouse/` of the artifacts below its content.

    Without `build`, None when the runtime is used from sources whose wheel was not built yet. Raises `StageError` when the
    wheel cannot be had.
    """
    house, source = artifacts / ".wheelhouse", source_folder(RUNTIME)
    if source is None:
        return _kept(house, installed_files(RUNTIME))
    folder = house / content_of(source)
    if not folder.is_dir():
        if not build:
            return None
        with file_lock(house / ".lock", timeout=300):
            if not folder.is_dir():
                _build_into(folder, source)
    return next(folder.glob("*.whl"))


def _kept(house: Path, files: Mapping[str, bytes]) -> Path:
    """Return the wheel of files that are at hand, in the house. What lies there is compared: it costs less than to be wrong."""
    data = canonical_wheel(files)
    place = house / hash_bytes(data).removeprefix("sha256:")[:16] / canonical_name(files)
    if place.is_file() and place.read_bytes() == data:
        return place
    with file_lock(house / ".lock", timeout=300):
        return write_wheel(files, place.parent)


def _build_into(folder: Path, source: Path) -> None:
    for leftover in folder.parent.glob(".building-*"):  # of a process that was killed; we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as work:
        write_wheel(build_files(source, log=True), Path(work) / "made").parent.rename(folder)
