from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Host, Port, workspace_in


def dashboard(
    export: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a static site there instead of serving.")
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    allow_actions: Annotated[
        bool,
        typer.Option(
            "--allow-actions",
            help="Let people act, after a login with a token: that of MCPFACTORY_DASHBOARD_TOKEN, or one of --token-file.",
        ),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Tokens of several people, a line `name: token` each; nobody else may read it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show where every server of the workspace stands, in a browser; with --allow-actions also decide there."""
    workspace = workspace_in()
    if export is not None:
        from mcpfactory_pipeline.dashboard.export import export as write_site

        pages = write_site(workspace.root, export)
        if as_json:
            output.data({"folder": str(export.resolve()), "files": [str(page.relative_to(export)) for page in pages]})
            return
        output.line(f"{len(pages)} files in {export.resolve()}")
        output.note(f"open {export.resolve() / 'index.html'}")
        return
    people = _people(host, token_file) if allow_actions else None
    if token_file and not allow_actions:
        output.fail("--token-file is for --allow-actions", "mcpfactory dashboard --allow-actions", Exit.USAGE)
    import uvicorn

    from mcpfactory_pipeline.dashboard.app import create_app
    from mcpfactory_runtime.transports.http.serve import listen, listening_hint

    try:
        listener = listen(host, port)
    except OSError as error:
        output.fail(f"{host}:{port} cannot be listened on: {error.strerror}", listening_hint(error), Exit.BAD_INPUT)
    name = f"[{host}]" if ":" in host else host  # as URLs and Host headers have it
    url = f"http://{name}:{listener.getsockname()[1]}/"
    if as_json:
        output.data({"workspace": workspace.name, "url": url})
        sys.stdout.flush()  # whoever started it waits for the address
    else:
        output.note(f"dashboard of {workspace.name}: {url}  (Ctrl-C ends it)")
    app = create_app(workspace.root, hosts=(name,), age=1.0, ended=lambda: server.should_exit, people=people)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    server.run(sockets=[listener])


def _people(host: str, token_file: Path | None) -> dict[str, str]:
    """Those who may act, with their tokens, which no process that is started from here will see."""
    import os

    from mcpfactory_pipeline.base.ids import actor
    from mcpfactory_pipeline.dashboard.access import TOKEN_VARIABLE, read_people

    if host not in {"127.0.0.1", "localhost", "::1"}:
        output.fail(
            f"--allow-actions is for loopback, and {host} is none: tokens would travel in the clear",
            "leave --host out, and reach it through a tunnel: ssh -L 8765:127.0.0.1:8765 HOST",
            Exit.USAGE,
        )
    people = read_people(os.environ, token_file, actor())
    os.environ.pop(TOKEN_VARIABLE, None)
    output.note(f"who may act: {', '.join(people)}")
    return people
