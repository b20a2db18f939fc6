"""Add servers to the configuration of MCP clients, and remove them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import Field

from mcpfactory_pipeline.operations.operation import (
    BY_PEOPLE,
    ConfirmedOperation,
    Omitted,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    Param,
)
from mcpfactory_pipeline.workspace.coverage import inspection_report
from mcpfactory_pipeline.workspace.upstream import address_variable, api_addresses
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.clients.install import InstallTarget
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_TERMINAL: Final[Omitted] = {"dashboard": "clients are on the machine of a person, not of the dashboard"}
_SECRETS: Final[Omitted] = {"mcp": "a person decides about values and tokens in configurations"}
_PRINTED: Final[Omitted] = {"mcp": "an agent is not given configurations of people"}

Clients = Annotated[
    tuple[str, ...],
    Field(description="MCP client (repeatable)", examples=[["cursor"]]),
    Param(flags=("--client", "-c"), metavar="CLIENT", names="clients"),
]
Project = Annotated[bool, Field(description="Use the project's configuration in this folder instead of the user's")]


class ClientsResult(OperationResult):
    """Changes of clients' configurations, or the servers that clients have."""

    changes: tuple[dict[str, Any], ...] = Field(default=(), description="The change of each client's file.")
    configuration: str = Field(default="", description="With `print`: the text to write by hand.")
    installed: tuple[dict[str, Any], ...] = Field(default=(), description="Without a server: those that clients have.")

    def lines(self) -> list[str]:
        """Return the configuration, or a line for each client."""
        return self.configuration.splitlines() or [_change_line(one, dry_run=self.dry_run) for one in self.changes]

    def notes(self) -> tuple[str, ...]:
        """Return what is left to do for each client, and the details."""
        kept = (f"the previous file is saved in {one['kept']}" for one in self.changes if one["kept"])
        return (*kept, *(f"hint: {todo}" for one in self.changes for todo in one["todo"]), *self.details)

    @property
    def exit_code(self) -> Exit:
        """Return NO if a client has a stale server, and NOT_FOUND if there was none to remove."""
        if self.changes and all(one["outcome"] == "absent" for one in self.changes):
            return Exit.NOT_FOUND
        return Exit.NO if any(one["state"] in {"stale", "drifted", "broken"} for one in self.installed) else Exit.OK


def _change_line(change: Mapping[str, Any], *, dry_run: bool) -> str:
    would = "would be " if dry_run and change["outcome"] not in {"unchanged", "absent"} else ""
    version = f" {change['version']}" if change["version"] else ""
    origin = f" from {change['source']}" if change["source"] not in {"", "url"} else ""
    return f"{change['name']}{version}{origin}: {would}{change['outcome']} in {change['client']}, {change['file']}"


