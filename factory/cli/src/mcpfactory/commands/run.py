from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from mcpfactory import output
from mcpfactory.options import Channel, Demo, Host, Http, Mode, Name, Port, Root, workspace_in
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


def run(
    name: Name,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    open_: Annotated[
        bool, typer.Option("--open", help="With --http: allow all callers on a non-loopback address")
    ] = False,
    mode: Mode = "",
    profile: Annotated[str, typer.Option(help="Tool profile of a generated server: full, read-only or your own")] = "",
    dialect: Annotated[str, typer.Option(help="Dialect for clients with limits: standard, plain or flat")] = "",
    demo: Demo = False,
    channel: Channel = "",
    workspace: Root = None,
) -> None:
    """Start a server on stdio or over HTTP."""
    from mcpfactory_pipeline.launch.command import server_command, server_environ
    from mcpfactory_pipeline.workspace.upstream import refuse_among_many

    space = workspace_in(workspace)
    server = space.server(name)
    refuse_among_many(space, server, os.environ)
    chosen = [
        f"--{key}={value}" for key, value in (("mode", mode), ("profile", profile), ("dialect", dialect)) if value
    ]
    web = ["--http", "--host", host, "--port", str(port), *(["--open"] if open_ else [])] if http else []
    command = (
        _offered(space, server, channel, chosen + web) if channel else server_command(server, *chosen, *web, web=http)
    )
    environ = server_environ(server) | ({"MCPFACTORY_DEMO": "1"} if demo else {})
    if os.name == "nt":  # Windows cannot replace a process
        sys.exit(subprocess.run(command, env=environ, check=False).returncode)
    sys.stdout.flush()
    os.execve(command[0], command, environ)  # noqa: S606 - the server takes this process's place: its pipes, its signals


def _offered(workspace: Workspace, server: WorkspaceServer, channel: str, options: list[str]) -> list[str]:
    from mcpfactory_pipeline.launch.adopted import channel_command

    if server.adopted is None or options:
        output.fail(
            "--channel requires an adopted server and cannot be combined with other options",
            f"mcpfactory run {server.name}, or mcpfactory install {server.name} --from {channel} --client CLIENT",
            Exit.USAGE,
        )
    return channel_command(workspace, server, channel)


def login(
    name: Name,
    scheme: Annotated[str, typer.Option(help="Security scheme, if the API has several with a login")] = "",
    scope: Annotated[
        list[str] | None, typer.Option(help="Scope to request instead of those of all tools (repeatable)")
    ] = None,
    port: Annotated[int, typer.Option(metavar="PORT", help="Port on 127.0.0.1 for the browser redirect")] = 33418,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the login URL instead of opening a browser")
    ] = False,
    device: Annotated[bool, typer.Option("--device", help="Log in on another device by typing a code")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Log out and delete the stored login")] = False,
) -> None:
    """Log in to the API of a server (OAuth 2).

    Use a browser or a code. The login is stored for the server.
    """
    if forget:
        _run(name, "logout", f"--scheme={scheme}")
    switches = ["--no-browser"] * no_browser + ["--device"] * device
    scopes = [f"--scope={one}" for one in scope or ()]
    _run(name, "login", f"--scheme={scheme}", f"--port={port}", *scopes, *switches)


def _run(name: str, *arguments: str) -> NoReturn:
    """Run the server's own command: it has the API's addresses, and the libraries in its own environment."""
    from mcpfactory_pipeline.launch.command import server_command, server_environ
    from mcpfactory_pipeline.workspace.upstream import refuse_among_many

    workspace = workspace_in()
    server = workspace.server(name)
    refuse_among_many(workspace, server, os.environ)
    done = subprocess.run(server_command(server, *arguments), env=server_environ(server), check=False)
    sys.exit(done.returncode)
