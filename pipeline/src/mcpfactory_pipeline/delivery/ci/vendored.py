"""The factory's own wheels, tracked in a folder of the workspace, so that jobs install the version in use here."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from mcpfactory_pipeline.base.errors import JsonRecord, StageError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.versions import tool_version
from mcpfactory_pipeline.build.distributions import DISTRIBUTIONS, distribution_wheel
from mcpfactory_pipeline.build.wheels import read_wheel

NEWER: Final = "is newer"


@dataclass(frozen=True, slots=True)
class WheelDifference(JsonRecord):
    """A wheel that differs from the version in use: its version in the folder ("" if missing) and here, and how."""

    name: str
    there: str
    here: str
    words: str


def differences(folder: Path) -> list[WheelDifference]:
    """Return the missing or different wheels of the factory's distributions in a folder. Nothing is built."""
    there = _wheels(folder)
    found = (_difference(name, there.get(name, [])) for name in DISTRIBUTIONS)
    return [one for one in found if one is not None]


def own_wheels(folder: Path) -> list[Path]:
    """Return the wheels of our distributions in a folder."""
    return [wheel for wheels in _wheels(folder).values() for wheel in wheels]


def refresh(folder: Path) -> list[str]:
    """Replace the factory's wheels in the folder by those of the version in use; return the changed names.

    Raises:
        StageError: a wheel cannot be built or found; the folder is then unchanged.
    """
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(len(DISTRIBUTIONS)) as pool:
        try:
            built = list(pool.map(lambda name: distribution_wheel(name, Path(place, name)), DISTRIBUTIONS))
        except StageError as error:
            raise StageError(
                f"the wheels of this factory cannot be had: {error}",
                hint=f"{error.hint}; or take it from a repository: --factory git+https://…@REF",
            ) from error
        wanted = {wheel.name: wheel.read_bytes() for wheel in built}
    folder.mkdir(parents=True, exist_ok=True)
    changed = []
    for name, data in wanted.items():
        file = folder / name
        if not file.is_file() or file.read_bytes() != data:
            replace_file(file, data)
            changed.append(name)
    for wheel in own_wheels(folder):
        if wheel.name not in wanted:
            wheel.unlink()
            changed.append(wheel.name)
    return sorted(changed)


def _wheels(folder: Path) -> Mapping[str, list[Path]]:
    """Our distributions → their wheels in the folder."""
    found: dict[str, list[Path]] = {}
    for wheel in sorted(folder.glob("mcpfactory*.whl")):
        try:
            name = str(parse_wheel_filename(wheel.name)[0])
        except InvalidWheelFilename:
            continue
        if name in DISTRIBUTIONS:
            found.setdefault(name, []).append(wheel)
    return found


def _difference(name: str, wheels: list[Path]) -> WheelDifference | None:
    here = tool_version(name)
    if not wheels:
        return WheelDifference(name, "", here, "is not there")
    if len(wheels) > 1:
        return WheelDifference(name, "", here, f"is there {len(wheels)} times")
    version = parse_wheel_filename(wheels[0].name)[1]
    there = str(version)
    if version != Version(here):
        return WheelDifference(name, there, here, "is older" if version < Version(here) else NEWER)
    try:
        same = _same(name, read_wheel(wheels[0]))
    except (OSError, ValueError, KeyError, StopIteration, zipfile.BadZipFile) as error:
        return WheelDifference(name, there, here, f"cannot be read: {error}")
    return None if same else WheelDifference(name, there, here, "has other code")


def _same(name: str, files: Mapping[str, bytes]) -> bool:
    """Return True if a wheel has the code and the requirements of the distribution in use."""
    package = name.replace("-", "_")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    root = Path(spec.origin).parent.parent
    code = {path: data for path, data in files.items() if path.startswith(f"{package}/")}
    modules = {file.relative_to(root).as_posix() for file in (root / package).rglob("*.py")}
    if modules - set(code) or not all(_is(root / path, data) for path, data in code.items()):
        return False
    metadata = next(data.decode() for path, data in files.items() if path.endswith(".dist-info/METADATA"))
    return _requirements(metadata) == _requirements(_metadata(name))


def _is(file: Path, data: bytes) -> bool:
    return file.is_file() and file.read_bytes() == data


def _metadata(name: str) -> str:
    try:
        return distribution(name).read_text("METADATA") or ""
    except PackageNotFoundError:
        return ""


def _requirements(metadata: str) -> list[str]:
    return sorted(line for line in metadata.splitlines() if line.startswith("Requires-"))
