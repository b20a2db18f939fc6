from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import output
from mcpfactory.options import AsJson


def dashboard(
    export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a static site there instead of serving.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8765,
    as_json: AsJson = False,
) -> None:
    """Show where every server of the workspace stands, in a browser."""
    from mcpfactory_pipeline.workspace import Workspace

    workspace = Workspace.find(Path.cwd())
    if export is not None:
        from mcpfactory_pipeline.dashboard.export import export as write_site

        pages = write_site(workspace.root, export)
        if as_json:
            output.data({"folder": str(export.resolve()), "files": [str(page.relative_to(export)) for page in pages]})
            return
        output.line(f"{len(pages)} files in {export.resolve()}")
        output.note(f"open {export.resolve() / 'index.html'}")
        return
    import socket

    import uvicorn

    from mcpfactory_pipeline.dashboard.app import create_app

    listener = socket.create_server((host, port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
    url = f"http://{host}:{listener.getsockname()[1]}/"
    if as_json:
        output.data({"workspace": workspace.name, "url": url})
        sys.stdout.flush()  # whoever started it waits for the address
    else:
        output.note(f"dashboard of {workspace.name}: {url}  (Ctrl-C ends it)")
    app = create_app(workspace.root, hosts=(host,), age=1.0, ended=lambda: server.should_exit)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    server.run(sockets=[listener])
