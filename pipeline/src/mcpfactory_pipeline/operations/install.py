from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import Field

from mcpfactory_pipeline.delivery.clients.config_files import UserPaths, read_user_paths
from mcpfactory_pipeline.operations.operation import (
    BY_PEOPLE,
    ConfirmedOperation,
    Omitted,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    param,
)
from mcpfactory_pipeline.workspace.coverage import inspection_report
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.clients.client_profiles import ClientProfile
    from mcpfactory_pipeline.delivery.clients.install import ClientChange, InstallTarget
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_TERMINAL: Final[Omitted] = {"dashboard": "clients are on the person's machine, not on that of the dashboard"}
_SECRETS: Final[Omitted] = {"mcp": "a person decides about values and tokens in configurations"}
_PRINTED: Final[Omitted] = {"mcp": "agents must not read people's configurations"}

Clients = Annotated[
    tuple[str, ...],
    param(
        "Change the configuration of this MCP client (repeatable)",
        examples=[["cursor"]],
        flags=("--client", "-c"),
        metavar="CLIENT",
        names="clients",
    ),
]
Project = Annotated[bool, param("Use the project configuration in this folder, not the user configuration")]


class ClientsResult(OperationResult):
    """Result of `install`: changes to clients' configurations, or a list of installed servers."""

    changes: tuple[dict[str, Any], ...] = Field(default=(), description="Change to the file of each client.")
    configuration: str = Field(default="", description="With `print`: the text to add by hand.")
    installed: tuple[dict[str, Any], ...] = Field(default=(), description="Without a server: the installed servers.")

    def lines(self) -> list[str]:
        """Return the configuration, or a line for each client."""
        return self.configuration.splitlines() or [_change_line(one, dry_run=self.dry_run) for one in self.changes]

    def notes(self) -> tuple[str, ...]:
        """Return the saved files, the remaining steps for each client, and the details."""
        kept = (f"the previous file is saved in {one['kept']}" for one in self.changes if one["kept"])
        todo = [f"hint: {todo}" for one in self.changes for todo in one["todo"]]
        if self.exit_code == Exit.NOT_FOUND:
            todo.append("hint: mcpfactory install --all lists the servers of each client")
        return (*kept, *todo, *self.details)

    @property
    def exit_code(self) -> Exit:
        """Return NEGATIVE for a stale, drifted or broken entry, and NOT_FOUND if no client had the removed entry."""
        if self.changes and all(one["outcome"] == "absent" for one in self.changes):
            return Exit.NOT_FOUND
        return (
            Exit.NEGATIVE if any(one["state"] in {"stale", "drifted", "broken"} for one in self.installed) else Exit.OK
        )


def _change_line(change: Mapping[str, Any], *, dry_run: bool) -> str:
    would = "would be " if dry_run and change["outcome"] not in {"unchanged", "absent"} else ""
    version = f" {change['version']}" if change["version"] else ""
    origin = f" from {change['source']}" if change["source"] not in {"", "url"} else ""
    return f"{change['name']}{version}{origin}: {would}{change['outcome']} in {change['client']}, {change['file']}"


