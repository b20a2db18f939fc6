"""Entries for servers in client configurations. An entry contains references to secrets, but never the secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.delivery.clients.client_profiles import ClientProfile, ConfigLayout
from mcpfactory_pipeline.delivery.clients.config_files import ClientConfigError

# Placeholder in arguments for the project folder.
PROJECT: Final = "<project>"
# Suffix of a variable whose value is the path of a secret file.
_FILE: Final = "_FILE"
_DROP: Final = object()


@dataclass(frozen=True, slots=True)
class LaunchEntry:
    """A program that a client starts.

    Attributes:
        path: location of the program on this machine.
        variables: names of secret variables.
        plain: names of other variables that the program reads.
        literals: variables with values.
        before: arguments that precede `arguments` if the program is started by its path.
    """

    program: str
    path: str
    arguments: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    literals: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """A URL that a client connects to. `variable` is the environment variable with the bearer token, or ""."""

    url: str
    variable: str = ""


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """An entry, and tasks for the user, one sentence each."""

    value: Mapping[str, Any]
    todo: tuple[str, ...]


def build_entry(
    client: ClientProfile,
    form: ConfigLayout,
    name: str,
    target: LaunchEntry | RemoteEntry,
    *,
    secrets: Path,
    shared: bool = False,
) -> ClientEntry:
    """Return the entry of a server for a client.

    `secrets` is the folder for secret files. Secret files are for clients that cannot refer to environment variables. A
    `shared` entry contains program names instead of paths.
    """
    if isinstance(target, RemoteEntry):
        return _remote(client, form, name, target)
    program, arguments, todo = _command_line(client, target, shared=shared)
    variables = (*target.plain, *target.variables)
    references: dict[str, str] = {}
    taken = [f"{client.title} takes {variable} from its environment" for variable in variables]
    if client.reference is not None:
        references = {variable: client.reference.replace("VAR", variable) for variable in variables}
    elif "<names>" not in form.stdio.values() and not shared:  # the entry refers to one private file per secret
        references = {variable + _FILE: str(secrets / variable) for variable in target.variables}
        taken = [f"{client.title} cannot refer to {variable}: --env {variable}=VALUE" for variable in target.plain]
        taken += [f"put the value of {one} into {secrets / one} (mode 600)" for one in target.variables]
    words = {
        "<command>": program,
        "<args>": arguments,
        "<command line>": [program, *arguments],
        "<env>": {**references, **target.literals} or _DROP,
        "<literals>": dict(target.literals) or _DROP,
        "<names>": list(variables) or _DROP,
        "<name>": name,
    }
    return ClientEntry(_fill(form.stdio, words), (*todo, *taken))


def _command_line(
    client: ClientProfile, target: LaunchEntry, *, shared: bool
) -> tuple[str, list[str], tuple[str, ...]]:
    if not shared:
        return target.path, [*target.before, *target.arguments], target.todo
    if client.folder is None and any(PROJECT in argument for argument in target.arguments):
        raise ClientConfigError(
            f"{client.title} does not start servers in the project's folder, and has no placeholder for this folder",
            hint="publish the server and install it with --from index, or leave out --project",
        )
    arguments = [argument.replace(PROJECT, client.folder or "") for argument in target.arguments]
    where = f"the PATH of the desktop, which {client.title} has" if client.gui else "the PATH"
    return target.program, arguments, (f"everybody needs {target.program} on {where}",)


def _remote(client: ClientProfile, form: ConfigLayout, name: str, target: RemoteEntry) -> ClientEntry:
    if form.http is None:
        raise ClientConfigError(
            f"{client.title} does not support servers at a URL",
            hint=client.note or "install a server of a workspace",
        )
    by_name = {"<token variable>", "<names>"} & {word for word in form.http.values() if isinstance(word, str)}
    if target.variable and client.header is None and not by_name:
        raise ClientConfigError(
            f"{client.title} cannot read {target.variable} for a header, and the configuration file must not contain a secret",
            hint="leave out --token-variable if the server supports OAuth login",
        )
    headers: Any = _DROP
    if target.variable and client.header is not None:
        headers = {"Authorization": client.header.replace("VAR", target.variable)}
    words = {
        "<url>": target.url,
        "<headers>": headers,
        "<token variable>": target.variable or _DROP,
        "<names>": [target.variable] if target.variable else _DROP,
        "<name>": name,
    }
    todo = (f"{client.title} takes {target.variable} from its environment",) if target.variable else ()
    return ClientEntry(_fill(form.http, words), todo)


def _fill(shape: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, word in shape.items():
        value = (
            _fill(word, words)
            if isinstance(word, Mapping)
            else words.get(word, word)
            if isinstance(word, str)
            else word
        )
        if value is _DROP or (isinstance(word, Mapping) and not value):
            continue
        filled[key] = list(value) if isinstance(value, list) else value
    return filled


def merge_entry(before: Mapping[str, Any] | None, entry: Mapping[str, Any], form: ConfigLayout) -> dict[str, Any]:
    """Return a new entry that keeps the user's changes to the existing entry.

    The new entry keeps unknown keys, changed switches and numbers, additional variables, and values that replace a
    reference.
    """
    if before is None:
        return dict(entry)
    ours = {*form.stdio, *(form.http or {})}
    kept = {key: value for key, value in before.items() if key not in ours}
    kept |= {key: before[key] for key in entry if key in before and isinstance(entry[key], bool | int)}
    variables = {
        key: {**entry[key], **_owner_variables(before[key], entry[key])}
        for key in entry
        if isinstance(entry[key], dict) and isinstance(before.get(key), dict)
    }
    return {**entry, **variables, **kept}


def _owner_variables(before: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in before.items() if not (key in ours and key.endswith(_FILE))}
