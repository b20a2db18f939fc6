"""What a shell has set for a server, and what of it a client's configuration may hold: settings in clear text, secrets never."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_codegen.credentials.names import is_secret
from mcpfactory_codegen.sources.secrets import redacted
from mcpfactory_pipeline.clients.errors import ClientError
from mcpfactory_pipeline.workspace.address import SHARED_ADDRESS, address_variable
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.upstream.settings import SETTINGS

__all__ = ["ShellVariables", "looks_secret", "shell_variables", "with_settings"]


_PLACES: Final = ("_FILE", "_PATH", "_DIR", "_URL")  # where a secret is, not what it is


@dataclass(frozen=True, slots=True)
class ShellVariables:
    """What is set: `settings` may be written as they are, `secrets` are names alone. `shared` is the address of no server's own."""

    settings: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    shared: str = ""


def shell_variables(
    server: WorkspaceServer, wanted: Mapping[str, bool], environ: Mapping[str, str], given: Sequence[str] = ()
) -> ShellVariables:
    """Return the variables of a server that are set and not given otherwise. Pure.

    Args:
        server: whose.
        wanted: what its report names, and whether it is a secret.
        environ: of the shell.
        given: `NAME` or `NAME=VALUE`, as on the command line.
    """
    address = address_variable(server)
    prefix = address.removesuffix("_BASE_URL")
    names = {**wanted, **{f"{prefix}_{name}": False for name in SETTINGS}} if server.document is not None else wanted
    decided = {one.partition("=")[0] for one in given}
    there = {name: environ[name] for name in names if environ.get(name) and name not in decided}
    secrets = tuple(name for name, value in there.items() if names[name] or looks_secret(name, value))
    shared = environ.get(SHARED_ADDRESS, "")
    if server.document is None or address in {*there, *decided}:
        shared = ""
    elif _has_password(shared):
        shared = "https://…"
    return ShellVariables({name: value for name, value in there.items() if name not in secrets}, secrets, shared)


def with_settings(given: Sequence[str], settings: Mapping[str, str] | None = None) -> list[str]:
    """Return `NAME` and `NAME=VALUE` for an entry: what was given, and these settings.

    Raises:
        ClientError: a value is a URL with a password.
    """
    for one in given:
        name, _, value = one.partition("=")
        if _has_password(value):
            raise ClientError(
                f"the value of {name} is a URL with a password, and a secret does not belong in a configuration",
                hint=f"leave the password out; or --env {name}, which refers to the variable where the client can",
            )
    return [*given, *(f"{name}={value}" for name, value in (settings or {}).items())]


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name, or by a value of the form of a token or with a password in it."""
    named = is_secret(name) and not name.upper().endswith(_PLACES)
    return named or _has_password(value) or redacted(value, pairs=False) != value


def _has_password(value: str) -> bool:
    try:
        return urlsplit(value).password is not None
    except ValueError:
        return False
