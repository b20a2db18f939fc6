from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import completion, output
from mcpfactory.options import Host, Http, Port, Root, selected_workspace

if TYPE_CHECKING:
    from mcpfactory_pipeline.serve.factory_server import HttpAddress
    from mcpfactory_pipeline.workspace.workspace import Workspace

_Documents = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PLACE",
        help=(
            "Accept API documents from this folder (/PATH, ./PATH) or host (HOST, HOST:PORT), in addition to "
            "the workspace and public addresses (repeatable)"
        ),
    ),
]


def serve(
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Serve the tools of these servers instead of the factory's tools (repeatable, or NAME,NAME…)",
            autocompletion=completion.servers,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Serve the tools of all servers in the workspace")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Offer three tools that find, describe and call all other tools")
    ] = False,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Annotated[
        str,
        typer.Option(
            metavar="env:NAME|file:PATH", help="With --http: require the token that this variable or file contains"
        ),
    ] = "",
    public_url: Annotated[str, typer.Option(metavar="URL", help="With --token: public https URL of the endpoint")] = "",
    documents: _Documents = None,
    workspace: Root = None,
) -> None:
    """Serve the factory, or a gateway to servers, over MCP.

    With the factory's tools, an agent can create and operate servers. A gateway serves the tools of servers in the
    workspace.
    """
    names, gateway = [name.strip() for name in ",".join(server or ()).split(",") if name.strip()], bool(server) or all_
    if server and not names:  # if no names are given, a gateway serves all servers
        output.usage_error("--server is empty", "mcpfactory serve --server NAME --server NAME, or --all")
    if (server and all_) or (search and not gateway):
        output.usage_error(
            "this combination of --server, --all and --search is invalid", "mcpfactory serve --all --search"
        )
    if not http and (token or public_url):
        output.usage_error("--token and --public-url require --http", "mcpfactory serve --http --token env:NAME")
    if documents and gateway:
        output.usage_error("--documents cannot be combined with --server or --all", "leave out --server and --all")
    from mcpfactory_pipeline.serve.factory_server import HttpAddress, listen, variables_hidden_from_children

    found = selected_workspace(workspace)
    place = HttpAddress(host, port, token, public_url) if http else None
    if gateway:
        for one in found.load_servers()[1] if all_ else ():
            output.warning(f"skipped {one.name}: {one.message}")
            output.note(f"hint: {one.hint}")
        options = {"search": search, "private": not http, "unset": variables_hidden_from_children(place)}
        _serve_gateway(found, names, place, options)
    else:
        from mcpfactory_pipeline.serve.factory_server import make_factory_server

        listen(make_factory_server(found.root, documents or (), local=not http), place)


def _serve_gateway(found: Workspace, names: list[str], place: HttpAddress | None, options: dict[str, Any]) -> None:
    """Serve a gateway until it ends, then end all processes that the gateway started."""
    from mcpfactory_pipeline.isolation.processes import adopt_orphans, descendants, end_descendants
    from mcpfactory_pipeline.serve.factory_server import listen
    from mcpfactory_pipeline.serve.gateway import make_gateway, make_health_page

    ours = descendants(os.getpid())
    adopt_orphans()
    made = make_gateway(found, names, **options)
    try:
        listen(made.server, place, pages={"/health": make_health_page(made.rows)})
    finally:
        end_descendants(ours)
