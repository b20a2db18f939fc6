"""`mcpfactory install` and `uninstall`: the clients of this person or of a project."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import complete, output
from mcpfactory.options import AsJson, DryRun, Root, workspace_in
from mcpfactory.output import print_addresses
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpfactory_pipeline.delivery.clients.install import ClientChange, InstallTarget
    from mcpfactory_pipeline.delivery.clients.table import ClientProfile
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_CLIENT: Final = typer.Option(
    "--client", "-c", metavar="CLIENT", help="MCP client (repeatable)", autocompletion=complete.clients
)
Project = Annotated[
    bool, typer.Option("--project", help="Use the project's configuration in this folder instead of the user's")
]
_Source = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help=(
            "Channel, `index` (package index) or `source` (its folder here) [default: the last channel that "
            "offers it, else its folder; with --project: the index if published, else its folder in the project]"
        ),
    ),
]
_Literal = Annotated[
    bool, typer.Option("--literal", help="Also write values of --env that look like secrets, in clear text")
]
_Force = Annotated[bool, typer.Option("--force", help="Replace an entry of another server with the same name")]


def install(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[NAME|URL]",
            help="Server in this workspace, or server URL [default: list installed servers]",
            autocompletion=complete.servers,
        ),
    ] = "",
    clients: Annotated[list[str] | None, _CLIENT] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name in the client [default: server name, or made from the host]")
    ] = "",
    source: _Source = "",
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="Environment variable; without VALUE, a reference to it (repeatable)"
        ),
    ] = None,
    literal: _Literal = False,
    token_variable: Annotated[
        str, typer.Option(metavar="NAME", help="With a URL: environment variable with the bearer token")
    ] = "",
    project: Project = False,
    workspace: Root = None,
    show: Annotated[bool, typer.Option("--print", help="Print the configuration; change nothing")] = False,
    force: _Force = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Without NAME: also list servers from outside this workspace")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Add a server to the configuration of MCP clients.

    Other entries in the files stay unchanged. Without NAME, list the clients that have servers of this workspace, for
    the user and in this folder, and which entries are stale.
    """
    if not what:
        _list(everything=everything, as_json=as_json)
        return
    if not clients:
        output.fail("--client is missing", f"mcpfactory install {what} --client CLIENT", Exit.USAGE)
    from mcpfactory_pipeline.delivery.clients.files import this_machine
    from mcpfactory_pipeline.delivery.clients.install import install as install_entry
    from mcpfactory_pipeline.delivery.clients.install import select_clients, server_target, snippet

    rows, home, folder = select_clients(clients), this_machine(os.environ), Path.cwd() if project else None
    local = bool(source or env or workspace)
    env = env or []
    if "://" not in what:
        ask = not (project or show or as_json)
        env = _entry_variables(workspace_in(workspace).server(what), env, ask=ask)
    if "://" in what:
        target = _remote(what, name, token_variable, local=local)
    elif token_variable:
        output.fail("--token-variable needs a URL", "use --env NAME to pass a variable", Exit.USAGE)
    else:
        space = workspace_in(workspace)
        target = server_target(
            space, what, name=name, source=source, environ=env, literal=literal, project=folder, ask=not dry_run
        )
    if show:
        output.line("\n".join(snippet(row, target, home, project=folder).rstrip("\n") for row in rows))
        return
    # all of them, or none
    changes = [install_entry(row, target, home, project=folder, dry_run=True, force=force) for row in rows]
    if not dry_run:
        changes = [install_entry(row, target, home, project=folder, force=force) for row in rows]
    _print(changes, as_json, dry_run=dry_run)
    if not as_json:
        _print_address(what, env, workspace)
        _print_notes(() if dry_run else rows, project=folder is not None)


def _print_notes(rows: Sequence[ClientProfile], *, project: bool) -> None:
    for row in rows:
        if words := " ".join(filter(None, (row.note, row.project_note if project else ""))):
            output.note(f"{row.title}: {words}")


def _print_address(what: str, env: list[str], workspace: Path | None) -> None:
    """Report API addresses that are private, or that the server cannot call when the client starts it."""
    from mcpfactory_pipeline.workspace.coverage import inspection_report

    if "://" in what:
        return
    server = workspace_in(workspace).server(what)
    address = (inspection_report(server.folder) or {}).get("address", {})
    written = dict(one.split("=", 1) for one in env if "=" in one)
    print_addresses(server.name, address, written, setting="--env")


