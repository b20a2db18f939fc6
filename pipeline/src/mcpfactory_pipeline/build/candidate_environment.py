"""Virtual environments of a candidate, and their installed packages.

The hash of a wheel is checked immediately before the wheel is installed. An environment is reused only while its files
are unchanged.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.files import read_json, venv_python
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file, hash_named_texts
from mcpfactory_pipeline.base.versions import python_version
from mcpfactory_pipeline.build.dependency_lock import ensure_lock, runtime_wheel_for
from mcpfactory_pipeline.build.programs import run_uv
from mcpfactory_pipeline.build.wheels import digest
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs

# `__pycache__` folders are not checked, because sandboxed Python stores its caches elsewhere.
_SKIPPED: Final = "__pycache__"
_OF_THE_VENV: Final = ("_virtualenv.py", "_virtualenv.pth")
_SHOWN: Final = 3


class ChangedFilesError(StageError):
    """Error for installed files that differ from their packages."""


def hash_environment_files(folder: Path, *, without: str = "") -> dict[str, str]:
    """Return the hashes of all files below a folder except the file `without`, by path.

    Hashes are in `RECORD` format. For a link, the value is the target of the link.
    """
    return {path: entry for path, entry in _walk(folder) if path != without}


def contents_hash(found: Mapping[str, str]) -> str:
    """Return one hash for all results of `hash_environment_files`."""
    return hash_named_texts(dict(found))


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the paths that were added, removed or changed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def check_installed_files(folder: Path, found: Mapping[str, str], wheel: Path) -> None:
    """Compare an environment's files with the wheel and with the file lists of all installed packages.

    `found` is the result of `hash_environment_files`.
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
            f"the installed files differ from their packages: {names}",
            hint="find the program that changes the files of new environments, then repeat the run",
        )


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != _SKIPPED]
        for name in [*files, *(name for name in folders if Path(where, name).is_symlink())]:
            file = Path(where, name)
            entry = f"-> {file.readlink()}" if file.is_symlink() else digest(file.read_bytes())
            yield file.relative_to(folder).as_posix(), entry


def _site(found: Mapping[str, str]) -> str:
    ends = (f"{path.partition('/site-packages/')[0]}/site-packages/" for path in found if "/site-packages/" in path)
    return min(ends, key=len, default="lib/")


