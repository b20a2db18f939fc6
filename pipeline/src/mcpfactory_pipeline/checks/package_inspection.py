"""Checks of a server's package: metadata, scripts, README, license, and reproducible builds."""

from __future__ import annotations

import ast
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.wheels import wheel_build_backend, wheel_version
from mcpfactory_pipeline.channels.candidate import build_candidate

_LICENSES: Final = ("LICENSE*", "LICENCE*", "COPYING*", "LICENSES/*")
_LARGEST_README: Final = 1_000_000  # bytes; larger READMEs and modules are not read


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """Observations of one package.

    `project` is the table `project` of pyproject.toml. `problem` is the reason if this table is missing.

    `scripts` maps each program to its problem ("" for none). `rebuilt` is True if a second build gave the same bytes as
    the candidate; None without a candidate. `unwritten` has (function, "file:line") for each hand-written tool without
    code.
    """

    project: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    scripts: Mapping[str, str] = field(default_factory=dict)
    readme: str | None = None
    license_files: tuple[str, ...] = ()
    rebuilt: bool | None = None
    build_problem: str = ""
    unwritten: tuple[tuple[str, str], ...] = ()


def inspect_package(
    folder: Path, wheel: Path | None = None, isolation: Mapping[str, object] | None = None
) -> PackageFacts:
    """Inspect the package in `folder`.

    If `wheel` is given, a second build is compared with this wheel. Never raises.

    `isolation` has the settings that isolate the build.
    """
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project")
    except (OSError, ValueError) as error:
        return PackageFacts(problem=f"pyproject.toml cannot be read: {error}")
    if not isinstance(project, dict):
        return PackageFacts(problem="pyproject.toml has no [project] table")
    named = project.get("scripts")
    scripts = named if isinstance(named, dict) else {}
    rebuilt, build_problem = _rebuild(folder, wheel, isolation or {}) if wheel is not None else (None, "")
    return PackageFacts(
        project=project,
        scripts={str(name): _entry_point_problem(folder / "src", str(target)) for name, target in scripts.items()},
        readme=_readme(folder, project.get("readme")),
        license_files=tuple(sorted(p.name for mark in _LICENSES for p in folder.glob(mark) if p.is_file())),
        rebuilt=rebuilt,
        build_problem=build_problem,
        unwritten=tuple(_unwritten(folder)),
    )


def _unwritten(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted((folder / "src").rglob("*.py")):
        if "_generated" in file.parts or not file.resolve().is_relative_to(folder.resolve()):
            continue
        try:
            tree = ast.parse(file.read_bytes()) if file.stat().st_size <= _LARGEST_README else ast.Module([], [])
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue  # Python cannot import the module; the rule process.starts reports that
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_tool(node) and _is_bare(node):
                yield node.name, f"{file.relative_to(folder).as_posix()}:{node.lineno}"


def _is_tool(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    made = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return any(isinstance(one, ast.Attribute) and one.attr == "tool" for one in made)


def _is_bare(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for statement in node.body:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Raise(exc=ast.Name(id="NotImplementedError")):
                return True
            case ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"))):
                return True
        return False
    return True


def _readme(folder: Path, named: Any) -> str | None:
    name = named.get("file") if isinstance(named, dict) else named
    if not isinstance(name, str):
        return None
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        return None
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_LARGEST_README)
    except OSError:
        return None


def _entry_point_problem(source: Path, target: str) -> str:
    """Return the problem with an entry point `package.module:function`, without importing the module."""
    module, colon, name = target.partition(":")
    base = source.joinpath(*module.split("."))
    file = next((one for one in (base.with_suffix(".py"), base / "__init__.py") if one.is_file()), None)
    if file is None or not file.resolve().is_relative_to(source.resolve()):
        return f"{target}: no module {module} in src/"
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        return f"{target}: {file.name} cannot be read: {error}"
    first = name.split(".", 1)[0]
    if not colon or first not in _bound_names(tree):
        return f"{target}: {module} has no {first or 'function'}"
    return ""


def _bound_names(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.split(".")[0])
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return found


def _rebuild(folder: Path, wheel: Path, isolation: Mapping[str, object]) -> tuple[bool | None, str]:
    with tempfile.TemporaryDirectory(prefix="mcpfactory-rebuild-") as work:
        try:
            made = build_candidate(
                folder,
                Path(work),
                backend=wheel_build_backend(wheel),
                settings=isolation,
                version=wheel_version(wheel.name),
            )
        except (ToolRejectedInputError, ReleaseError) as error:
            return None, f"the second build failed: {error}"
        return made.files.get(wheel.name) == hash_file(wheel), ""