class Install(ConfirmedOperation):
    """Add a server to the configuration of MCP clients.

    Other entries in the clients' files stay unchanged. Without NAME, list the workspace's servers that the
    configurations of the user and of this folder contain, and mark stale entries.
    """

    command: ClassVar[str] = "install"
    title: ClassVar[str] = "Install"
    result: ClassVar[type[OperationResult]] = ClientsResult
    question: ClassVar[str] = "Install {server}? {message}"
    omit: ClassVar[Omitted] = _TERMINAL

    server: str = param(
        "Server in this workspace, or server URL [default: list installed servers]",
        "",
        examples=["bookshop"],
        argument=True,
        metavar="NAME|URL",
        names="servers",
    )
    clients: Clients = ()
    name: str = param(
        "Use this name in the client [default: server name, or derived from the URL's host]", "", metavar="NAME"
    )
    source: str = param(
        "Channel, `index` (package index) or `source` (server folder) [default: last channel that offers the server, "
        "else `source`; with --project: `index` if published, else `source`]",
        "",
        flags=("--from",),
        metavar="SOURCE",
    )
    env: tuple[str, ...] = param(
        "Set a variable for the server; NAME alone refers to a variable of the client (repeatable)",
        (),
        metavar="NAME[=VALUE]",
        omit=_SECRETS,
    )
    literal: bool = param("Write values of --env in clear text even if they look like secrets", False, omit=_SECRETS)
    token_variable: str = param(
        "With a URL: read the bearer token from this environment variable", "", metavar="NAME", omit=_SECRETS
    )
    project: Project = False
    show: bool = param("Print the configuration; change nothing", False, flags=("--print",), omit=_PRINTED)
    force: bool = param(
        "Replace an entry that has the same name but starts another server",
        False,
        omit={"mcp": "a person decides about entries of other servers"},
    )
    everything: bool = param(
        "Without NAME: also list servers from outside this workspace", False, flags=("--all",), omit=_PRINTED
    )

    def run(self, context: OperationContext) -> ClientsResult:
        """Change the clients' files. If no server is named, list the installed servers."""
        from mcpfactory_pipeline.delivery.clients.install import client_config_snippet, install, select_clients

        home, project = read_user_paths(os.environ), Path.cwd() if self.project else None
        if not self.server:
            return self._installed(context, home)
        if not self.clients:
            raise OperationError("--client is missing", hint=f"mcpfactory install {self.server} --client CLIENT")
        rows = select_clients(self.clients)
        target, details = self._target(context, project)
        if self.show:
            texts = [client_config_snippet(row, target, home, project=project).rstrip("\n") for row in rows]
            return ClientsResult(message=target.name, configuration="\n".join(texts), details=details)
        if not context.dry_run:
            words = ((row.title, row.note, row.project_note if project else "") for row in rows)
            details += tuple(f"{title}: {' '.join(filter(None, more))}" for title, *more in words if any(more))
        return _changed(
            rows, partial(install, target=target, home=home, project=project, force=self.force), context, details
        )

    def _installed(self, context: OperationContext, home: UserPaths) -> ClientsResult:
        from mcpfactory_pipeline.delivery.clients.installed_servers import installed

        found = installed(context.place if self.everything else context.workspace, home, Path.cwd())
        rows = tuple(row.to_json() for row in found if self.everything or row.state != "other")
        none = "no client has a server of this workspace; hint: mcpfactory install NAME --client CLIENT"
        return ClientsResult(message=f"{len(rows)} entries", installed=rows, details=() if rows else (none,))

    def _target(self, context: OperationContext, project: Path | None) -> tuple[InstallTarget, tuple[str, ...]]:
        """Return the server to install, and notes about its variables and addresses."""
        from mcpfactory_pipeline.delivery.clients.install import remote_target, select_entry_variables, server_target

        by_person = context.access is not None and context.access.permits_private
        if "://" in self.server:
            if self.source or self.env:
                raise OperationError("--from and --env cannot be combined with a URL", hint="--token-variable NAME")
            if not by_person:
                raise OperationError(
                    "agents can install only servers of the workspace",
                    hint=f"ask a person to run 'mcpfactory install {self.server} --client CLIENT'",
                )
            return remote_target(self.server, name=self.name, variable=self.token_variable), ()
        if self.token_variable:
            raise OperationError("--token-variable needs a URL", hint="use --env NAME to pass a variable")
        server = context.workspace.server(self.server)
        environ = os.environ if by_person else {}  # agents must not learn which variables are set here
        env, notes = select_entry_variables(
            server, self.env, environ, None if self.project or self.show else context.ask
        )
        target = server_target(
            context.workspace,
            self.server,
            name=self.name,
            source=self.source,
            environ=env,
            literal=self.literal,
            project=project,
            ask=not context.dry_run,
        )
        return target, (*notes, *(() if self.show else _addresses(server, env)))


class Uninstall(Operation):
    """Remove a server from the configuration of MCP clients.

    Other entries in the files stay unchanged.
    """

    command: ClassVar[str] = "uninstall"
    title: ClassVar[str] = "Uninstall"
    result: ClassVar[type[OperationResult]] = ClientsResult
    idempotent: ClassVar[bool] = True
    omit: ClassVar[Omitted] = {**_TERMINAL, "mcp": BY_PEOPLE}

    name: str = param("Server name in the client", argument=True, metavar="NAME", names="servers")
    clients: Annotated[Clients, Field(min_length=1)]
    project: Project = False

    def run(self, context: OperationContext) -> ClientsResult:
        """Remove all entries, or none of them if an error occurs."""
        from mcpfactory_pipeline.delivery.clients.install import select_clients, uninstall

        project = Path.cwd() if self.project else None
        remove = partial(uninstall, name=self.name, home=read_user_paths(os.environ), project=project)
        return _changed(select_clients(self.clients), remove, context)


def _changed(
    rows: Sequence[ClientProfile],
    edit: Callable[..., ClientChange],
    context: OperationContext,
    details: tuple[str, ...] = (),
) -> ClientsResult:
    """Change the files of clients: all files, or no file if an error occurs."""
    changes = [edit(row, dry_run=True) for row in rows]
    if not context.dry_run:
        changes = [edit(row) for row in rows]
    made = tuple(one.to_json() for one in changes)
    message = "; ".join(_change_line(one, dry_run=context.dry_run) for one in made)
    return ClientsResult(message=message, changes=made, details=details, dry_run=context.dry_run)


def _addresses(server: WorkspaceServer, env: Sequence[str]) -> Iterator[str]:
    """Yield a message for each API address that is private or unreachable from the client's machine."""
    from mcpfactory_pipeline.workspace.api_addresses import api_addresses

    address = (inspection_report(server.folder) or {}).get("address")
    written = dict(one.split("=", 1) for one in env if "=" in one)
    for one in api_addresses(address, written, server=server.name, setting="--env") if address else ():
        if one.hint:
            yield f"warning: {one.message}\n  hint: {one.hint}"
        elif one.private_kind:
            yield f"note: {one.message}"
