"""Installation of a server into a client's configuration, and removal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_codegen.sources.translation_helpers import redacted
from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import JsonRecord, NotFoundError, RefusedError
from mcpfactory_pipeline.channels.contract import read_source_version
from mcpfactory_pipeline.decisions.drift import channel_drift_blockers, drift_blockers, drift_sentence, refresh_offer
from mcpfactory_pipeline.delivery.clients import config_edits
from mcpfactory_pipeline.delivery.clients.client_profiles import (
    CLIENTS,
    ClientConfigFile,
    ClientProfile,
    ConfigLayout,
    find_client,
)
from mcpfactory_pipeline.delivery.clients.config_files import (
    ClientConfigError,
    ConfigSyntaxError,
    UserPaths,
    backups,
    client_config_path,
    read_text,
    readable_by_others,
)
from mcpfactory_pipeline.delivery.clients.config_files import replace as replace_text
from mcpfactory_pipeline.delivery.clients.entry import ClientEntry, LaunchEntry, RemoteEntry, build_entry, merge_entry
from mcpfactory_pipeline.delivery.clients.installed_servers import entry_url, starts_server
from mcpfactory_pipeline.delivery.clients.launch_commands import SOURCE, entry_channel_and_version, launch
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.api_addresses import SHARED_ADDRESS, address_variable
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.upstream.secrets import SETTINGS
from mcpfactory_runtime.urls import split_web_url

_PLACES: Final = ("_FILE", "_PATH", "_DIR", "_URL")  # variables whose value is the location of a secret


def select_entry_variables(
    server: WorkspaceServer,
    given: Sequence[str],
    environ: Mapping[str, str],
    ask: Callable[[str, None], bool | None] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the variables for an entry (`NAME` or `NAME=VALUE`), and notes about omitted variables of the shell.

    Variables of the shell are added only if the user agrees, and secrets are never added. `ask` asks the user, or is
    None if nobody can answer.

    Raises:
        ClientConfigError: a value is a URL with a password.
    """
    from mcpfactory_pipeline.checks.call_plan import api_variables, required_variables  # noqa: PLC0415 - loads JSON Schema

    for one in given:
        name, _, value = one.partition("=")
        if _has_password(value):
            raise ClientConfigError(
                f"the value of {name} is a URL with a password, but a configuration file must not contain passwords",
                hint=(
                    f"remove the password from the URL, or use --env {name} if the client supports references to variables"
                ),
            )
    wanted = required_variables(server.folder) | dict.fromkeys(
        api_variables(server.folder).additional_server_variables, False
    )
    address, shared = address_variable(server), environ.get(SHARED_ADDRESS, "")
    if server.document is not None:
        wanted |= {f"{address.removesuffix('_BASE_URL')}_{name}": False for name in SETTINGS}
    decided = {one.partition("=")[0] for one in given}
    variables, left, notes = [*given], {}, []
    for name, secret in wanted.items():
        value = environ.get(name, "")
        if not value or name in decided or secret or is_secret_looking_variable(name, value):
            continue
        answer = ask(f"Write {name}={value} into the configuration?", None) if ask else None
        if answer is None:
            left[name] = f"--env {shlex.quote(f'{name}={value}')}"
        elif answer:
            variables.append(f"{name}={value}")
    if left:
        hint = f"hint: {' '.join(left.values())}"
        notes.append(f"note: set in this shell but not written to the client: {', '.join(left)}; {hint}")
    if shared and server.document is not None and address not in decided and not environ.get(address):
        hint = f"hint: --env {address}={'https://…' if _has_password(shared) else shared}"
        notes.append(f"note: {SHARED_ADDRESS} is set in this shell but not written to the client; {hint}")
    return variables, notes


def is_secret_looking_variable(name: str, value: str) -> bool:
    """Return True if the name or the value of a variable looks like a secret."""
    named = is_secret(name) and not name.upper().endswith(_PLACES)
    return named or _has_password(value) or redacted(value, pairs=False) != value


def _has_password(value: str) -> bool:
    try:
        return urlsplit(value).password is not None
    except ValueError:
        return False


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """A server to install.

    Attributes:
        reached: the program to start, or the URL to connect to.
        source: channel, `index`, `source`, or `url`.
        recognizes: returns True if an existing entry belongs to this server.
    """

    name: str
    reached: LaunchEntry | RemoteEntry
    source: str
    recognizes: Callable[[Mapping[str, Any]], bool]
    version: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def holds_secret(self) -> bool:
        """Return True if a plain-text value looks like a secret."""
        literals = self.reached.literals if isinstance(self.reached, LaunchEntry) else {}
        return any(is_secret_looking_variable(variable, value) for variable, value in literals.items())


