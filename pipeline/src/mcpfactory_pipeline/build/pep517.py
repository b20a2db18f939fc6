"""Build frontend (PEP 517) that fetches the backend's requirements, and then runs the backend in a sandbox.

`uv build` would give uv's variables and cache to the backend, which is untrusted code.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement

from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.build import pep517_backend
from mcpfactory_pipeline.build.programs import EPOCH, ToolRejectedInputError, last_lines, run_and_capture_output, run_uv
from mcpfactory_pipeline.isolation.levels import Sandbox, make_sandbox

# Defaults of PEP 517 for a project without [build-system].
_LEGACY: Final = {"requires": ["setuptools>=40.8.0"], "build-backend": "setuptools.build_meta:__legacy__"}
_PATTERNS: Final = {"sdist": "*.tar.gz", "wheel": "*.whl"}
_NAMES: Final = {"sdist": "source distribution", "wheel": "wheel"}
_PATIENCE: Final = 3  # maximum calls of one hook; each call may request more requirements


def build_in_sandbox(
    source: Path,
    files: Iterable[str],
    work: Path,
    hooks: Sequence[str],
    *,
    constraints: str = "",
    settings: Mapping[str, object],
    log: bool,
) -> list[Path]:
    """Build packages from a copy of `files`, and return their paths in `work/dist`.

    If both distributions are built, the wheel is built from the source distribution. `constraints` are the required
    versions of the backend. `settings` are the isolation settings of a stage.

    Raises:
        ToolRejectedInputError: the package does not build.
    """
    tools = work / "tools"
    sandbox = make_sandbox(settings, work, readable=(tools, Path(pep517_backend.__file__)), name="builder")
    place = sandbox.folder / "source"
    copy_files(source, files, place)
    # Build backends apply all .gitignore files up to the root of the repository.
    # An empty repository here excludes the workspace's .gitignore files, so that builds do not depend on the location.
    (sandbox.folder / ".git").mkdir()
    system = _build_system(place / "pyproject.toml")
    run_uv("venv", "--quiet", str(tools), cwd=work, log=log)
    bounds = work / "constraints.txt"
    bounds.write_text(f"{constraints}\n", encoding="utf-8")
    options = ("--constraints", str(bounds)) if constraints else ()
    _install(system["requires"], tools, place, options, log=log)
    made = []
    for hook in hooks:
        plan = {
            "source": str(place),
            "out": str(sandbox.folder / "dist"),
            "backend": system["build-backend"],
            "path": system.get("backend-path", []),
            "hook": hook,
            "from_sdist": "sdist" in hooks,
        }
        _call(plan, tools, sandbox, options, log=log)
        made.append(_take(sandbox.folder / "dist", hook, work / "dist"))
        if log:
            print(f"built {made[-1].name}", flush=True)  # noqa: T201 - a job's stdout is the log of its stage
    return made


def _build_system(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("build-system", _LEGACY)
    except (OSError, ValueError) as error:
        raise ToolRejectedInputError(f"pyproject.toml cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise ToolRejectedInputError("pyproject.toml: [build-system] is not a table")
    system = {
        **table,
        "requires": table.get("requires", []),
        "build-backend": table.get("build-backend", _LEGACY["build-backend"]),
    }
    for key in ("requires", "backend-path"):
        value = system.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ToolRejectedInputError(f"pyproject.toml: build-system.{key} must be a list of strings")
    if not isinstance(system["build-backend"], str):
        raise ToolRejectedInputError("pyproject.toml: build-system.build-backend must be a string")
    return system


def _install(wanted: Sequence[str], tools: Path, project: Path, options: Sequence[str], *, log: bool) -> None:
    """Install a backend's requirements from the project's indexes. Requirements are never read as uv options."""
    for text in wanted:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise ToolRejectedInputError(f"build requirement {text!r} cannot be read: {error}") from error
    if wanted:
        run_uv("pip", "install", "--quiet", *options, *wanted, cwd=project, python=_programs(tools) / "python", log=log)


def _call(plan: Mapping[str, Any], tools: Path, sandbox: Sandbox, options: Sequence[str], *, log: bool) -> None:
    """Call a hook; if it requests requirements, install them and call the hook again."""
    file = sandbox.folder / "plan.json"
    given: list[str] = []
    program = _programs(tools)
    path = os.pathsep.join([str(program), sandbox.environ.get("PATH", os.defpath)])
    environ = {**sandbox.environ, "PATH": path, "SOURCE_DATE_EPOCH": EPOCH, "TZ": "UTC"}
    command = [str(program / "python"), "-P", pep517_backend.__file__, str(file)]
    for _ in range(_PATIENCE):
        file.write_text(json.dumps({**plan, "given": given}), encoding="utf-8")
        code, said = run_and_capture_output(command, sandbox.folder, environ, sandbox, log=log)
        if code == 0:
            return
        if code != pep517_backend.ASKS:
            raise ToolRejectedInputError(last_lines(said) or f"{plan['backend']} ended with exit {code}")
        given = _read_wanted(sandbox.folder / pep517_backend.WANTED)
        _install(given, tools, Path(plan["source"]), options, log=log)
    raise ToolRejectedInputError(f"{plan['backend']} requests different packages at each build: {', '.join(given)}")


def _read_wanted(file: Path) -> list[str]:
    try:
        wanted = json.loads(_plain_bytes(file))
    except ValueError as error:
        raise ToolRejectedInputError(f"the requirements of the build backend cannot be read: {error}") from error
    if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
        raise ToolRejectedInputError("the build backend must return a list of requirements")
    return wanted


def _take(made: Path, hook: str, into: Path) -> Path:
    found = sorted(made.glob(_PATTERNS[hook]))
    if len(found) != 1:
        raise ToolRejectedInputError(f"the build made {len(found)} {_NAMES[hook]}s instead of one")
    data = _plain_bytes(found[0])
    into.mkdir(exist_ok=True)
    place = into / found[0].name
    place.write_bytes(data)
    return place


def _plain_bytes(file: Path) -> bytes:
    """Return the content of a file that untrusted code wrote.

    Refuse links, because they could point out of the sandbox.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ToolRejectedInputError(
            f"the build result {file.name} is not a readable regular file: {error.strerror}"
        ) from error
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _programs(tools: Path) -> Path:
    return tools / ("Scripts" if os.name == "nt" else "bin")
