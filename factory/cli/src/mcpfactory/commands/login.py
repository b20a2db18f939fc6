from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated, NoReturn

import typer

from mcpfactory.options import Name, workspace_in


def login(
    name: Name,
    scheme: Annotated[str, typer.Option(help="The security scheme, where the API has several with a login.")] = "",
    scope: Annotated[
        list[str] | None, typer.Option(help="Ask for this scope, in place of those of all tools. Repeatable.")
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port of 127.0.0.1 that the browser comes back to.")
    ] = 33418,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the page's address, open nothing.")] = False,
    device: Annotated[bool, typer.Option("--device", help="Agree on another device, by typing a code.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Log out: delete the login that is kept.")] = False,
) -> None:
    """Log in to the API behind a server (OAuth 2), in a browser or by a code; the login is kept for the server."""
    if forget:
        _run(name, "logout", f"--scheme={scheme}")
    switches = ["--no-browser"] * no_browser + ["--device"] * device
    scopes = [f"--scope={one}" for one in scope or ()]
    _run(name, "login", f"--scheme={scheme}", f"--port={port}", *scopes, *switches)


def _run(name: str, *arguments: str) -> NoReturn:
    """Run the server's own command: it has the API's addresses, and the libraries in its own environment."""
    from mcpfactory_pipeline.launch.command import server_command, server_environ
    from mcpfactory_pipeline.workspace.address import refuse_among_many

    workspace = workspace_in()
    server = workspace.server(name)
    refuse_among_many(workspace, server, os.environ)
    done = subprocess.run(server_command(server, *arguments), env=server_environ(server), check=False)
    sys.exit(done.returncode)
