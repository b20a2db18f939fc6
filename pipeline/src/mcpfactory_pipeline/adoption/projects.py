"""Adopted projects whose sources are in the workspace."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.adoption import pypi
from mcpfactory_pipeline.adoption.npm import QUIET_NPM, run_npm
from mcpfactory_pipeline.adoption.proposal import (
    RecognizedServer,
    derive_server_name,
    find_variables_in_code,
    framework_finding,
)
from mcpfactory_pipeline.adoption.sources import (
    LOCKS,
    SHRINKWRAP,
    AdoptionRequest,
    AdoptionSources,
    CollectedFiles,
    check_node_lock,
    check_python_lock,
)
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.base.hashing import list_source_files
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, last_lines, run_and_capture_output
from mcpfactory_pipeline.build.secret_scan import exclude_git_ignored, find_secrets_in_files, find_secrets_in_packages
from mcpfactory_pipeline.build.wheels import build_packages, wheel_build_backend, wheel_name, wheel_version
from mcpfactory_pipeline.isolation.levels import Sandbox, make_sandbox
from mcpfactory_pipeline.workspace.adopted import adopted_files
from mcpfactory_pipeline.workspace.workspace import Workspace

_UNPACKED: Final = "package"  # top-level folder of every npm tarball
_LARGEST: Final = 512 * 1024 * 1024  # maximum unpacked size of a tarball in bytes


def project_files(sources: AdoptionSources) -> tuple[Path, list[str]]:
    """Return a project's folder and its files, without files that Git ignores."""
    folder = sources.own()
    return folder, exclude_git_ignored(folder, adopted_files(sources.adopted, sources.root))


def build_python_project(sources: AdoptionSources) -> CollectedFiles:
    """Build a project's wheel from a copy of its sources."""
    lock = sources.lock("python")
    check_python_lock(lock, addresses=True, where=f"servers/{sources.server}/{LOCKS['python']}")
    folder, files = project_files(sources)
    wheel, sdist = build_packages(folder, files, sources.work / "python", settings=sources.settings, log=sources.log)
    _refuse_leaks(find_secrets_in_packages((wheel, sdist)))
    name, version = wheel_name(wheel.name), wheel_version(wheel.name)
    made = {wheel.name: wheel.read_bytes(), LOCKS["python"]: lock}
    return CollectedFiles(name, version, made, {"backend": wheel_build_backend(wheel)})


def build_node_project(sources: AdoptionSources) -> CollectedFiles:
    """Build and pack a Node.js project in a copy of its sources.

    Dependencies are installed without scripts. The project's build runs in a sandbox.
    """
    folder, files = project_files(sources)
    sandbox = make_sandbox(sources.settings, sources.work, name="builder")
    workdir = sandbox.folder / "source"
    copy_files(folder, files, workdir)
    about: dict[str, Any] = json.loads((workdir / "package.json").read_bytes())
    locked = (workdir / LOCKS["node"]).is_file()
    if about.get("dependencies") and not locked:
        raise ToolRejectedInputError(
            f"{sources.adopted.path} has dependencies but no {LOCKS['node']}: run 'npm install --package-lock-only' in this folder, and keep the new file"
        )
    check_npm_project_lock(workdir, called=sources.adopted.path)
    if sources.adopted.build:
        run_npm("ci" if locked else "install", cwd=workdir, log=sources.log)
        _run_build(sources.adopted.build, workdir, sandbox, log=sources.log)
    # --ignore-scripts also prevents scripts of the project, such as prepare and prepack.
    said = json.loads(run_npm("pack", "--json", "--pack-destination", str(sources.work), cwd=workdir, log=sources.log))
    row = said[0] if isinstance(said, list) else next(iter(said.values()))
    tarball = sources.work / Path(str(row["filename"])).name
    with tarfile.open(tarball) as archive:
        _refuse_leaks(
            find_secrets_in_files(
                (tarball.name, member.name, stream.read())
                for member in archive.getmembers()
                if member.isfile() and (stream := archive.extractfile(member)) is not None
            )
        )
    made = {"package.tgz": tarball.read_bytes()}
    if locked:
        made[LOCKS["node"]] = (folder / LOCKS["node"]).read_bytes()
    return CollectedFiles(str(about.get("name") or sources.server), str(about.get("version") or "0"), made)


