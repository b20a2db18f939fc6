"""The clean virtual environment of a candidate: its wheel, what that needs, and pytest. Made once, used by several stages."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.versions import python_version
from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.build.programs import run_uv
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs

__all__ = ["UNINSTALLABLE", "environment_python", "ready_python"]

UNINSTALLABLE: Final = "correct [project] dependencies in pyproject.toml, or make the package index reachable"


def environment_python(inputs: StageInputs, candidate: Artifact) -> Path:
    """Return the interpreter of the candidate's environment, which is made when it is not there.

    Raises:
        ProgramRefusedError: when the candidate cannot be installed.
        StageError: when the machinery broke.
    """
    runtime = runtime_wheel(inputs.artifacts)
    groups = ["--group", f"{inputs.folder / 'pyproject.toml'}:test"] if _has_test_group(inputs.folder) else []
    wanted = {
        "files": dict(candidate.files),
        "runtime": hash_file(runtime) if runtime else "from the index",
        "python": python_version(),
        "requirements": hash_file(inputs.folder / "pyproject.toml") if groups else "pytest",
    }
    folder = candidate.folder / "environment"
    python, ready = _python(candidate), folder / "ready.json"
    if not _is_ready(ready, wanted):
        _remove_others(candidate)
        shutil.rmtree(folder, ignore_errors=True)
        run_uv("venv", "--quiet", str(folder), cwd=inputs.work)
        packages = [str(candidate.wheel), *([str(runtime)] if runtime else []), "pytest"]
        run_uv("pip", "install", "--quiet", *packages, *groups, cwd=inputs.work, python=python)
        ready.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def ready_python(candidate: Artifact) -> Path | None:
    """Return the interpreter of the candidate's environment, where a stage made it from these very files; None where it is not there."""
    try:
        made = json.loads((candidate.folder / "environment" / "ready.json").read_text(encoding="utf-8"))
        return _python(candidate) if made["files"] == dict(candidate.files) and _python(candidate).exists() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _python(candidate: Artifact) -> Path:
    return candidate.folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _has_test_group(folder: Path) -> bool:
    try:
        config = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "test" in config.get("dependency-groups", {})


def _is_ready(ready: Path, wanted: Mapping[str, object]) -> bool:
    try:
        return bool(json.loads(ready.read_text(encoding="utf-8")) == wanted)
    except (OSError, ValueError):
        return False


def _remove_others(candidate: Artifact) -> None:
    """Environments of the server's earlier candidates are of no more use; their wheels are."""
    for other in candidate.folder.parent.glob("*/environment"):
        if other.parent != candidate.folder:
            shutil.rmtree(other, ignore_errors=True)