class Install(ConfirmedOperation):
    """Add a server to the configuration of MCP clients.

    Other entries in the files stay unchanged. Without NAME, list the clients that have servers of this workspace, for
    the user and in this folder, and which entries are stale.
    """

    command: ClassVar[str] = "install"
    title: ClassVar[str] = "Install"
    result: ClassVar[type[OperationResult]] = ClientsResult
    question: ClassVar[str] = "Install {server}? {message}"
    omit: ClassVar[Omitted] = _TERMINAL

    server: Annotated[
        str,
        Field(
            description="Server in this workspace, or server URL [default: list installed servers]",
            examples=["bookshop"],
        ),
        Param(argument=True, metavar="NAME|URL", names="servers"),
    ] = ""
    clients: Clients = ()
    name: Annotated[
        str,
        Field(description="Name in the client [default: server name, or made from the host]"),
        Param(metavar="NAME"),
    ] = ""
    source: Annotated[
        str,
        Field(
            description="Channel, `index` (package index) or `source` (its folder here) [default: the last channel that "
            "offers it, else its folder; with --project: the index if published, else its folder in the project]"
        ),
        Param(flags=("--from",), metavar="SOURCE"),
    ] = ""
    env: Annotated[
        tuple[str, ...],
        Field(description="Environment variable; without VALUE, a reference to it (repeatable)"),
        Param(metavar="NAME[=VALUE]", omit=_SECRETS),
    ] = ()
    literal: Annotated[
        bool,
        Field(description="Also write values of --env that look like secrets, in clear text"),
        Param(omit=_SECRETS),
    ] = False
    token_variable: Annotated[
        str,
        Field(description="With a URL: environment variable with the bearer token"),
        Param(metavar="NAME", omit=_SECRETS),
    ] = ""
    project: Project = False
    show: Annotated[
        bool, Field(description="Print the configuration; change nothing"), Param(flags=("--print",), omit=_PRINTED)
    ] = False
    force: Annotated[
        bool,
        Field(description="Replace an entry of another server with the same name"),
        Param(omit={"mcp": "an entry of another server is a person's"}),
    ] = False
    everything: Annotated[
        bool,
        Field(description="Without NAME: also list servers from outside this workspace"),
        Param(flags=("--all",), omit=_PRINTED),
    ] = False

    def run(self, context: OperationContext) -> ClientsResult:
        """Change the clients' files, all or none; without a server, list what they have."""
        from mcpfactory_pipeline.delivery.clients.files import this_machine  # noqa: PLC0415 - loads editors of all formats
        from mcpfactory_pipeline.delivery.clients.install import install, select_clients, snippet  # noqa: PLC0415 - as above

        home, project = this_machine(os.environ), Path.cwd() if self.project else None
        if not self.server:
            return self._installed(context)
        if not self.clients:
            raise OperationError("--client is missing", hint=f"mcpfactory install {self.server} --client CLIENT")
        rows = select_clients(self.clients)
        target, details = self._target(context, project)
        if self.show:
            texts = (snippet(row, target, home, project=project).rstrip("\n") for row in rows)
            return ClientsResult(
                message=f"configuration of {target.name}", configuration="\n".join(texts), details=details
            )
        changes = [install(row, target, home, project=project, dry_run=True, force=self.force) for row in rows]
        if not context.dry_run:  # all of them, or none
            changes = [install(row, target, home, project=project, force=self.force) for row in rows]
            words = ((row.title, row.note, row.project_note if project else "") for row in rows)
            details += tuple(f"{title}: {' '.join(filter(None, more))}" for title, *more in words if any(more))
        made = tuple(one.to_json() for one in changes)
        message = "; ".join(_change_line(one, dry_run=context.dry_run) for one in made)
        return ClientsResult(message=message, changes=made, details=details, dry_run=context.dry_run)

    def _installed(self, context: OperationContext) -> ClientsResult:
        from mcpfactory_pipeline.delivery.clients.files import this_machine  # noqa: PLC0415 - as in `run`
        from mcpfactory_pipeline.delivery.clients.installed import installed  # noqa: PLC0415 - as in `run`

        workspace = context.place if self.everything else context.workspace
        found = installed(workspace, this_machine(os.environ), Path.cwd())
        rows = tuple(row.to_json() for row in found if self.everything or row.state != "other")
        none = "no client has a server of this workspace; hint: mcpfactory install NAME --client CLIENT"
        return ClientsResult(message=f"{len(rows)} entries", installed=rows, details=() if rows else (none,))

    def _target(self, context: OperationContext, project: Path | None) -> tuple[InstallTarget, tuple[str, ...]]:
        """Return the server to install, and what to know about its variables and addresses."""
        from mcpfactory_pipeline.delivery.clients.install import remote_target, server_target  # noqa: PLC0415 - as in `run`

        if "://" in self.server:
            if self.source or self.env:
                raise OperationError("--from and --env cannot be combined with a URL", hint="--token-variable NAME")
            if context.access is None or not context.access.permits_private:
                raise OperationError(
                    "agents install servers of the workspace only",
                    hint=f"ask a person: mcpfactory install {self.server} --client CLIENT",
                )
            return remote_target(self.server, name=self.name, variable=self.token_variable), ()
        if self.token_variable:
            raise OperationError("--token-variable needs a URL", hint="use --env NAME to pass a variable")
        server = context.workspace.server(self.server)
        asks = None if self.project or self.show else context.ask
        env, notes = _entry_variables(server, self.env, asks)
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

    name: Annotated[
        str, Field(description="Server name in the client"), Param(argument=True, metavar="NAME", names="servers")
    ]
    clients: Annotated[Clients, Field(min_length=1)]
    project: Project = False

    def run(self, context: OperationContext) -> ClientsResult:
        """Remove the entries, all or none."""
        from mcpfactory_pipeline.delivery.clients.files import this_machine  # noqa: PLC0415 - loads editors of all formats
        from mcpfactory_pipeline.delivery.clients.install import select_clients, uninstall  # noqa: PLC0415 - as above

        home, folder = this_machine(os.environ), Path.cwd() if self.project else None
        rows = select_clients(self.clients)
        changes = [uninstall(row, self.name, home, project=folder, dry_run=True) for row in rows]
        if not context.dry_run:
            changes = [uninstall(row, self.name, home, project=folder) for row in rows]
        made = tuple(one.to_json() for one in changes)
        absent = all(one.outcome == "absent" for one in changes)
        details = ("hint: mcpfactory install --all lists the servers of each client",) if absent else ()
        message = "; ".join(_change_line(one, dry_run=context.dry_run) for one in made)
        return ClientsResult(message=message, changes=made, details=details, dry_run=context.dry_run)


def _entry_variables(
    server: WorkspaceServer, given: Sequence[str], ask: Callable[[str, None], bool | None] | None
) -> tuple[list[str], tuple[str, ...]]:
    """Return the variables of an entry: those that were given, and of the shell's what the person wants; and notes."""
    from mcpfactory_pipeline.checks.call_plan import api_variables, required_variables  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.delivery.clients.install import shell_variables, with_settings  # noqa: PLC0415 - heavy

    wanted = required_variables(server.folder) | dict.fromkeys(api_variables(server.folder).of_servers, False)
    found = shell_variables(server, wanted, os.environ, given)
    chosen, left = {}, []
    for name, value in found.settings.items():
        answer = ask(f"Write {name}={value} into the configuration?", None) if ask else None
        if answer:
            chosen[name] = value
        elif answer is None:
            left.append(name)
    notes = []
    if left:
        options = " ".join(f"--env {shlex.quote(f'{name}={found.settings[name]}')}" for name in left)
        notes.append(f"note: set in this shell but not written to the client: {', '.join(left)}; hint: {options}")
    if found.shared:
        hint = f"--env {address_variable(server)}={found.shared}"
        notes.append(f"note: MCPFACTORY_BASE_URL is set in this shell but not written to the client; hint: {hint}")
    return with_settings(given, chosen), tuple(notes)


def _addresses(server: WorkspaceServer, env: Sequence[str]) -> Iterator[str]:
    """Yield the API addresses that are private, or that the server cannot call when the client starts it."""
    address = (inspection_report(server.folder) or {}).get("address")
    written = dict(one.split("=", 1) for one in env if "=" in one)
    for one in api_addresses(address, written, server=server.name, setting="--env") if address else ():
        if one.hint:
            yield f"warning: {one.message}\n  hint: {one.hint}"
        elif one.nature:
            yield f"note: {one.message}"
