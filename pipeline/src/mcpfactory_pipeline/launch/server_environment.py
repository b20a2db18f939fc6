"""Environment of a server that runs from its sources, with only the server's declared dependencies.

The name of the environment's folder is a hash of dependencies, runtime and interpreter. Servers with the same
requirements therefore share one environment. The server itself is not installed, so edits of its sources take effect at
once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import venv_python
from mcpfactory_pipeline.base.text import printable
from mcpfactory_pipeline.launch.requirements import (
    RUNTIME,
    Requirements,
    is_environment_ready,
    read_server_requirements,
)
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_FORMAT: Final = 1
_WEB: Final = f"{RUNTIME}[http,auth]"  # extra requirement of servers over HTTP


def ensure_server_python(
    server: WorkspaceServer, *, web: bool = False, notify: Callable[[str], None] | None = None
) -> Path:
    """Return the interpreter of the server's `.venv` if it meets the requirements, else of a separate environment.

    Create a missing environment. `web` prepares the environment for HTTP. `notify` receives a line about each slow step
    or fallback; by default, the line goes to stderr.

    Raises:
        ServerError: the server's dependencies cannot be installed.
        StageError: the environment cannot be created, and mcpfactory's own environment lacks a requirement.
    """
    notify = notify or _to_stderr
    needs, wanted = _wanted(server, web=web)
    python, folder, lacking = _find(server, needs, wanted)
    if lacking:
        venv = f"servers/{server.name}/.venv"
        notify(
            f"{venv} is not used, because it lacks {lacking}; hint: install the missing packages with uv pip "
            f"install, or delete {venv}"
        )
    if python is not None:
        return python
    from mcpfactory_pipeline.launch.environment_creation import create_environment  # noqa: PLC0415 - heavy, and rarely needed

    return create_environment(folder, server, needs, wanted, notify)


def find_server_python(server: WorkspaceServer) -> tuple[Path | None, str]:
    """Return a server's interpreter, and the requirement that the server's `.venv` does not meet."""
    python, _, lacking = _find(server, *_wanted(server, web=False))
    return python, lacking


def environments_folder() -> Path:
    """Return the folder of environments. All workspaces of a user share one folder."""
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
    needs = read_server_requirements(server.folder, f"servers/{server.name}/pyproject.toml")
    return needs, (*needs.dependencies, *([_WEB] if web and needs.runtime else []))


def _find(server: WorkspaceServer, needs: Requirements, wanted: tuple[str, ...]) -> tuple[Path | None, Path, str]:
    """Return the existing interpreter, the folder for a new environment, and the unmet requirement of `.venv`."""
    folder = environments_folder() / _key(needs, wanted)
    lacking, own = "", server.folder / ".venv"
    if venv_python(own).exists():
        from mcpfactory_pipeline.launch.requirements import unmet_requirement_in_venv  # noqa: PLC0415 - rarely needed

        lacking = unmet_requirement_in_venv(own, needs, wanted)
        if not lacking:
            return venv_python(own), folder, ""
    return (venv_python(folder) if is_environment_ready(folder) else None), folder, lacking


def _key(needs: Requirements, wanted: tuple[str, ...]) -> str:
    """Return the name of the environment, which is a hash of all inputs of the installation."""
    python = [sys.implementation.name, *map(str, sys.version_info[:2]), sys.base_prefix]
    record = [_FORMAT, sorted(wanted), needs.python, needs.special, python, _runtime() if needs.runtime else ""]
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:20]


def _runtime() -> str:
    """Return a text that changes with the runtime.

    For an installed runtime, the text is a hash of its `RECORD`. For an editable runtime, the text has the location and
    the `pyproject.toml` of its sources.
    """
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