@dataclass(frozen=True, slots=True)
class ClientChange(JsonRecord):
    """A change of a client's file, or a planned change.

    Attributes:
        outcome: installed, updated, unchanged, removed or absent.
        kept: path of the backup; None if the file is new or unchanged.
    """

    client: str
    file: str
    name: str
    outcome: str
    kept: str | None = None
    entry: Mapping[str, Any] | None = None
    todo: tuple[str, ...] = ()
    source: str = ""
    version: str = ""


def select_clients(names: Sequence[str]) -> list[ClientProfile]:
    """Return the clients with the given IDs, without duplicates."""
    found = []
    for name in dict.fromkeys(names):
        row = find_client(name)
        if row is None:
            raise NotFoundError(
                f"unknown client {name!r}", hint=did_you_mean(name, [one.id for one in CLIENTS], "clients")
            )
        found.append(row)
    return found


def server_target(
    workspace: Workspace,
    server: str,
    *,
    name: str = "",
    source: str = "",
    environ: Sequence[str] = (),
    literal: bool = False,
    project: Path | None = None,
    ask: bool = True,
) -> InstallTarget:
    """Return a server of the workspace as an install target.

    `environ` has `NAME=VALUE` for a value, or `NAME` for a reference to a variable of the client. `literal` allows
    values that look like secrets. With `ask`, the current offer of a server at a URL is queried.

    Raises:
        ClientConfigError: the source does not offer the server, or the entry would contain a secret.
        RefusedError: the server at a URL differs from its adopted version, or does not respond.
    """
    one = workspace.server(server)
    if one.adopted is not None and one.adopted.url:
        return _adopted_url(workspace, one, one.adopted.url, name, source, given=bool(environ), ask=ask)
    reached, source, version = launch(workspace, one, source, project=project)
    reached = _with_variables(reached, environ, literal=literal)
    warnings = tuple(blocker.message for blocker in drift_blockers(one, Store(workspace).state(server)))
    recognizes = partial(starts_server, workspace=workspace, server=one)
    return InstallTarget(_checked(name or server), reached, source, recognizes, version, warnings)


def _with_variables(reached: LaunchEntry, environ: Sequence[str], *, literal: bool) -> LaunchEntry:
    literals, variables = dict(reached.literals), list(reached.variables)
    for pair in environ:
        variable, equals, value = pair.partition("=")
        if not _VARIABLE.fullmatch(variable):
            raise ClientConfigError(
                f"--env {variable!r} is not a valid variable name", hint="use --env NAME=VALUE or --env NAME"
            )
        if equals and variable in reached.variables:
            raise ClientConfigError(
                f"{variable} contains a secret, which must not be in a configuration file",
                hint=f"leave out --env {variable}=…, because the entry already refers to this variable",
            )
        if equals and not literal and is_secret_looking_variable(variable, value):
            raise ClientConfigError(
                f"the value of {variable} looks like a secret, which must not be in a configuration file",
                hint=(
                    f"use --env {variable} to refer to the variable if the client supports it, or --literal to "
                    "write the value"
                ),
            )
        if equals:
            literals[variable] = value
        elif variable not in variables:
            variables.append(variable)
    plain = tuple(variable for variable in reached.plain if variable not in {*literals, *variables})
    return replace(reached, literals=literals, variables=tuple(variables), plain=plain)


def _adopted_url(
    workspace: Workspace, server: WorkspaceServer, url: str, name: str, source: str, *, given: bool, ask: bool
) -> InstallTarget:
    """Return an adopted server at a URL as an install target."""
    if given:
        raise ClientConfigError(
            f"{server.name} runs at {url}, but variables can be set only for a local process", hint="leave out --env"
        )
    if ask:
        refresh_offer(server, "installed")
    channel, version = entry_channel_and_version(workspace, server, source, None) if source != SOURCE else ("", "")
    state = Store(workspace).state(server.name)
    if drift := channel_drift_blockers(workspace, server, state, channel):
        raise RefusedError(drift_sentence(server, drift[0]), hint=drift[0].command)
    version = version or read_source_version(server)
    return InstallTarget(
        _checked(name or server.name),
        RemoteEntry(url),
        channel or SOURCE,
        lambda entry: entry_url(entry) == url,
        version,
    )


