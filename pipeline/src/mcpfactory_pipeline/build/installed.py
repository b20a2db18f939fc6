"""What is installed in a virtual environment: every file by its hash, held against the wheel and against what installers wrote down."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_record
from mcpfactory_pipeline.build.canonical_wheel import digest

__all__ = ["ChangedFilesError", "changed_files", "check_installed", "contents", "contents_hash"]

_SKIPPED: Final = "__pycache__"  # never read: Python's caches of sandboxes are elsewhere
_OF_THE_VENV: Final = ("_virtualenv.py", "_virtualenv.pth")
_SHOWN: Final = 3


class ChangedFilesError(StageError):
    """What was installed is not what the packages hold."""


def contents(folder: Path, *, without: str = "") -> dict[str, str]:
    """Return what stands below a folder: path → hash as `RECORD` has it, or where a link leads to; not the file `without`."""
    return {path: entry for path, entry in _walk(folder) if path != without}


def contents_hash(found: Mapping[str, str]) -> str:
    """Return one hash for all of `contents`."""
    return hash_record(dict(found))


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the paths that are new, gone, or have another content."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def check_installed(folder: Path, found: Mapping[str, str], wheel: Path) -> None:
    """Hold what is in an environment against the wheel, and against the lists of files of all that is installed there.

    Args:
        folder: the environment.
        found: its `contents`.
        wheel: what was installed, with bytes that were hashed.

    Raises:
        ChangedFilesError: a file is not what its package has, or is of no package.
    """
    site = _site(found)
    wrong = [f"{site}{path}" for path, expected in _wheel_files(wheel) if found.get(f"{site}{path}") != expected]
    listed: set[str] = {f"{site}{name}" for name in _OF_THE_VENV}
    for record in (path for path in found if path.startswith(site) and path.endswith(".dist-info/RECORD")):
        for path, expected in _record(folder / record):
            place = os.path.normpath(f"{site}{path}")
            listed.add(place)
            if expected and found.get(place) not in {expected, None}:
                wrong.append(place)
    wrong += [path for path in found if path.startswith(site) and path not in listed]
    if wrong:
        names = ", ".join(sorted(set(wrong))[:_SHOWN])
        raise ChangedFilesError(
            f"what was installed is not what the packages hold: {names}",
            hint="something changes the files of environments while they are made: find it, then run again",
        )


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != _SKIPPED]
        for name in [*files, *(name for name in folders if Path(where, name).is_symlink())]:
            file = Path(where, name)
            entry = f"-> {file.readlink()}" if file.is_symlink() else _hash(file)
            yield file.relative_to(folder).as_posix(), entry


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256")
    return f"sha256={base64.urlsafe_b64encode(found.digest()).rstrip(b'=').decode()}"


def _site(found: Mapping[str, str]) -> str:
    """Return the folder of libraries, with a slash at its end."""
    ends = (f"{path.partition('/site-packages/')[0]}/site-packages/" for path in found if "/site-packages/" in path)
    return min(ends, key=len, default="lib/")


def _wheel_files(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that an installer takes as they are into the folder of libraries, and their hashes."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            top, _, rest = name.partition("/")
            if (
                not name.endswith("/")
                and not top.endswith(".data")
                and not (top.endswith(".dist-info") and rest == "RECORD")
            ):
                yield name, digest(archive.read(name))


def _record(file: Path) -> Iterator[tuple[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            if row:
                yield row[0].replace("\\", "/"), row[1]
