"""The command that starts a server of the workspace from its sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcpfactory_pipeline.starting.mistake import package_command
from mcpfactory_pipeline.workspace.workspace import Server

__all__ = ["server_command"]


def server_command(server: Server, *arguments: str) -> list[str]:
    """The command that starts the server: its own `.venv` when it has one, else the interpreter of mcpfactory."""
    own = server.folder / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    python = own if own.exists() else Path(sys.executable)
    return [*package_command(python, server.package, server.folder), *arguments]
