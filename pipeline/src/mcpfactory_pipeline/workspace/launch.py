"""How a server of the workspace is started from its source: by `run`, `call`, `inspect`, `validate`, and the gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcpfactory_pipeline.workspace.workspace import Server

__all__ = ["server_command", "server_environ"]


def server_command(server: Server, *arguments: str) -> list[str]:
    """The command that starts the server: its own `.venv` when it has one, else the interpreter of mcpfactory."""
    own = server.folder / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return [str(own if own.exists() else Path(sys.executable)), "-m", server.package, *arguments]


def server_environ(server: Server) -> dict[str, str]:
    """The environment of the server's process: ours, with the server's `src` folder importable."""
    parts = [str(server.folder / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}
