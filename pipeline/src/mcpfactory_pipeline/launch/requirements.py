from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

from packaging.markers import Environment, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.base.files import venv_python

RUNTIME: Final = "mcpfactory-runtime"
_NAME: Final = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements of a server.

    Attributes:
        file: the `pyproject.toml`; the runtime is the only requirement if the file is missing.
        dependencies: the dependencies in `[project]`.
        python: `requires-python`; "" if not set.
        special: other inputs of the installation, such as uv sources; usually "".
        found: True if the build backend computes the dependencies (`dynamic`).
    """

    file: Path
    dependencies: tuple[str, ...]
    python: str = ""
    special: str = ""
    found: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Return the required distributions."""
        return frozenset(canonicalize_name(match[1]) for text in self.dependencies if (match := _NAME.match(text)))

    @property
    def runtime(self) -> bool:
        """Return True if the server needs our runtime."""
        return self.found or RUNTIME in self.names


def read_server_requirements(folder: Path, shown: str) -> Requirements:
    """Return the requirements of the server in a folder."""
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except FileNotFoundError:
        return Requirements(file, (RUNTIME,))
    except (OSError, ValueError) as error:
        raise ServerError(f"{shown} cannot be read: {error}", hint=f"correct {shown}") from error
    project = data.get("project", {})
    dependencies, python = project.get("dependencies", []), project.get("requires-python", "")
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise ServerError(
            f"{shown}: project.dependencies must be a list of strings",
            hint='write a list such as dependencies = ["pandas>=2"]',
        )
    if not isinstance(python, str):
        raise ServerError(
            f"{shown}: project.requires-python must be a string",
            hint='write a string such as requires-python = ">=3.11"',
        )
    needs = Requirements(file, tuple(dependencies), python)
    if "dependencies" in project.get("dynamic", ()):
        return Requirements(file, (), python, _backend_inputs(folder, text), found=True)
    sources = _sources(data, needs.names) + _sources(_root(folder), needs.names)
    return Requirements(file, needs.dependencies, python, f"{folder}\n{sources}" if sources else "")


def _sources(project: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return uv's sources for the given distributions, except for the runtime."""
    table = project.get("tool", {}).get("uv", {}).get("sources", {})
    own = {
        canonicalize_name(name): where
        for name, where in table.items()
        if canonicalize_name(name) in names and canonicalize_name(name) != RUNTIME
    }
    return repr(sorted(own.items())) if own else ""


def _root(folder: Path) -> dict[str, Any]:
    """Return the workspace's `pyproject.toml`; empty if the file is unreadable."""
    try:
        return tomllib.loads((folder.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, IndexError):
        return {}


def _backend_inputs(folder: Path, text: str) -> str:
    """Return the content of all files that may contain dependencies for a build backend."""
    beside = sorted([*folder.glob("requirements*.txt"), folder / "setup.cfg", folder / "setup.py"])
    return "\n".join([str(folder), text, *(one.read_text(errors="replace") for one in beside if one.is_file())])


def unmet_requirement_in_venv(venv: Path, needs: Requirements, wanted: Sequence[str]) -> str:
    """Describe the first requirement that a user's own environment does not meet; "" if all are met."""
    if needs.found or needs.special:
        return ""  # uv sources or the build backend select the packages, so only the user can check the packages
    libraries = [*venv.glob("lib*/python*/site-packages"), *venv.glob("Lib/site-packages")]
    return unmet_requirement(wanted, [str(one) for one in libraries], _version_of(venv))


def _version_of(venv: Path) -> str:
    try:
        lines = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    return ".".join((values.get("version_info") or values.get("version") or "").split(".")[:3])


def unmet_requirement(needed: Iterable[str], paths: Sequence[str], python: str = "") -> str:
    """Describe the first requirement that the libraries in `paths` do not meet; "" if all are met.

    `python` is the version of the interpreter of these libraries; by default, the current interpreter.
    """
    here: dict[str, Distribution] = {}
    for one in distributions(path=list(paths)):
        here.setdefault(canonicalize_name(str(one.metadata["Name"])), one)
    environment = default_environment()
    if python:
        environment["python_version"], environment["python_full_version"] = ".".join(python.split(".")[:2]), python
    waiting, seen = [(text, frozenset[str]()) for text in needed], set[tuple[str, frozenset[str]]]()
    while waiting:
        text, extras = waiting.pop()
        try:
            wanted = Requirement(text)
        except InvalidRequirement as error:
            return f"{text} ({error})"
        if not _applies(wanted, extras, environment):
            continue
        found = here.get(canonicalize_name(wanted.name))
        if found is None or not wanted.specifier.contains(found.version, prereleases=True):
            return f"{wanted}" + (f", and has {found.version}" if found else "")
        mark = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if mark not in seen:
            seen.add(mark)
            waiting += [(needs, frozenset(wanted.extras)) for needs in found.requires or ()]
    return ""


def _applies(wanted: Requirement, extras: frozenset[str], environment: Environment) -> bool:
    if wanted.marker is None:
        return True
    values: dict[str, str | AbstractSet[str]] = {name: str(value) for name, value in environment.items()}
    return any(wanted.marker.evaluate({**values, "extra": extra}) for extra in (extras or {""}))


READY: Final = "ready.json"  # file that is written last; an environment with this file is complete
_MARKED: Final = 86_400  # minimum seconds between two updates of the time of an environment's last use


def is_environment_ready(folder: Path) -> bool:
    """Return True if an environment is complete, and record the time of its use."""
    mark = folder / READY
    try:
        used = mark.stat().st_mtime
    except OSError:
        return False
    if time.time() - used > _MARKED:
        with suppress(OSError):
            mark.touch()
    return venv_python(folder).exists()  # the environment may link to an interpreter that was deleted
