"""The files of an installed distribution, each held against its hash in `RECORD`, the installer's list of what it wrote."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.build.distributions.wheel import digest, is_wheel_file

__all__ = ["check_imported", "installed_files"]


def installed_files(name: str) -> dict[str, bytes]:
    """Return the files of a distribution's wheel, read from where it is installed.

    Raises `StageError` when the distribution is not installed, a file is missing or not what was installed, or Python
    imports the package from somewhere else.
    """
    found = _find(name)
    files = {path: _read(name, found, path, expected) for path, expected in _record(name, found)}
    check_imported(name, Path(str(found.locate_file(""))))
    return files


def check_imported(name: str, folder: Path) -> None:
    """Raise `StageError` when Python does not import a distribution's package from below a folder: something else runs."""
    package = name.replace("-", "_")
    spec = find_spec(package)
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin is None or not origin.is_relative_to(folder.resolve()):
        raise StageError(
            f"Python imports {package} from {origin.parent if origin else 'nowhere'}, and {name} is installed in {folder}",
            hint="unset PYTHONPATH, or start mcpfactory by the program that was installed",
        )


def _find(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise StageError(f"{name} is not installed in {sys.prefix}", hint=_again(name)) from error


def _record(name: str, found: Distribution) -> Iterator[tuple[str, str]]:
    """Yield the files of the wheel and their hashes. The list is read here: `Distribution.files` leaves out what is missing."""
    text = found.read_text("RECORD")
    if text is None:
        raise StageError(f"{name} is installed without RECORD, the list of its files", hint=_again(name))
    for row in csv.reader(text.splitlines()):
        path = row[0].replace("\\", "/")
        if is_wheel_file(path):
            yield path, row[1]


def _read(name: str, found: Distribution, path: str, expected: str) -> bytes:
    place = Path(str(found.locate_file(path)))
    try:
        data = place.read_bytes()
    except OSError as error:
        raise StageError(f"{name} is not whole: {place}: {error.strerror}", hint=_again(name)) from error
    if digest(data) != expected:
        raise StageError(f"{name} is not what was installed: {place} was changed", hint=_again(name))
    return data


def _again(name: str) -> str:
    """How the installation is made whole again, from where it came from."""
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        # uv links files from its cache, where a change has changed the copy that it would install again.
        return f"uv cache clean {name}, then: uv tool upgrade --reinstall mcpfactory"
    return f"install {name} again: {sys.executable} -m pip install --force-reinstall --no-deps, and what you gave pip before"
