"""Start a server as a process with a client, and the simulated API for its evaluation cases."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.isolation.levels import PLAIN, clean_environ, path_without_mcpfactory
from mcpfactory_pipeline.launch.start_command import convert_client_error, server_command, server_environ
from mcpfactory_pipeline.workspace.workspace import API_MODEL_PROGRAM, WorkspaceServer
from mcpfactory_runtime.client import Client, ConnectionLostError, HttpError, ProtocolError, connect_http, connect_stdio


@asynccontextmanager
async def connect_server(
    server: WorkspaceServer,
    environ: Mapping[str, str] | None = None,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109 - seconds for each request; passed to the client
    home: Path | None = None,
    elicitation: Callable[[dict[str, Any]], Any] | None = None,
) -> AsyncIterator[Client]:
    """Start the server from its sources, connect a client, and end the server after the block.

    `environ` is added to the server's environment. If `home` is set, the server is untrusted, and runs in this empty
    folder with only the variables that every program needs. `elicitation` answers the questions that the server asks a
    person.

    Raises:
        ServerError: the server does not start, does not speak MCP, or ends during the block.
    """
    if server.adopted is not None and server.adopted.url:
        async with _connected(server, server.adopted.url, timeout) as client:
            yield client
        return
    command = await asyncio.to_thread(server_command, server)
    try:
        path = {"PATH": path_without_mcpfactory()} if server.adopted else {"PYTHONPATH": str(server.folder / "src")}
        own = server_environ(server) if home is None else {**clean_environ(home), **path}
        async with connect_stdio(
            command,
            env=own | dict(environ or {}),
            cwd=home,
            inherit=False,
            # Without a new session, Ctrl-C would also end the server, and the end would be reported as an error.
            start_new_session=True,
            timeout=timeout,
            elicitation=elicitation,
        ) as client:
            yield client
    except (ConnectionLostError, ProtocolError, TimeoutError) as error:
        raise convert_client_error(error, server.name) from error


@asynccontextmanager
async def _connected(server: WorkspaceServer, url: str, seconds: float) -> AsyncIterator[Client]:
    try:
        async with connect_http(url, timeout=seconds) as client:
            yield client
    except (ConnectionLostError, HttpError, ProtocolError, TimeoutError) as error:
        raise ServerError(
            f"{server.name} at {url} does not answer as an MCP server: {error}", hint=f"mcpfactory validate --url {url}"
        ) from error


_PATIENCE: Final = 60.0  # maximum seconds to wait for the line with the program's address
_ENDING: Final = 10.0  # maximum seconds to wait for the program's exit after its input ends


@dataclass(frozen=True, slots=True)
class SimulatedApi:
    """A running simulated API.

    `environment` has variables for the server's process. `values` has values for `${name}` in cases.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


def has_simulated_api(folder: Path) -> bool:
    """Return True if the server in `folder` has a simulated API."""
    return (folder / API_MODEL_PROGRAM).is_file()


@asynccontextmanager
async def serve_simulated_api(folder: Path) -> AsyncIterator[SimulatedApi]:
    """Serve the simulated API of the server in `folder` on loopback until the block ends.

    The program `tests/upstream.py` prints one line of JSON (`environment`, `values`), and serves until its input ends.
    If the program is missing, yield empty variables and values.

    Raises:
        ConfigError: the program ends too early, or its first output line is invalid.
    """
    if not has_simulated_api(folder):
        yield SimulatedApi()
        return
    file = folder / API_MODEL_PROGRAM
    kept = {name: os.environ[name] for name in PLAIN if name in os.environ}
    async with run_simulated_api([sys.executable, file.name], cwd=file.parent, environ=kept) as api:
        yield api


@asynccontextmanager
async def run_simulated_api(
    command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]
) -> AsyncIterator[SimulatedApi]:
    """Run the program of a simulated API during the block, then kill all processes of the program.

    The program has its own session, so Ctrl-C does not end it with a traceback. The program ends when its input ends,
    even if this process was killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, cwd=cwd, env=environ, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE)
        except (TimeoutError, ValueError):  # the program printed nothing, or a line without an end
            line = b""
        yield _read(line)
    finally:
        process.stdin.close()
        try:
            await _wait(process)
        finally:  # await the process even after a cancellation, because asyncio otherwise warns
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # kills the program and its remaining child processes
            await _wait(process)


async def _wait(process: asyncio.subprocess.Process) -> None:
    # Do not wait longer, because processes outside of the group may keep the pipes open.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _ENDING)


def _read(line: bytes) -> SimulatedApi:
    try:
        said: dict[str, Any] = json.loads(line)
        return SimulatedApi(
            {str(name): str(value) for name, value in said["environment"].items()},
            {str(name): str(value) for name, value in said.get("values", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{API_MODEL_PROGRAM} did not print its address: {line[:200]!r}",
            hint='print {"environment": {"NAME_BASE_URL": "http://127.0.0.1:…"}} as the first line on stdout',
        ) from error
