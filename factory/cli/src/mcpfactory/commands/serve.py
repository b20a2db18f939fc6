from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit


def serve(
    servers: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME…",
            help="Offer what these servers offer, behind one endpoint, in place of the factory.",
            autocompletion=complete.servers,
        ),
    ] = "",
    all_: Annotated[bool, typer.Option("--all", help="The same for all servers of the workspace.")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Three tools that find, describe and call those of all servers.")
    ] = False,
    idle: Annotated[float, typer.Option(help="Seconds without a call after which a server is stopped.")] = 600.0,
    http: Annotated[
        bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of speaking on stdio.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on, with --http; others than this machine's need authorization.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on, with --http; 0 takes a free one.", min=0, max=65535)
    ] = 8000,
    token: Annotated[
        str, typer.Option(metavar="env:NAME|file:PATH", help="Where the token is that callers must know, with --http.")
    ] = "",
    url: Annotated[str, typer.Option(help="The endpoint as clients write it, with --token; https.")] = "",
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder in the workspace; by default the current one.")
    ] = None,
) -> None:
    """Offer the factory itself as an MCP server, so that agents can operate it; or a gateway to servers of the workspace."""
    names, gateway = [name.strip() for name in servers.split(",") if name.strip()], bool(servers) or all_
    if servers and not names:  # no names would mean all of them, to a gateway
        output.fail("--servers names none", "mcpfactory serve --servers NAME,NAME… or --all", Exit.USAGE)
    if (servers and all_) or (search and not gateway):
        output.fail(
            "--servers, --all and --search do not go together so", "mcpfactory serve --all --search", Exit.USAGE
        )
    if not http and (token or url):
        output.fail("--token and --url are for --http", "mcpfactory serve --http --token env:NAME", Exit.USAGE)
    from mcpfactory_pipeline.serve.listen import Place, listen, secret_variables
    from mcpfactory_pipeline.workspace.workspace import Workspace

    found = Workspace.find(workspace or Path.cwd())
    place = Place(host, port, token, url) if http else None
    if gateway:
        from mcpfactory_pipeline.serve.gateway import make_gateway
        from mcpfactory_pipeline.serve.gateway.health import make_page

        for one in found.survey()[1] if all_ else ():
            output.note(f"{output.styled('warning:', 'warn', err=True)} {one.name} is left out: {one.message}")
            output.note(f"hint: {one.hint}")

        made = make_gateway(found, names, search=search, idle=idle, private=not http, unset=secret_variables(place))
        listen(made.server, place, pages={"/health": make_page(made.rows)})
    else:
        from mcpfactory_pipeline.serve.factory import make_factory

        listen(make_factory(found.root, local=not http), place)
