"""Servers of this repository as candidates that production offers, in a workspace of their own; and asking one what it can do."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.trials.ground import ROOT
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.build.wheels import wheel_version
from mcpfactory_pipeline.channels.candidate import build_candidate, store_candidate
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.client import Client

__all__ = ["SERVERS", "plain", "promoted", "tools"]

SERVERS = ("bookshop", "everything")
_LITTER = shutil.ignore_patterns(".venv", "__pycache__", ".*_cache")


def promoted(root: Path, names: Sequence[str] = SERVERS) -> Workspace:
    """A workspace with servers of this repository: built for real, put into production without asking any stage."""
    space = init_workspace(root, git=False)
    for name in names:
        shutil.copytree(ROOT / "servers" / name, root / "servers" / name, ignore=_LITTER)
        with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
            made = build_candidate(root / "servers" / name, Path(work))
            store_candidate(made, space.artifacts / name / made.id)
            runtime_wheel(space.artifacts)
        version = wheel_version(next(file for file in made.files if file.endswith(".whl")))
        with Store(space).transaction(name) as transaction:
            built = {"version": version, "files": dict(made.files), "facts": {}}
            run = new_id()
            transaction.append("stage.started", stage="build", run=run)
            transaction.append(
                "stage.finished",
                stage="build",
                run=run,
                outcome="passed",
                fingerprint="f",
                inputs={},
                candidate=made.id,
                built=built,
            )
            for channel in ("staging", "production"):
                transaction.append("promoted", channel=channel, candidate=made.id, version=version)
    return space


def plain(home: Path, *programs: Path, **variables: str) -> list[str]:
    """The beginning of a command that sees an empty home, these folders of programs, and nothing else of ours.

    Where packages come from is passed on: the settings of uv, of pip and of the network.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(("UV_", "PIP_", "SSL_")) or key.lower().endswith("_proxy")
    }
    path = os.pathsep.join([*map(str, programs), "/usr/local/bin", "/usr/bin", "/bin"])
    return [
        "env",
        "-i",
        *(f"{key}={value}" for key, value in {**kept, "HOME": str(home), "PATH": path, **variables}.items()),
    ]


def tools(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> list[str]:
    """Starts a server on stdio and asks for its tools: their names, sorted."""

    async def ask() -> list[str]:
        async with Client.connect_stdio(list(command), env=env, cwd=cwd, timeout=120, probe_timeout=120) as client:
            return sorted(tool["name"] for tool in await client.list_tools())

    return asyncio.run(ask())
