from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import output
from mcpfactory.exits import Exit


def serve(
    http: Annotated[
        bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of speaking on stdio.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on, with --http; others than this machine's need authorization.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on, with --http; 0 takes a free one.")] = 8000,
    token: Annotated[
        str, typer.Option(metavar="env:NAME|file:PATH", help="Where the token is that callers must know, with --http.")
    ] = "",
    url: Annotated[str, typer.Option(help="The endpoint as clients write it, with --token; https.")] = "",
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder in the workspace; by default the current one.")
    ] = None,
) -> None:
    """Offer the factory itself as an MCP server, so that agents can operate it."""
    if not http and (token or url):
        output.fail("--token and --url are for --http", "mcpfactory serve --http --token env:NAME", Exit.USAGE)
    from mcpfactory_pipeline.serve.factory import make_factory
    from mcpfactory_pipeline.serve.listen import Place, listen
    from mcpfactory_pipeline.workspace import Workspace

    root = Workspace.find(workspace or Path.cwd()).root
    listen(make_factory(root, local=not http), Place(host, port, token, url) if http else None)
