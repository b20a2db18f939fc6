from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Host, Port, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.dashboard.access import TrustedProxy

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - only for comparison

_Export = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Write or update a static site in this folder, and exit",
    ),
]
_AllowActions = Annotated[
    bool,
    typer.Option(
        "--allow-actions",
        help="Allow actions; users log in with a token from MCPFACTORY_DASHBOARD_TOKEN or --token-file",
    ),
]
_TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read tokens from this file: `name: token` lines, mode 600"),
]
_ProxyHeader = Annotated[
    str,
    typer.Option(
        metavar="HEADER",
        help="With --allow-actions: read the user name from this proxy header [requires MCPFACTORY_DASHBOARD_PROXY_SECRET]",
    ),
]
_Logs = Annotated[bool, typer.Option("--logs", help="With --export: include the output of steps")]
_PublicUrl = Annotated[str, typer.Option(metavar="URL", help="Public URL of the dashboard behind a proxy")]


def dashboard(
    export: _Export = None,
    logs: _Logs = False,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    allow_actions: _AllowActions = False,
    token_file: _TokenFile = None,
    proxy_header: _ProxyHeader = "",
    public_url: _PublicUrl = "",
    as_json: AsJson = False,
) -> None:
    """Show the status of all servers in a browser.

    With --allow-actions, people can also make decisions in the browser.
    """
    workspace = selected_workspace()
    if export is not None:
        _export(workspace.root, export, logs=logs, as_json=as_json)
        return
    if logs:
        output.usage_error("--logs requires --export", "mcpfactory dashboard --export DIR --logs")
    if (token_file or proxy_header) and not allow_actions:
        option = "--token-file" if token_file else "--proxy-header"
        output.usage_error(f"{option} requires --allow-actions", "mcpfactory dashboard --allow-actions")
    from mcpfactory_pipeline.dashboard.access import public_origin
    from mcpfactory_runtime.transports.http.serve import listen, listening_hint

    origin, proxy = public_origin(public_url), _proxy(proxy_header)
    people = _people(host, token_file, needed=proxy is None) if allow_actions else None
    _note_readers(host, public_url)
    try:
        listener = listen(host, port)
    except OSError as error:
        output.fail(f"cannot listen on {host}:{port}: {error.strerror}", listening_hint(error), Exit.BAD_INPUT)
    name = f"[{host}]" if ":" in host else host  # IPv6 addresses need brackets in URLs and Host headers
    url = f"http://{name}:{listener.getsockname()[1]}/"
    if as_json:
        output.data({"workspace": workspace.name, "url": url})
        sys.stdout.flush()  # flush, because the parent process waits for this line to read the address
    else:
        output.note(f"dashboard of {workspace.name}: {url}  (Ctrl-C ends it)")
    import uvicorn

    from mcpfactory_pipeline.dashboard.app import create_app

    options: dict[str, Any] = {"hosts": (name,), "people": people, "proxy": proxy, "origin": origin}
    app = create_app(workspace.root, age=1.0, ended=lambda: server.should_exit, **options)
    # The dashboard checks proxy headers, because uvicorn would trust any local process.
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))
    server.run(sockets=[listener])


def _export(root: Path, folder: Path, *, logs: bool, as_json: bool) -> None:
    from mcpfactory_pipeline.base.git import git_text
    from mcpfactory_pipeline.dashboard.export import export

    if logs:
        output.note("warning: logs can contain secrets; read them before you publish the files")
    files, folder = export(root, folder, logs=logs), folder.resolve()
    if as_json:
        output.data({"folder": str(folder), "files": [str(file.resolve().relative_to(folder)) for file in files]})
        return
    output.line(f"{len(files)} files in {folder}")
    output.note(f"open {folder / 'index.html'}")
    if untracked := git_text(root, "ls-files", "--others", "--exclude-standard", "--directory", "--", str(folder)):
        output.note(
            f"git does not ignore these files; hint: echo /{untracked.splitlines()[0]} >> {root / '.gitignore'}"
        )


def _note_readers(host: str, public_url: str) -> None:
    """Warn that a dashboard on a non-loopback address has no login, and print the accepted host names."""
    if host in _LOOPBACK:
        return
    output.note(f"anyone who can reach {host} can read the dashboard (findings, logs and decisions); there is no login")
    if host in _EVERY_ADDRESS and not public_url:
        output.note(
            f"the dashboard responds only under {host} and loopback names; set --public-url URL to the address "
            "that users open"
        )


def _proxy(header: str) -> TrustedProxy | None:
    """Return the authenticating proxy, and hide its secret from child processes."""
    if not header:
        return None
    from mcpfactory_pipeline.dashboard.access import PROXY_SECRET_VARIABLE, read_proxy

    proxy = read_proxy(os.environ, header)
    os.environ.pop(PROXY_SECRET_VARIABLE, None)
    output.note(f"also allowed to act: users that the proxy names in the header {header}")
    return proxy


def _people(host: str, token_file: Path | None, *, needed: bool) -> dict[str, str]:
    """Return the people who may act, by name, and hide their tokens from child processes."""
    from mcpfactory_pipeline.base.ids import current_actor
    from mcpfactory_pipeline.dashboard.access import TOKEN_VARIABLE, read_access_tokens

    if host not in _LOOPBACK:
        output.usage_error(
            f"--allow-actions requires a loopback address, not {host}: tokens would be sent unencrypted",
            "leave out --host, and connect through a tunnel: ssh -L 8765:127.0.0.1:8765 HOST",
        )
    people = read_access_tokens(os.environ, token_file, current_actor(), needed=needed)
    os.environ.pop(TOKEN_VARIABLE, None)
    if people:
        output.note(f"users allowed to act: {', '.join(people)}")
    return people
