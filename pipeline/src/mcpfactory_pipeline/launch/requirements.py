"""What a server needs to run, as its `pyproject.toml` says: read as text, for it is asked before every start."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ServerError

__all__ = ["Requirements", "read_requirements"]

RUNTIME: Final = "mcpfactory-runtime"
_NAME: Final = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a server needs.

    Attributes:
        file: the `pyproject.toml`; it need not exist, which means that the runtime is all.
        dependencies: of `[project]`, as they are written there.
        python: `requires-python`; "" when nothing is said.
        special: what else decides what is installed: sources of uv, dependencies that the build backend finds; "" in most
            servers, whose environment then depends on `dependencies` alone.
        found: whether the build backend finds the dependencies (`dynamic`).
    """

    file: Path
    dependencies: tuple[str, ...]
    python: str = ""
    special: str = ""
    found: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The distributions that are named."""
        return frozenset(normalized_name(match[1]) for text in self.dependencies if (match := _NAME.match(text)))

    @property
    def runtime(self) -> bool:
        """Whether it runs on our runtime."""
        return self.found or RUNTIME in self.names


def read_requirements(folder: Path, shown: str) -> Requirements:
    """Return what the server in a folder needs.

    Raises:
        ServerError: for a `pyproject.toml` that cannot be used, called `shown`.
    """
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except FileNotFoundError:
        return Requirements(file, (RUNTIME,))
    except (OSError, ValueError) as error:
        raise ServerError(f"{shown} cannot be read: {error}", hint="mend the line that is named") from error
    project = data.get("project", {})
    dependencies, python = project.get("dependencies", []), project.get("requires-python", "")
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise ServerError(f"{shown}: project.dependencies is not a list of texts", hint='dependencies = ["pandas>=2"]')
    if not isinstance(python, str):
        raise ServerError(f"{shown}: project.requires-python is not text", hint='requires-python = ">=3.11"')
    needs = Requirements(file, tuple(dependencies), python)
    if "dependencies" in project.get("dynamic", ()):
        return Requirements(file, (), python, _backend_inputs(folder, text), found=True)
    sources = _sources(data, needs.names) + _sources(_root(folder), needs.names)
    return Requirements(file, needs.dependencies, python, f"{folder}\n{sources}" if sources else "")


def normalized_name(name: str) -> str:
    """Return a distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _sources(project: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the places that uv takes named distributions from, in place of the index; that of the runtime is the factory's to say."""
    table = project.get("tool", {}).get("uv", {}).get("sources", {})
    own = {
        normalized_name(name): where
        for name, where in table.items()
        if normalized_name(name) in names and normalized_name(name) != RUNTIME
    }
    return repr(sorted(own.items())) if own else ""


def _root(folder: Path) -> dict[str, Any]:
    """Return the `pyproject.toml` of the workspace; where it cannot be read, uv has its own say on that."""
    try:
        return tomllib.loads((folder.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, IndexError):
        return {}


def _backend_inputs(folder: Path, text: str) -> str:
    """All that a build backend may find dependencies in."""
    beside = sorted([*folder.glob("requirements*.txt"), folder / "setup.cfg", folder / "setup.py"])
    return "\n".join([str(folder), text, *(one.read_text(errors="replace") for one in beside if one.is_file())])
