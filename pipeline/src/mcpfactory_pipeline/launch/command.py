"""The command that starts a server of the workspace from its sources."""

from __future__ import annotations

from mcpfactory_pipeline.launch.environment import server_python
from mcpfactory_pipeline.launch.failure import package_command
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["server_command"]


def server_command(server: WorkspaceServer, *arguments: str, web: bool = False) -> list[str]:
    """Return the command that starts the server in its own environment, which is made where it is not there; `web` to serve over HTTP.

    Raises `ServerError` and `StageError` as `server_python` does.
    """
    return [*package_command(server_python(server, web=web), server.package, server.folder), *arguments]
