"""Create the environment of a server with uv. One process creates the environment, and other processes wait for it."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from mcpfactory_pipeline.base.errors import ServerError, StageError, StateError
from mcpfactory_pipeline.base.files import venv_python
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.versions import editable_source_folder
from mcpfactory_pipeline.build.factory_distributions import write_factory_wheel
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, run_uv
from mcpfactory_pipeline.launch.requirements import (
    READY,
    RUNTIME,
    Requirements,
    is_environment_ready,
    unmet_requirement,
)
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_KNOWN: Final = ("No solution found when resolving dependencies", "hint: Packages were unavailable")
_UNUSED: Final = 60 * 86_400  # seconds without use after which an environment is deleted
_PATIENCE: Final = 900.0  # maximum seconds to wait for another process that creates the same environment


def create_environment(
    folder: Path, server: WorkspaceServer, needs: Requirements, wanted: Sequence[str], notify: Callable[[str], None]
) -> Path:
    """Create the environment of a server in a folder, and return the environment's interpreter.

    If the creation fails but mcpfactory's environment meets all requirements, return mcpfactory's interpreter.
    """
    shown = f"servers/{server.name}/pyproject.toml"
    _check(needs, shown)
    notify(f"creating the environment of {server.name} …")
    try:
        _create(folder, server, needs, wanted)
    except ToolRejectedInputError as error:
        raise ServerError(
            f"{shown}: the dependencies cannot be installed: {_reason(str(error))}",
            hint="correct the name or the version in [project] dependencies; after an upgrade of mcpfactory, "
            f"run 'mcpfactory update {server.name}'",
        ) from error
    except (StageError, StateError, OSError) as error:
        lacking = "the uv sources of the server" if needs.special else unmet_requirement(wanted, sys.path)
        if lacking:
            raise StageError(
                f"the environment of {server.name} cannot be created: {_reason(str(error))}; the environment "
                f"of mcpfactory cannot be used: that environment does not contain {lacking}",
                hint=_hint(error, folder),
            ) from error
        notify(
            f"{server.name} runs in mcpfactory's own environment, which has all its dependencies: a separate "
            f"environment cannot be created: {_reason(str(error))}"
        )
        return Path(sys.executable)
    return venv_python(folder)


def _hint(error: Exception, folder: Path) -> str:
    said = str(error)
    if not isinstance(error, StageError) or re.search(r"permission denied|no space|read-only", said, re.IGNORECASE):
        return f"make {folder.parent} writable and free some space, or set MCPFACTORY_CACHE_DIR to another folder"
    if said.startswith("uv "):
        return "make the package index reachable (UV_DEFAULT_INDEX, else pypi.org)"
    return error.hint


def _check(needs: Requirements, shown: str) -> None:
    """Raise `ServerError` for problems that can be found without an index."""
    for text in needs.dependencies:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            what = str(error).splitlines()[0]
            raise ServerError(
                f"{shown}: dependency {text!r} cannot be read: {what}", hint='use a form such as "pandas>=2,<3"'
            ) from error
    try:
        fits = SpecifierSet(needs.python).contains(platform.python_version(), prereleases=True)
    except InvalidSpecifier as error:
        raise ServerError(
            f"{shown}: requires-python {needs.python!r} cannot be read", hint='use a form such as ">=3.11"'
        ) from error
    if not fits:
        raise ServerError(
            f"{shown}: requires-python {needs.python} excludes Python {platform.python_version()}, the "
            "version that runs mcpfactory",
            hint="widen 'requires-python', or install mcpfactory with a Python version that 'requires-python' allows",
        )


def _create(folder: Path, server: WorkspaceServer, needs: Requirements, wanted: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.parent / f"{folder.name}.lock", timeout=_PATIENCE), tempfile.TemporaryDirectory() as work:
        if is_environment_ready(folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
        run_uv("venv", "--quiet", "--no-config", str(folder), cwd=Path(work), log=False)
        what = [*_runtime_argument(needs, Path(work)), *_declared(needs, wanted)]
        if what:
            # Compile bytecode now, because Python often cannot store bytecode later.
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
    """Install from the index; if that fails, install offline from uv's cache."""
    try:
        run_uv(*install, cwd=cwd, python=python, log=False)
    except StageError as error:
        try:
            run_uv(*install, "--offline", cwd=cwd, python=python, log=False)
        except (StageError, ToolRejectedInputError):
            raise error from None


def _runtime_argument(needs: Requirements, work: Path) -> list[str]:
    """Return uv's arguments for the runtime. An editable runtime stays editable."""
    if not needs.runtime:
        return []
    source = editable_source_folder(RUNTIME)
    return ["--editable", str(source)] if source else [str(write_factory_wheel(RUNTIME, work))]


def _declared(needs: Requirements, wanted: Sequence[str]) -> list[str]:
    if needs.found or needs.special:
        besides = [text for text in wanted if text not in needs.dependencies]
        return ["--requirements", str(needs.file), "--no-sources-package", RUNTIME, *besides]
    return ["--no-sources", *wanted] if wanted else []


def _reason(said: str) -> str:
    parts = [part.strip() for part in re.sub(r"^uv \w+ failed: ", "", said).split("; ")]
    parts = [re.sub(r"^(?:error:|×|cause:|╰─▶|├─▶|│)\s*", "", part) for part in parts]
    return "; ".join(part for part in parts if part and not part.startswith(_KNOWN))


def _remove_unused(environments: Path) -> None:
    for mark in environments.glob(f"*/{READY}"):
        with suppress(OSError, StateError):
            if time.time() - mark.stat().st_mtime > _UNUSED:
                with file_lock(environments / f"{mark.parent.name}.lock", timeout=0):
                    shutil.rmtree(mark.parent)
