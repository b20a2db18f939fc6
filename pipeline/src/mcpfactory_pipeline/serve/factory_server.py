from __future__ import annotations

import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.serve import resources
from mcpfactory_pipeline.serve.operation_tools import OperationTools
from mcpfactory_pipeline.serve.read_tools import ReadTools
from mcpfactory_pipeline.serve.resources import FactoryResources
from mcpfactory_pipeline.serve.workspace_access import WorkspaceAccess
from mcpfactory_runtime import Server
from mcpfactory_runtime.auth import Authorization, AuthorizationError
from mcpfactory_runtime.server.auth_environment import SECRETS, read_auth_environment

if TYPE_CHECKING:
    from mcpfactory_runtime.oauth_proxy import OAuthProxy


_INSTRUCTIONS: Final = """\
This is a factory for MCP servers: it makes them from API documents, builds, tests and validates them, and promotes \
them from channel to channel. Start with `status` or `inbox`. `run` runs the stages of servers; `findings`, `log` and \
`diff` show the results. Tools that decide about channels ask a person first, and only work if the workspace's policy \
permits agents to decide. The prompts describe whole tasks. A command in a hint, such as `mcpfactory pipeline run \
NAME`, has a tool of the same name."""


def make_factory_server(root: Path, documents: Sequence[str] = (), *, local: bool = True) -> Server:
    """Return the server for the workspace at `root`.

    `documents` are further permitted sources of API documents. If `local` is False, callers use HTTP.
    """
    access = WorkspaceAccess(root, tuple(documents), local)
    server = Server(
        "mcpfactory",
        version=version("mcpfactory-pipeline"),
        title="mcpfactory",
        description="Makes, tests and promotes the MCP servers of a workspace.",
        instructions=_INSTRUCTIONS,
    )
    for part in (ReadTools(access), OperationTools(access), FactoryResources(access)):
        part.register(server)
    resources.register(server)
    return server


_LOOPBACK: Final = {"127.0.0.1", "localhost", "::1"}
_SHORTEST: Final = 16  # minimum characters of a token


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """HTTP address. `token` is `env:NAME` or `file:PATH`. `url` is the endpoint for clients."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    url: str = ""


def make_authorization(place: HttpAddress, environ: Mapping[str, str]) -> Authorization | OAuthProxy:
    """Return the authorization for an address.

    This includes loopback addresses, because all programs of this machine can reach them.

    Raises:
        ConfigError: the settings contradict each other, or nothing is configured.
    """
    try:
        issued = read_auth_environment(environ)
        if issued and place.token:
            raise ConfigError(
                "--token and MCPFACTORY_AUTH_* are both configured", hint="use either --token or MCPFACTORY_AUTH_*"
            )
        if issued:
            return issued
        if not place.token:
            raise ConfigError(
                "serve --http requires authorization: any program on this machine can reach the address",
                hint=(
                    "use --token env:NAME, or set MCPFACTORY_AUTH_PROVIDER, or MCPFACTORY_AUTH_ISSUER, _JWKS_URL and "
                    "_RESOURCE; without --http, only the client that starts `serve` can use it"
                ),
            )
        if place.host not in _LOOPBACK and not place.url:
            raise ConfigError(
                "--token requires --public-url on a non-loopback address",
                hint="pass the URL that clients use: --public-url https://mcp.example.com/mcp",
            )
        url = place.url or f"http://{'[::1]' if place.host == '::1' else place.host}:{place.port}/mcp"
        token = _token(place.token, environ)
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))

        def verify(given: str) -> Mapping[str, Any] | None:
            same = hmac.compare_digest(given.encode(), token.encode())
            return {"aud": made.resource, "sub": f"the holder of {place.token}"} if same else None

        made = Authorization(issuer=origin, resource=url, verify=verify)
    except (AuthorizationError, RuntimeError) as error:  # RuntimeError means that a library is missing
        message, _, hint = str(error).partition("\nhint: ")
        raise ConfigError(message, hint=hint) from None
    return made


def _token(reference: str, environ: Mapping[str, str]) -> str:
    kind, _, where = reference.partition(":")
    try:
        found = {"env": lambda: environ.get(where, ""), "file": lambda: Path(where).read_text(encoding="utf-8")}[
            kind
        ]().strip()
    except KeyError:
        raise ConfigError(
            "--token is not a valid reference", hint="use --token env:NAME or --token file:PATH, never the token itself"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token in {where} cannot be read: {error}", hint="use --token file:PATH") from error
    if len(found) < _SHORTEST:
        raise ConfigError(
            f"the token in {reference} is missing or too short: {len(found)} characters",
            hint=f"use {_SHORTEST} characters or more: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return found


def variables_hidden_from_children(place: HttpAddress | None) -> list[str]:
    """Return the environment variables with secrets of this address, to hide them from child processes."""
    if place is None:
        return []
    return [*SECRETS, *([place.token.removeprefix("env:")] if place.token.startswith("env:") else [])]


def listen(server: Server, place: HttpAddress | None, **options: Any) -> None:
    """Serve at `place`, or on stdio if `place` is None, until the input ends or a signal arrives.

    The `options` are passed to `HttpApp`.
    """
    if place is None:
        server.run_stdio()
        return
    auth = make_authorization(place, os.environ)
    # Child processes must not inherit the secrets.
    for name in variables_hidden_from_children(place):
        os.environ.pop(name, None)
    try:
        server.run_http(place.host, place.port, auth=auth, **options)
    except OSError as error:
        from mcpfactory_runtime.transports.http.serve import listening_hint  # noqa: PLC0415 - loads uvicorn, as run_http did

        raise ConfigError(
            f"cannot listen on {place.host}:{place.port}: {error.strerror}", hint=listening_hint(error)
        ) from error
