"""The command that starts a server of the workspace from its sources."""

from __future__ import annotations

import os

from mcpfactory_pipeline.launch.environment import server_python
from mcpfactory_pipeline.launch.failure import package_command
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["server_command", "server_environ"]


def server_command(server: WorkspaceServer, *arguments: str, web: bool = False) -> list[str]:
    """Return the command that starts the server in its own environment, which is made where it is not there; `web` to serve over HTTP.

    Raises:
        ServerError: when its environment cannot be installed.
        StageError: when that could not be made.
    """
    return [*package_command(server_python(server, web=web), server.package, server.folder), *arguments]


def server_environ(server: WorkspaceServer) -> dict[str, str]:
    """Return the environment of the server's process: ours, with the server's `src` folder importable."""
    parts = [str(server.folder / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}
