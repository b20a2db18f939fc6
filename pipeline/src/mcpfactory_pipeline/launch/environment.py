"""The virtual environment of a server that runs from its sources."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from mcpfactory_pipeline.base.errors import ServerError, StageError, StateError
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.text import printable
from mcpfactory_pipeline.base.versions import source_folder
from mcpfactory_pipeline.build.distributions import distribution_wheel
from mcpfactory_pipeline.build.programs import ProgramRefusedError, run_uv
from mcpfactory_pipeline.launch.requirements import RUNTIME, Requirements, read_requirements, unmet_requirement
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

READY: Final = "ready.json"  # written last
_MARKED: Final = 86_400  # seconds; how exactly it is known when an environment was last used


def venv_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_ready(folder: Path) -> bool:
    """Whether an environment is whole; that it is used is noted, by the time of a file."""
    mark = folder / READY
    try:
        used = mark.stat().st_mtime
    except OSError:
        return False
    if time.time() - used > _MARKED:
        with suppress(OSError):
            mark.touch()
    return venv_python(folder).exists()  # its link may lead to an interpreter that is gone


_FORMAT: Final = 1
_WEB: Final = f"{RUNTIME}[http,auth]"  # what a server needs besides, to serve over HTTP


def server_python(server: WorkspaceServer, *, web: bool = False, notify: Callable[[str], None] | None = None) -> Path:
    """Return the interpreter that a server runs with: its own `.venv`'s where that has what it needs, else that of an environment made for it.

    Args:
        server: one of a workspace.
        web: whether it is to serve over HTTP.
        notify: takes a line about what takes long, or is otherwise than wanted; by default stderr.

    Raises:
        ServerError: what the server declares cannot be installed.
        StageError: the environment could not be made (no network, no space), and mcpfactory's own lacks something.
    """
    notify = notify or _to_stderr
    needs, wanted = _wanted(server, web=web)
    python, folder, lacking = _find(server, needs, wanted)
    if lacking:
        venv = f"servers/{server.name}/.venv"
        notify(f"{venv} is not used, for it lacks {lacking}; hint: uv pip install into it, or delete it")
    if python is not None:
        return python

    return create_environment(folder, server, needs, wanted, notify)


def find_python(server: WorkspaceServer) -> tuple[Path | None, str]:
    """Return the interpreter that a server would run with, None where its environment is not made yet; and what its `.venv` lacks.

    Raises:
        ServerError: for a `pyproject.toml` that cannot be used.
    """
    python, _, lacking = _find(server, *_wanted(server, web=False))
    return python, lacking


def environments_folder() -> Path:
    """Where environments are: in the person's folder for caches, so that all workspaces share them."""
    if chosen := os.environ.get("MCPFACTORY_CACHE_DIR"):
        return Path(chosen) / "environments"
    if sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "mcpfactory" / "environments"


def _wanted(server: WorkspaceServer, *, web: bool) -> tuple[Requirements, tuple[str, ...]]:
    needs = read_requirements(server.folder, f"servers/{server.name}/pyproject.toml")
    return needs, (*needs.dependencies, *([_WEB] if web and needs.runtime else []))


def _find(server: WorkspaceServer, needs: Requirements, wanted: tuple[str, ...]) -> tuple[Path | None, Path, str]:
    """Return the interpreter that is there, the folder of the environment that would have to be made, and what `.venv` lacks."""
    folder = environments_folder() / _key(needs, wanted)
    lacking, own = "", server.folder / ".venv"
    if venv_python(own).exists():
        from mcpfactory_pipeline.launch.requirements import unmet_in_venv  # noqa: PLC0415 - few servers have one

        lacking = unmet_in_venv(own, needs, wanted)
        if not lacking:
            return venv_python(own), folder, ""
    return (venv_python(folder) if is_ready(folder) else None), folder, lacking


def _key(needs: Requirements, wanted: tuple[str, ...]) -> str:
    """Return the name of the environment: a hash of all that decides what is in it."""
    python = [sys.implementation.name, *map(str, sys.version_info[:2]), sys.base_prefix]
    record = [_FORMAT, sorted(wanted), needs.python, needs.special, python, _runtime() if needs.runtime else ""]
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:20]


def _runtime() -> str:
    """Which runtime this factory has: the list of its files with their hashes, or where its sources are and what they need."""
    spec = find_spec("mcpfactory_runtime")
    assert spec is not None
    assert spec.origin is not None
    place = Path(spec.origin).parents[1]
    for record in place.glob("mcpfactory_runtime-*.dist-info/RECORD"):
        return hashlib.sha256(record.read_bytes()).hexdigest()
    project = place.parent / "pyproject.toml"
    return f"{place}\n{project.read_text(encoding='utf-8') if project.is_file() else ''}"


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


_KNOWN: Final = ("No solution found when resolving dependencies", "hint: Packages were unavailable")
_UNUSED: Final = 60 * 86_400  # seconds; an environment that was not used for so long is deleted
_PATIENCE: Final = 900.0  # seconds for another process that makes the same environment