def _remote(url: str, name: str, variable: str, *, local: bool) -> InstallTarget:
    from mcpfactory_pipeline.delivery.clients.install import remote_target

    if local:
        output.fail("--from, --env and --workspace cannot be combined with a URL", "--token-variable NAME", Exit.USAGE)
    return remote_target(url, name=name, variable=variable)


def uninstall(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Server name in the client", autocompletion=complete.servers)
    ],
    clients: Annotated[list[str], _CLIENT],
    project: Project = False,
    as_json: AsJson = False,
) -> None:
    """Remove a server from the configuration of MCP clients.

    Other entries in the files stay unchanged.
    """
    from mcpfactory_pipeline.delivery.clients.files import this_machine
    from mcpfactory_pipeline.delivery.clients.install import select_clients
    from mcpfactory_pipeline.delivery.clients.install import uninstall as uninstall_entry

    home, folder, rows = this_machine(os.environ), Path.cwd() if project else None, select_clients(clients)
    for row in rows:  # all, or none
        uninstall_entry(row, name, home, project=folder, dry_run=True)
    changes = [uninstall_entry(row, name, home, project=folder) for row in rows]
    _print(changes, as_json)
    if all(change.outcome == "absent" for change in changes):
        output.hint("mcpfactory install --all lists the servers of each client")
        raise typer.Exit(Exit.NOT_FOUND)


def _list(*, everything: bool, as_json: bool) -> None:
    from mcpfactory_pipeline.base.errors import WorkspaceError
    from mcpfactory_pipeline.delivery.clients.files import this_machine
    from mcpfactory_pipeline.delivery.clients.installed import installed as read_installed

    try:
        workspace = workspace_in()
    except WorkspaceError:
        if not everything:
            raise
        workspace = None
    rows = [
        row
        for row in read_installed(workspace, this_machine(os.environ), Path.cwd())
        if everything or row.state != "other"
    ]
    if as_json:
        output.data([row.to_json() for row in rows])
    elif rows:
        output.table(
            ("CLIENT", "SCOPE", "NAME", "SERVER", "FROM", "VERSION", "STATE"),
            [
                (
                    r.client,
                    r.scope,
                    r.name or "-",
                    r.server or "-",
                    r.source or "-",
                    r.version or "-",
                    f"{r.state}: {r.message}" if r.message else r.state,
                )
                for r in rows
            ],
        )
    else:
        output.note("no client has a server of this workspace; hint: mcpfactory install NAME --client CLIENT")
    if any(row.state in {"stale", "drifted", "broken"} for row in rows):
        raise typer.Exit(Exit.NO)


def _print(changes: list[ClientChange], as_json: bool, *, dry_run: bool = False) -> None:
    if as_json:
        output.data([change.to_json() for change in changes])
        return
    for change in changes:
        would = "would be " if dry_run and change.outcome not in {"unchanged", "absent"} else ""
        version = f" {change.version}" if change.version else ""
        origin = f" from {change.source}" if change.source not in {"", "url"} else ""
        output.line(f"{change.name}{version}{origin}: {would}{change.outcome} in {change.client}, {change.file}")
        if change.kept:
            output.note(f"the previous file is saved in {change.kept}")
        for todo in change.todo:
            output.hint(todo)


def _entry_variables(server: WorkspaceServer, given: list[str], *, ask: bool) -> list[str]:
    """Return the variables of an entry: those that were given, and of the shell's what the person wants; without `ask` these are only reported."""
    from mcpfactory_pipeline.checks.call_plan import api_variables, required_variables
    from mcpfactory_pipeline.delivery.clients.install import shell_variables, with_settings

    wanted = required_variables(server.folder) | dict.fromkeys(api_variables(server.folder).of_servers, False)
    found = shell_variables(server, wanted, os.environ, given)
    settings = dict(found.settings)
    if ask and sys.stdin.isatty() and sys.stderr.isatty():
        for name, value in found.settings.items():
            if not typer.confirm(f"Write {name}={value} into the configuration?", default=True, err=True):
                del settings[name]
    elif settings:
        names = " ".join(f"--env {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
        output.note(f"note: set in this shell but not written to the client: {', '.join(settings)}; hint: {names}")
        settings = {}
    if found.shared:
        output.note(
            "note: MCPFACTORY_BASE_URL is set in this shell but not written to the client; hint: "
            f"{_own_address(server, found.shared)}"
        )
    return with_settings(given, settings)


def _own_address(server: WorkspaceServer, url: str) -> str:
    from mcpfactory_pipeline.workspace.upstream import address_variable

    return f"--env {address_variable(server)}={url}"
