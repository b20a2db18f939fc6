"""The API behind a server while its evaluation cases are asked: the model of it that the server's folder has."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.isolation.environ import PLAIN
from mcpfactory_pipeline.workspace.modelled_files import PROGRAM

__all__ = ["ModelledApi", "has_model", "modelled_api", "run_model"]

_PATIENCE: Final = 60.0  # seconds until the program must have said where it is
_ENDING: Final = 10.0  # seconds that it has after its input ended


@dataclass(frozen=True, slots=True)
class ModelledApi:
    """Where the API is: variables for the server's process, and values that cases speak of as `${name}`."""

    environment: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


def has_model(folder: Path) -> bool:
    """Whether the server in `folder` has a model of its API."""
    return (folder / PROGRAM).is_file()


@asynccontextmanager
async def modelled_api(folder: Path) -> AsyncIterator[ModelledApi]:
    """Serve the model of the API of the server in `folder` on loopback until the block ends; nothing where there is none.

    `tests/upstream.py` is started: it prints one line of JSON (`environment`, `values`) and serves until its input ends.

    Raises:
        ConfigError: when the program ends, or says nothing that can be read.
    """
    if not has_model(folder):
        yield ModelledApi()
        return
    file = folder / PROGRAM
    kept = {name: os.environ[name] for name in PLAIN if name in os.environ}
    async with run_model([sys.executable, file.name], cwd=file.parent, environ=kept) as api:
        yield api


@asynccontextmanager
async def run_model(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> AsyncIterator[ModelledApi]:
    """Run the program of a model until the block ends, and no process of it longer than that.

    It leads a session: what a person types at a terminal to end this program (Ctrl-C) is not for the model as well, which
    would die of it with a traceback. It ends with its input, also where this program was killed.

    Raises:
        ConfigError: as `modelled_api`.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, cwd=cwd, env=environ, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE)
        except (TimeoutError, ValueError):  # silence, or a line without an end
            line = b""
        yield _read(line)
    finally:
        process.stdin.close()
        try:
            await _wait(process)
        finally:  # also if this wait is cancelled: asyncio reports a process that nobody waited for
            _kill_group(process.pid)  # it, or what it started and left behind
            await _wait(process)


async def _wait(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):  # what left its group may hold its pipes
        await asyncio.wait_for(process.wait(), _ENDING)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _read(line: bytes) -> ModelledApi:
    try:
        said: dict[str, Any] = json.loads(line)
        return ModelledApi(
            {str(name): str(value) for name, value in said["environment"].items()},
            {str(name): str(value) for name, value in said.get("values", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{PROGRAM} did not say where it serves: {line[:200]!r}",
            hint='its first line on stdout is {"environment": {"NAME_BASE_URL": "http://127.0.0.1:…"}}',
        ) from error