def create_environment(
    folder: Path, server: WorkspaceServer, needs: Requirements, wanted: Sequence[str], notify: Callable[[str], None]
) -> Path:
    """Make the environment of a server in a folder; return its interpreter, or mcpfactory's own where that has all that is needed.

    Raises as `server_python` does.
    """
    shown = f"servers/{server.name}/pyproject.toml"
    _check(needs, shown)
    notify(f"making the environment of {server.name} …")
    try:
        _create(folder, server, needs, wanted)
    except ProgramRefusedError as error:
        raise ServerError(
            f"{shown}: its dependencies cannot be installed: {_reason(str(error))}",
            hint="correct the name or the version in [project] dependencies",
        ) from error
    except (StageError, StateError, OSError) as error:
        lacking = "what its sources say" if needs.special else unmet_requirement(wanted, sys.path)
        if lacking:
            raise StageError(
                f"the environment of {server.name} cannot be made: {_reason(str(error))}; mcpfactory's own is of no use, for it lacks {lacking}",
                hint=_hint(error, folder),
            ) from error
        notify(f"{server.name} runs in mcpfactory's own environment, which has what it declares: {_reason(str(error))}")
        return Path(sys.executable)
    return venv_python(folder)


def _hint(error: Exception, folder: Path) -> str:
    """Return what to do where an environment cannot be made: with the folder, the index, or the runtime that cannot be handed out."""
    said = str(error)
    if not isinstance(error, StageError) or re.search(r"permission denied|no space|read-only", said, re.IGNORECASE):
        return f"make {folder.parent} writable and free some space, or name another folder: MCPFACTORY_CACHE_DIR"
    if said.startswith("uv "):
        return "make the package index reachable (UV_DEFAULT_INDEX, else pypi.org)"
    return error.hint


def _check(needs: Requirements, shown: str) -> None:
    """Raise `ServerError` for what can be said without asking an index."""
    for text in needs.dependencies:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            what = str(error).splitlines()[0]
            raise ServerError(
                f"{shown}: dependency {text!r} cannot be read: {what}", hint='as in "pandas>=2,<3"'
            ) from error
    try:
        fits = SpecifierSet(needs.python).contains(platform.python_version(), prereleases=True)
    except InvalidSpecifier as error:
        raise ServerError(f"{shown}: requires-python {needs.python!r} cannot be read", hint='as in ">=3.11"') from error
    if not fits:
        raise ServerError(
            f"{shown}: requires-python {needs.python} leaves out Python {platform.python_version()}, which mcpfactory runs with",
            hint="widen it, or install mcpfactory with a Python that it allows",
        )


def _create(folder: Path, server: WorkspaceServer, needs: Requirements, wanted: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.parent / f"{folder.name}.lock", timeout=_PATIENCE), tempfile.TemporaryDirectory() as work:
        if is_ready(folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
        run_uv("venv", "--quiet", "--no-config", str(folder), cwd=Path(work), log=False)
        what = [*_runtime_argument(needs, Path(work)), *_declared(needs, wanted)]
        if what:
            # Bytecode is compiled once: many machines forbid Python to keep it, and would compile at every start.
            install = ("pip", "install", "--quiet", "--compile-bytecode", *what)
            try:
                _install(install, server.folder, venv_python(folder))
            except Exception:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        made = {"needs": sorted(wanted), "python": platform.python_version()}
        (folder / READY).write_text(json.dumps(made), encoding="utf-8")
    _remove_unused(folder.parent)


def _install(install: Sequence[str], cwd: Path, python: Path) -> None:
    """From the index, or from uv's cache where there is no network. Raises what went wrong with the index."""
    try:
        run_uv(*install, cwd=cwd, python=python, log=False)
    except StageError as error:
        try:
            run_uv(*install, "--offline", cwd=cwd, python=python, log=False)
        except (StageError, ProgramRefusedError):
            raise error from None


def _runtime_argument(needs: Requirements, work: Path) -> list[str]:
    """Return the runtime that this factory has, as an argument of uv: from its sources where the factory is used from them, so that an edit works."""
    if not needs.runtime:
        return []
    source = source_folder(RUNTIME)
    return ["--editable", str(source)] if source else [str(distribution_wheel(RUNTIME, work))]


def _declared(needs: Requirements, wanted: Sequence[str]) -> list[str]:
    if needs.found or needs.special:
        besides = [text for text in wanted if text not in needs.dependencies]
        return ["--requirements", str(needs.file), "--no-sources-package", RUNTIME, *besides]
    return ["--no-sources", *wanted] if wanted else []


def _reason(said: str) -> str:
    """Return what uv said, without what goes without saying."""
    parts = [part.strip() for part in re.sub(r"^uv \w+ broke: ", "", said).split("; ")]
    parts = [re.sub(r"^(?:error:|×|cause:|╰─▶|├─▶|│)\s*", "", part) for part in parts]
    return "; ".join(part for part in parts if part and not part.startswith(_KNOWN))


def _remove_unused(environments: Path) -> None:
    """Delete environments that were not used for long."""
    for mark in environments.glob(f"*/{READY}"):
        with suppress(OSError, StateError):
            if time.time() - mark.stat().st_mtime > _UNUSED:
                with file_lock(environments / f"{mark.parent.name}.lock", timeout=0):
                    shutil.rmtree(mark.parent)