def remote_target(url: str, *, name: str = "", variable: str = "") -> InstallTarget:
    """Return a server at a URL as an install target."""
    parts = split_web_url(url)
    if parts is None or parts.hostname is None:
        raise ClientConfigError(f"{url} is not a valid http or https URL", hint="https://host/mcp")
    if parts.username is not None or parts.password is not None:
        raise ClientConfigError(
            "the URL contains a password, but a configuration file must not contain passwords",
            hint="--token-variable NAME",
        )
    if variable and not _VARIABLE.fullmatch(variable):
        raise ClientConfigError(
            "--token-variable takes the name of a variable, not a token", hint="--token-variable API_TOKEN"
        )
    guess = re.sub(r"[^A-Za-z0-9]+", "-", parts.hostname.removeprefix("www.").removeprefix("mcp.")).strip("-")
    return InstallTarget(
        _checked(name or guess[:64]), RemoteEntry(url, variable), "url", lambda entry: entry_url(entry) == url
    )


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ClientConfigError(
            f"{name!r} is not a valid name in every client", hint="use --name with letters, digits, - and _"
        )
    return name


def install(
    row: ClientProfile,
    target: InstallTarget,
    home: UserPaths,
    *,
    project: Path | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> ClientChange:
    """Insert a server into a client's configuration. The rest of the file stays unchanged, byte for byte.

    `force` replaces an entry with the same name that belongs to another server.
    """
    file, config = client_config_path(row, home, project)
    text = read_text(file)
    data = _data(file, text, config)
    form = config_edits.detect_layout(data, row.forms)
    built = _entry(row, form, target, home, project)
    before = config_edits.entries(data, form, config).get(target.name)
    ours = before is None or target.recognizes(before)
    if not ours and not force:
        raise ClientConfigError(
            f"{target.name} in {file} is an entry for another server, and mcpfactory did not write this entry",
            hint="use --name NAME to install this server under another name, or --force to replace the entry",
        )
    entry = merge_entry(before if ours else None, built.value, form)
    try:
        after = config_edits.install(text, config, form, target.name, entry)
    except ConfigSyntaxError as error:
        raise _refused(file, error) from error
    outcome = "installed" if before is None else "unchanged" if after == text else "updated"
    private = target.holds_secret or (project is None and text is None)
    closed = target.holds_secret and text is not None and readable_by_others(file)
    kept = None if dry_run or after == text else replace_text(file, text, after, home, private=private)
    todo = [*built.todo, *target.warnings]
    if closed:
        todo.append(f"{file} is now readable only by its owner, because it contains a secret")
    done = (target.name, outcome, str(kept) if kept else None, entry)
    return ClientChange(row.id, str(file), *done, tuple(todo), target.source, target.version)


def uninstall(
    row: ClientProfile, name: str, home: UserPaths, *, project: Path | None = None, dry_run: bool = False
) -> ClientChange:
    """Remove a server from a client's configuration. The rest of the file stays unchanged, byte for byte."""
    file, config = client_config_path(row, home, project)
    text = read_text(file)
    data = _data(file, text, config)
    form = config_edits.detect_layout(data, row.forms)
    if text is None or name not in config_edits.entries(data, form, config):
        return ClientChange(row.id, str(file), name, "absent")
    try:
        after = config_edits.uninstall(text, config, form, name, backups=backups(file, home))
    except ConfigSyntaxError as error:
        raise _refused(file, error) from error
    kept = None if dry_run else replace_text(file, text, after, home)
    return ClientChange(row.id, str(file), name, "removed", str(kept) if kept else None)


def client_config_snippet(
    row: ClientProfile, target: InstallTarget, home: UserPaths, *, project: Path | None = None
) -> str:
    """Return a client configuration that contains only this server."""
    _, config = client_config_path(row, home, project)
    built = _entry(row, row.forms[0], target, home, project)
    return config_edits.install(None, config, row.forms[0], target.name, built.value)


def _entry(
    row: ClientProfile, form: ConfigLayout, target: InstallTarget, home: UserPaths, project: Path | None
) -> ClientEntry:
    return build_entry(row, form, target.name, target.reached, secrets=home.secrets, shared=project is not None)


def _data(file: Path, text: str | None, config: ClientConfigFile) -> Any:
    try:
        return config_edits.read(config.blank if text is None else text, config)
    except ConfigSyntaxError as error:
        raise _refused(file, error) from error


def _refused(file: Path, error: ConfigSyntaxError) -> ClientConfigError:
    return ClientConfigError(
        f"{file} cannot be changed: {error}",
        hint="correct the file, which was not changed, or add the output of --print by hand",
    )
