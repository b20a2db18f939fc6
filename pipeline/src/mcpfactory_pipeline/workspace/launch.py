"""The environment variables of a server that is started from its source."""

from __future__ import annotations

import os

from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["server_environ"]


def server_environ(server: WorkspaceServer) -> dict[str, str]:
    """Return the environment of the server's process: ours, with the server's `src` folder importable."""
    parts = [str(server.folder / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}
