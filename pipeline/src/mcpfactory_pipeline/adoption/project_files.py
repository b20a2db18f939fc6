"""A project is recognised by the files in its folder: `pyproject.toml` or `package.json`. Nothing of it is run."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.adoption import pypi
from mcpfactory_pipeline.adoption.proposal import Recognised, server_name
from mcpfactory_pipeline.adoption.scan import environment_names, framework_words
from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.adoption.wish import Wish
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.hashing import source_files
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.leaks import without_ignored
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["recognise_project"]

_CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts")
_NO_TESTS: Final = "no test specified"  # what `npm init` writes


def recognise_project(workspace: Workspace, place: Path, wish: Wish, work: Path) -> Recognised:
    """Return the project in a folder as it would be adopted: where it stands, or as a copy below `servers/`.

    Raises:
        ConfigError: it is no project, or does not say how it starts.
        RefusedError: it is not in the workspace, and is not to be copied.
    """
    read = next((function for name, function in _PROJECTS.items() if (place / name).is_file()), None)
    if read is None:
        raise ConfigError(
            f"{place} has neither pyproject.toml nor package.json",
            hint="a program is adopted by --command 'PROGRAM …'; Python without a project needs a pyproject.toml",
        )
    files = without_ignored(place, source_files(place))
    found = read(place, files, shlex.split(wish.start), work)
    inside = place.is_relative_to(workspace.root)
    if not inside and not wish.copy:
        raise RefusedError(
            f"{place} is not in the workspace, so that nobody else has it",
            hint=f"--copy copies its {len(files)} files into the server's folder; or move it into the workspace",
        )
    name = wish.name or found.name
    path = place.relative_to(workspace.root).as_posix() if inside else f"servers/{name}/source"
    copied = {} if inside else {f"source/{file}": place / file for file in files}
    code = (
        (file, (place / file).read_bytes()) for file in files if file.endswith(_CODE) and not file.startswith("test")
    )
    table = {"path": path, **found.table}
    return replace(found, name=name, table=table, environment=environment_names(code), copied=copied)


def _python(place: Path, files: list[str], given: list[str], work: Path) -> Recognised:
    try:
        data = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))
        project: Mapping[str, Any] = data["project"]
        name = str(project["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{place / 'pyproject.toml'} does not say what the project is called: {error!r}", hint="[project]\nname = …"
        ) from error
    if "dependencies" in project.get("dynamic", ()):
        raise ConfigError(
            f"the dependencies of {name} are known to its build backend alone, which is not run here",
            hint="write them into [project] dependencies",
        )
    needs = [str(one) for one in project.get("dependencies", [])]
    scripts = list(project.get("scripts", {}))
    start = _start(given, scripts, name, _module(files))
    lock = pypi.compile_lock(needs, (), work) if needs else ""
    table: dict[str, Any] = {"start": start}
    found = [
        f"{name} {project.get('version', '')}, a Python project".replace(" ,", ","),
        *framework_words(_names(needs)),
    ]
    if lock:
        count = lock.count("==") - lock.count("--hash==")
        found.append(f"{pluralize(count, 'package')} in {LOCKS['python']}, each by its hash")
    if any(_is_test(file) for file in files):
        table |= {"test": ("pytest", "-q", "--junit-xml=report.xml"), "report": "report.xml"}
        found.append("tests: pytest, its report read as JUnit")
    found.append(f"starts by {shlex.join(start)}")
    return Recognised("python", server_name(name), table, {LOCKS["python"]: lock}, (), tuple(found))


def _is_test(file: str) -> bool:
    name = file.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _module(files: Iterable[str]) -> str:
    """Return the package that can be run as a module; "" where there is none, or more than one."""
    mains = [file.removeprefix("src/").removesuffix("/__main__.py") for file in files if file.endswith("/__main__.py")]
    found = [main.replace("/", ".") for main in mains if all(part.isidentifier() for part in main.split("/"))]
    return found[0] if len(found) == 1 else ""


def _start(given: list[str], scripts: list[str], name: str, module: str) -> tuple[str, ...]:
    if given and (given[0] in scripts or given[0] == "python"):
        return tuple(given)
    wanted = canonicalize_name(name)
    program = next(
        (one for one in scripts if canonicalize_name(one) == wanted), scripts[0] if len(scripts) == 1 else ""
    )
    if program:
        return (program, *given)
    if module and not scripts:
        return ("python", "-m", module, *given)
    has = (
        f"[project.scripts] has {', '.join(scripts)}"
        if scripts
        else "it has neither [project.scripts] nor a __main__.py"
    )
    hint = "--started-by 'python -m PACKAGE', or --started-by PROGRAM"
    raise ConfigError(f"{name} does not say how it starts: {has}", hint=hint)


def _names(requirements: Iterable[str]) -> Iterator[str]:
    for text in requirements:
        with suppress(InvalidRequirement):
            yield canonicalize_name(Requirement(text).name)


def _node(place: Path, files: list[str], given: list[str], _work: Path) -> Recognised:
    try:
        package: dict[str, Any] = json.loads((place / "package.json").read_bytes())
        name = str(package.get("name") or place.name)
        scripts = {str(key): str(value) for key, value in package.get("scripts", {}).items()}
    except (ValueError, AttributeError) as error:
        raise ConfigError(
            f"{place / 'package.json'} cannot be read: {error}", hint="mend the line that is named"
        ) from error
    programs = package.get("bin", {})
    programs = {name.rpartition("/")[2]: programs} if isinstance(programs, str) else dict(programs)
    start = _node_start(given, programs, package, name)
    table: dict[str, Any] = {"start": start}
    typed = "TypeScript" if any(file.endswith(".ts") for file in files) else "JavaScript"
    depends = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    found = [f"{name} {package.get('version', '')}, a {typed} project", *framework_words(depends)]
    if "build" in scripts:
        table["build"] = ("npm", "run", "build")
        found.append(f"built by npm run build: {scripts['build']}")
    if "test" in scripts and _NO_TESTS not in scripts["test"]:
        table["test"] = ("npm", "test")
        found.append(f"tests: npm test: {scripts['test']}")
    notes: tuple[str, ...] = ()
    if package.get("dependencies") and LOCKS["node"] not in files:
        notes = (f"it has no {LOCKS['node']}, which its build needs: npm install --package-lock-only in {place}",)
    found.append(f"starts by {shlex.join(start)}")
    return Recognised("node", server_name(name), table, {}, (), tuple(found), notes)


def _node_start(
    given: list[str], programs: Mapping[str, str], package: Mapping[str, Any], name: str
) -> tuple[str, ...]:
    if given and given[0] == "node":
        return tuple(given)
    named = programs.get(name.rpartition("/")[2]) or (next(iter(programs.values())) if len(programs) == 1 else "")
    script = str(package.get("scripts", {}).get("start", ""))
    words = shlex.split(script) if script.startswith("node ") else []
    file = named or str(package.get("main") or "")
    if named or (file and not words):
        return ("node", file.removeprefix("./"), *given)
    if words:
        return ("node", *(word.removeprefix("./") for word in words[1:]), *given)
    raise ConfigError(
        f"{name} does not say how it starts: package.json has neither bin nor main",
        hint="--started-by 'node dist/index.js'",
    )


_PROJECTS: Final[Mapping[str, Callable[[Path, list[str], list[str], Path], Recognised]]] = {
    "pyproject.toml": _python,
    "package.json": _node,
}
