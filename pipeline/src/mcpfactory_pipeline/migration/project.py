"""A whole project of Python that was written with FastMCP or the official SDK: its files, and what it depends on. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.migration.codemod import Migration, MigrationStep, migrate_source

__all__ = ["PROJECT", "ProjectMigration", "dependencies", "migrate_project"]

PROJECT: Final = "pyproject.toml"
_FRAMEWORKS: Final = frozenset({"mcp", "fastmcp"})
_APART: Final = frozenset({"tests", "test", "examples", "docs"})  # folders whose code is no part of the server


@dataclass(frozen=True, slots=True)
class ProjectMigration:
    """What a project becomes.

    `files` has a migration for each file that imports one of the two, by its path. `requirements` are the text of `pyproject.toml` before
    and after. `left` are places in it that have to be written by hand, and `notes` are files that were left as they are, with the reason.
    """

    files: Mapping[str, Migration] = field(default_factory=dict)
    requirements: tuple[str, str] = ("", "")
    left: tuple[MigrationStep, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do by hand."""
        return bool(self.files) and not self.left and all(one.complete for one in self.files.values())

    def changed(self) -> dict[str, tuple[str, str]]:
        """Return what every file that changes holds now and afterwards, by its path."""
        texts = {path: (one.before, one.after) for path, one in self.files.items()}
        texts[PROJECT] = self.requirements
        return {path: pair for path, pair in texts.items() if pair[0] != pair[1]}


def migrate_project(texts: Mapping[str, str], runtime: str) -> ProjectMigration:
    """Return what a project becomes.

    Args:
        texts: what its files in Python and its `pyproject.toml` hold, by their paths.
        runtime: the version of the runtime (`0.1.0`).

    Raises:
        SyntaxError: a file is not Python.
        ValueError: `pyproject.toml` is no TOML, or has no dependencies that are read.
    """
    files: dict[str, Migration] = {}
    notes: list[str] = []
    for path, text in sorted(texts.items()):
        if not path.endswith(".py"):
            continue
        try:
            found = migrate_source(text)
        except SyntaxError:
            if _is_apart(path):
                continue
            raise
        if not found.moved and not found.left:
            continue
        if _is_apart(path):
            notes.append(f"{path} stays as it is, and was written for the other framework")
        else:
            files[path] = found
    before = texts[PROJECT]
    after, left = _with_runtime(before, runtime)
    return ProjectMigration(files, (before, after), left, tuple(notes))


def _is_apart(path: str) -> bool:
    """Whether a file is no part of the server: a test, an example."""
    *folders, name = PurePosixPath(path).parts
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py") or bool(_APART & {*folders})


def _with_runtime(text: str, runtime: str) -> tuple[str, tuple[MigrationStep, ...]]:
    """Return the text of a `pyproject.toml` that depends on the runtime in the place of the frameworks."""
    major, minor = runtime.split(".")[:2]
    wanted = f"{RUNTIME}>={major}.{minor},<{major}.{int(minor) + 1}"
    listed = list(dependencies(text))
    frameworks = [one for one in listed if _name(one) in _FRAMEWORKS]
    others = [one for one in listed if one not in frameworks and _name(one) != RUNTIME]
    if any(_name(one) == RUNTIME for one in listed) and not frameworks:
        return text, ()
    after = text
    for place, one in enumerate(frameworks):
        after = _replaced(after, one, "" if place else wanted)
    if set(dependencies(after)) == {*others, wanted}:
        return after, ()
    line = next((number for number, row in enumerate(text.splitlines(), 1) if "dependencies" in row), 1)
    says = f"write {wanted} there, in the place of {', '.join(frameworks) or 'nothing'}"
    return text, (MigrationStep(line, "[project] dependencies", says),)


def _replaced(text: str, requirement: str, wanted: str) -> str:
    """Return a text with a requirement between quotes replaced, or taken away with its comma."""
    quoted = rf"([\"']){re.escape(requirement)}\1"
    if wanted:
        return re.sub(quoted, lambda _found: f'"{wanted}"', text, count=1)
    return re.sub(rf"[ \t]*{quoted}[ \t]*,?(?:[ \t]*\n)?", "", text, count=1)


def dependencies(text: str) -> Iterator[str]:
    """Return what a project depends on, by the text of its `pyproject.toml`; nothing where that is no TOML."""
    try:
        found: Any = tomllib.loads(text).get("project", {}).get("dependencies", ())
    except tomllib.TOMLDecodeError:
        return iter(())
    return map(str, found)


def _name(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""