def check_npm_project_lock(folder: Path, *, called: str = "") -> None:
    """Check that each package in a project's lock has an integrity hash. A project without a lock is valid."""
    if (folder / SHRINKWRAP).exists():
        raise ConfigError(
            f"npm would use {SHRINKWRAP} of {called or 'the package'} instead of {LOCKS['node']}",
            hint=f"rename {SHRINKWRAP} to {LOCKS['node']}",
        )
    if (folder / LOCKS["node"]).is_file():
        where = f"{called}/{LOCKS['node']}" if called else LOCKS["node"]
        check_node_lock((folder / LOCKS["node"]).read_bytes(), addresses=True, where=where)


def _run_build(command: Sequence[str], workdir: Path, sandbox: Sandbox, *, log: bool) -> None:
    code, said = run_and_capture_output(command, workdir, {**sandbox.environ, **QUIET_NPM}, sandbox, log=log)
    if code:
        raise ToolRejectedInputError(f"{' '.join(command)} ended with exit {code}: {last_lines(said)}")


def _refuse_leaks(found: Any) -> None:
    if leaks := list(found):
        raise ToolRejectedInputError(f"the packages contain secrets: {'; '.join(leaks[:5])}")


def install_packed_node_project(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Unpack a tarball that this machine packed, and install the packages in its lock."""
    with tarfile.open(fileobj=io.BytesIO((files / "package.tgz").read_bytes())) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        if sum(member.size for member in members) > _LARGEST:
            raise ToolRejectedInputError(f"package.tgz has more than {_LARGEST} bytes")
        if hasattr(tarfile, "data_filter"):
            archive.extractall(place, members, filter="data")
        else:  # Python 3.11.0 to 3.11.3 has no `filter`
            archive.extractall(place, members)  # noqa: S202 - this machine packed the tarball
    if LOCKS["node"] in names:
        shutil.copyfile(files / LOCKS["node"], place / _UNPACKED / LOCKS["node"])
        check_npm_project_lock(place / _UNPACKED)
        run_npm("ci", "--omit=dev", cwd=place / _UNPACKED, log=log)


_CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts")
_NO_TESTS: Final = "no test specified"  # `npm init` writes a test script that prints this text


def recognize_project(workspace: Workspace, place: Path, request: AdoptionRequest, work: Path) -> RecognizedServer:
    """Recognize the project in a folder. The project is adopted in place, or as a copy below `servers/`.

    Raises:
        ConfigError: the folder is not a project, or its start command is unknown.
        RefusedError: the folder is outside the workspace, and a copy was not requested.
    """
    read = next((function for name, function in _PROJECTS.items() if (place / name).is_file()), None)
    if read is None:
        raise ConfigError(
            f"{place} has neither pyproject.toml nor package.json",
            hint="use --command 'PROGRAM …' to adopt a program; for Python without a project, add a pyproject.toml",
        )
    files = exclude_git_ignored(place, list_source_files(place))
    found = read(place, files, shlex.split(request.start), work)
    inside = place.is_relative_to(workspace.root)
    if not inside and not request.copy:
        raise RefusedError(
            f"{place} is outside the workspace, so other checkouts do not have this folder",
            hint=f"use --copy to copy its {len(files)} files into the server's folder, or move the folder into the workspace",
        )
    name = request.name or found.name
    path = place.relative_to(workspace.root).as_posix() if inside else f"servers/{name}/source"
    copied = {} if inside else {f"source/{file}": place / file for file in files}
    code = (
        (file, (place / file).read_bytes()) for file in files if file.endswith(_CODE) and not file.startswith("test")
    )
    table = {"path": path, **found.table}
    return replace(found, name=name, table=table, environment=find_variables_in_code(code), copied=copied)


def _python(place: Path, files: list[str], given: list[str], work: Path) -> RecognizedServer:
    try:
        data = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))
        project: Mapping[str, Any] = data["project"]
        name = str(project["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{place / 'pyproject.toml'} does not name the project: {error!r}", hint="[project]\nname = …"
        ) from error
    if "dependencies" in project.get("dynamic", ()):
        raise ConfigError(
            f"the dependencies of {name} cannot be read: mcpfactory does not run the build backend that lists them",
            hint="list the dependencies in 'dependencies' of [project]",
        )
    needs = [str(one) for one in project.get("dependencies", [])]
    scripts = list(project.get("scripts", {}))
    start = _start(given, scripts, name, _module(files))
    lock = pypi.compile_lock(needs, (), work) if needs else ""
    table: dict[str, Any] = {"start": start}
    found = [
        f"{name} {project.get('version', '')}, a Python project".replace(" ,", ","),
        *framework_finding(_names(needs)),
    ]
    if lock:
        count = lock.count("==") - lock.count("--hash==")
        found.append(f"{pluralize(count, 'package')} in {LOCKS['python']}, each by its hash")
    if any(_is_test(file) for file in files):
        table |= {"test": ("pytest", "-q", "--junit-xml=report.xml"), "report": "report.xml"}
        found.append("tests: pytest, its report read as JUnit")
    found.append(f"starts by {shlex.join(start)}")
    return RecognizedServer("python", derive_server_name(name), table, {LOCKS["python"]: lock}, (), tuple(found))


def _is_test(file: str) -> bool:
    name = file.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _module(files: Iterable[str]) -> str:
    """Return the package that `python -m` can run, or "" if there is not exactly one."""
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
    raise ConfigError(f"{name} does not define a start command: {has}", hint=hint)


def _names(requirements: Iterable[str]) -> Iterator[str]:
    for text in requirements:
        with suppress(InvalidRequirement):
            yield canonicalize_name(Requirement(text).name)


def _node(place: Path, files: list[str], given: list[str], _work: Path) -> RecognizedServer:
    try:
        package: dict[str, Any] = json.loads((place / "package.json").read_bytes())
        name = str(package.get("name") or place.name)
        scripts = {str(key): str(value) for key, value in package.get("scripts", {}).items()}
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"{place / 'package.json'} cannot be read: {error}", hint="correct the JSON") from error
    programs = package.get("bin", {})
    programs = {name.rpartition("/")[2]: programs} if isinstance(programs, str) else dict(programs)
    start = _node_start(given, programs, package, name)
    table: dict[str, Any] = {"start": start}
    typed = "TypeScript" if any(file.endswith(".ts") for file in files) else "JavaScript"
    depends = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    found = [f"{name} {package.get('version', '')}, a {typed} project", *framework_finding(depends)]
    if "build" in scripts:
        table["build"] = ("npm", "run", "build")
        found.append(f"built by npm run build: {scripts['build']}")
    if "test" in scripts and _NO_TESTS not in scripts["test"]:
        table["test"] = ("npm", "test")
        found.append(f"tests: npm test: {scripts['test']}")
    notes: tuple[str, ...] = ()
    if package.get("dependencies") and LOCKS["node"] not in files:
        notes = (f"the build needs {LOCKS['node']}, which is missing: npm install --package-lock-only in {place}",)
    found.append(f"starts by {shlex.join(start)}")
    return RecognizedServer("node", derive_server_name(name), table, {}, (), tuple(found), notes)


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
        f"{name} does not define a start command: package.json has neither bin nor main",
        hint="use --started-by 'node dist/index.js'",
    )


_PROJECTS: Final[Mapping[str, Callable[[Path, list[str], list[str], Path], RecognizedServer]]] = {
    "pyproject.toml": _python,
    "package.json": _node,
}