def _wheel_files(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that installers copy unchanged into site-packages, and their hashes."""
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


UNINSTALLABLE: Final = "correct [project] dependencies in pyproject.toml, or make the package index reachable"
_REBUILD: Final = "build it again: mcpfactory pipeline run NAME --until build --force"
_READY: Final = "ready.json"  # file that is written last; an environment with this file is complete
_TEST: Final = "test"
_CHECKED: Final = "validate"
_MODEL: Final = "model"


@dataclass(frozen=True, slots=True)
class CandidateEnvironment:
    """Complete virtual environment, with the hashes of its files (`hash_environment_files`)."""

    folder: Path
    python: Path
    holds: Mapping[str, str]

    def changes(self) -> list[str]:
        """Return the files that changed since the environment was created."""
        return changed_files(self.holds, hash_environment_files(self.folder, without=_READY))


def environment_for_validate(inputs: StageInputs, candidate: Artifact) -> CandidateEnvironment:
    """Return the environment with only the wheel and its dependencies; create a missing environment.

    Raises:
        ToolRejectedInputError: the candidate cannot be installed.
        StageError: a tool failed, or the wheel was changed after the build.
    """
    return _environment(inputs, candidate, _CHECKED, [], {})


def environment_for_tests(inputs: StageInputs, candidate: Artifact, *, copied: bool) -> CandidateEnvironment:
    """Return the environment with the wheel, pytest and the dependency group `test`; create a missing environment.

    If `copied` is True, files are copied instead of linked to uv's cache, so changes affect only this environment.
    """
    groups, requirements = _test_group(inputs.folder)
    more = {"requirements": requirements or "pytest", "copied": copied}
    options = ["pytest", *groups, *(["--link-mode", "copy"] if copied else [])]
    return _environment(inputs, candidate, _TEST, options, more)


def environment_for_simulated_api(inputs: StageInputs, candidate: Artifact) -> CandidateEnvironment:
    """Return the environment of the simulated API, with the wheel and the dependency group `test`.

    The server cannot see this environment. The tests use a separate environment, because they run at the same time as
    the simulated API.
    """
    groups, requirements = _test_group(inputs.folder)
    return _environment(inputs, candidate, _MODEL, groups, {"requirements": requirements} if groups else {})


def find_validated_python(candidate: Artifact) -> Path | None:
    """Return the interpreter of the environment that `validate` made from exactly these files, or None if missing."""
    folder = _folder(candidate, _CHECKED)
    made = read_json(folder / _READY)
    return venv_python(folder) if made.get("files") == dict(candidate.files) and venv_python(folder).exists() else None


def _environment(
    inputs: StageInputs, candidate: Artifact, purpose: str, options: list[str], more: Mapping[str, Any]
) -> CandidateEnvironment:
    wheel = _hashed_wheel(inputs, candidate)
    runtime = runtime_wheel_for(inputs.artifacts, wheel)
    lock = ensure_lock(
        candidate.folder, wheel, artifacts=inputs.artifacts, root=inputs.root, work=inputs.work / "resolved"
    )
    wanted = {
        "files": dict(candidate.files),
        "lock": hash_file(lock),
        "runtime": hash_file(runtime) if runtime else "from the index",
        "python": f"{python_version()} in {sys.base_prefix}",
        **more,
    }
    folder = _folder(candidate, purpose)
    if (found := _whole(folder, wanted)) is not None:
        return found
    for other in candidate.folder.parent.glob("*/environments"):  # earlier candidates no longer need their environments
        if other != candidate.folder / "environments":
            shutil.rmtree(other, ignore_errors=True)
    packages = ["--requirements", str(lock), str(wheel), *([str(runtime)] if runtime else []), *options]
    try:
        holds = _made(inputs, folder, wheel, packages)
    except ChangedFilesError as error:
        # uv hard-links files from its cache, so an edit of one installed file changes all copies.
        print(f"{error}; fetching again without the cache of uv", flush=True)  # noqa: T201 - the log of the stage
        holds = _made(inputs, folder, wheel, [*packages, "--no-cache"])
    (folder / _READY).write_text(json.dumps({**wanted, "holds": contents_hash(holds)}), encoding="utf-8")
    return CandidateEnvironment(folder, venv_python(folder), holds)


def _made(inputs: StageInputs, folder: Path, wheel: Path, packages: Sequence[str]) -> dict[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    run_uv("venv", "--quiet", str(folder), cwd=inputs.work)
    run_uv("pip", "install", "--quiet", *packages, cwd=inputs.work, python=venv_python(folder))
    holds = hash_environment_files(folder)
    check_installed_files(folder, holds, wheel)
    return holds


def _whole(folder: Path, wanted: Mapping[str, Any]) -> CandidateEnvironment | None:
    """Return an existing environment if it is unmodified and uses the current interpreter, else None."""
    made, python = read_json(folder / _READY), venv_python(folder)
    if {key: value for key, value in made.items() if key != "holds"} != wanted or not python.exists():
        return None
    holds = hash_environment_files(folder, without=_READY)
    return CandidateEnvironment(folder, python, holds) if contents_hash(holds) == made.get("holds") else None


def _hashed_wheel(inputs: StageInputs, candidate: Artifact) -> Path:
    """Return a private copy of the wheel, after a check of its hash."""
    try:
        data = candidate.wheel.read_bytes()
    except OSError as error:
        raise StageError(f"{candidate.wheel.name} cannot be read: {error.strerror}", hint=_REBUILD) from error
    if hash_bytes(data) != candidate.files[candidate.wheel.name]:
        raise StageError(f"{candidate.wheel.name} is not the built file: the hash differs", hint=_REBUILD)
    place = inputs.work / "wheel" / candidate.wheel.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def _folder(candidate: Artifact, purpose: str) -> Path:
    return candidate.folder / "environments" / purpose


def _test_group(folder: Path) -> tuple[list[str], str]:
    """Return uv's options for the dependency group `test`, and the hash of the group's file."""
    project = folder / "pyproject.toml"
    try:
        config = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [], ""
    if "test" not in config.get("dependency-groups", {}):
        return [], ""
    return ["--group", f"{project}:test"], hash_file(project)
