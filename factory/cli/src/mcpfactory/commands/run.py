from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated

import typer

from mcpfactory.options import Host, Http, Mode, Name, Port, Root, workspace_in


def run(
    name: Name,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    open_: Annotated[
        bool, typer.Option("--open", help="Serve everybody who reaches an address that others can reach, with --http.")
    ] = False,
    mode: Mode = "",
    profile: Annotated[str, typer.Option(help="Which tools of a generated server: full, read-only or your own.")] = "",
    dialect: Annotated[str, typer.Option(help="For clients with limits: standard, plain or flat.")] = "",
    workspace: Root = None,
) -> None:
    """Start a server: MCP on stdin and stdout, or over HTTP."""
    from mcpfactory_pipeline.launch.command import server_command, server_environ
    from mcpfactory_pipeline.workspace.address import refuse_among_many

    space = workspace_in(workspace)
    server = space.server(name)
    refuse_among_many(space, server, os.environ)
    chosen = [
        f"--{key}={value}" for key, value in (("mode", mode), ("profile", profile), ("dialect", dialect)) if value
    ]
    web = ["--http", "--host", host, "--port", str(port), *(["--open"] if open_ else [])] if http else []
    command = server_command(server, *chosen, *web, web=http)
    environ = server_environ(server)
    if os.name == "nt":  # Windows cannot replace a process
        sys.exit(subprocess.run(command, env=environ, check=False).returncode)
    sys.stdout.flush()
    os.execve(command[0], command, environ)  # noqa: S606 - the server takes this process's place: its pipes, its signals
