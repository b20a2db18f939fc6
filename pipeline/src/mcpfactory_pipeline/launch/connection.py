"""A server of the workspace as a process with a client that speaks to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.isolation.environ import clean_environ, foreign_path
from mcpfactory_pipeline.launch.command import server_command, server_environ
from mcpfactory_pipeline.launch.failure import client_failure
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client, ConnectionLostError, HttpError, ProtocolError, connect_http, connect_stdio

__all__ = ["connect_server"]


@asynccontextmanager
async def connect_server(
    server: WorkspaceServer,
    environ: Mapping[str, str] | None = None,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109 - of each request; the client's own
    home: Path | None = None,
    elicitation: Callable[[dict[str, Any]], Any] | None = None,
) -> AsyncIterator[Client]:
    """Start the server from its sources and end it with the block; `environ` is added to its environment.

    With a `home`, an empty folder, it is a stranger's: it runs there, and of our environment has what any program needs.
    `elicitation` is the client's: it answers what the server asks a person.

    Raises:
        ServerError: when it does not start, does not speak, or ends meanwhile.
        StageError: when its environment cannot be made.
    """
    if server.adopted is not None and server.adopted.url:
        async with _connected(server, server.adopted.url, timeout) as client:
            yield client
        return
    command = await asyncio.to_thread(server_command, server)
    try:
        own = (
            server_environ(server)
            if home is None
            else {
                **clean_environ(home),
                **({"PATH": foreign_path()} if server.adopted else {"PYTHONPATH": str(server.folder / "src")}),
            }
        )
        async with (
            connect_stdio(
                command,
                env=own | dict(environ or {}),
                cwd=home,
                inherit=False,
                start_new_session=True,  # else it may die of Ctrl-C before we have heard of that, and we would tell its death
                timeout=timeout,
                elicitation=elicitation,
            ) as client
        ):
            yield client
    except (ConnectionLostError, ProtocolError, TimeoutError) as error:
        raise client_failure(error, server.name) from error


@asynccontextmanager
async def _connected(server: WorkspaceServer, url: str, seconds: float) -> AsyncIterator[Client]:
    """Connect to a server that was adopted at a URL."""
    try:
        async with connect_http(url, timeout=seconds) as client:
            yield client
    except (ConnectionLostError, HttpError, ProtocolError, TimeoutError) as error:
        raise ServerError(
            f"{server.name} at {url} does not answer as an MCP server: {error}", hint=f"mcpfactory validate --url {url}"
        ) from error
