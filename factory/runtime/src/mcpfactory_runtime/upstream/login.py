"""Login to and logout from the API behind a server, by `mcpfactory login` or `python -m my_server login`."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from mcpfactory_runtime.oauth.grants import GrantContext, Tokens, authorization_code_grant, device_code_grant
from mcpfactory_runtime.oauth.loopback import Loopback
from mcpfactory_runtime.oauth.steps_and_metadata import AuthorizationServer, OAuthError, Steps, Visit
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.client import Upstream
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS, TokenManager

_PORT: Final = 33418  # default port; constant, because the redirect URI is registered


def run(name: str, upstreams: Sequence[Upstream], arguments: Sequence[str]) -> NoReturn:
    """Run `login …` or `logout …` and exit with status 0 (success), 1 (refused) or 2 (invalid command line)."""
    parser = ArgumentParser(prog=name, description="Log in to, or log out of, the API behind this server.")
    commands = parser.add_subparsers(dest="command", required=True)
    login, logout = commands.add_parser("login"), commands.add_parser("logout")
    for one in (login, logout):
        one.add_argument("--scheme", default="", help="log in with this security scheme, if the API has several")
    login.add_argument(
        "--scope", action="append", help="request this scope (repeatable) [default: the scopes of all tools]"
    )
    login.add_argument(
        "--port", type=int, default=_PORT, help="receive the login result on this local port [default: %(default)s]"
    )
    login.add_argument("--no-browser", action="store_true", help="print the login URL instead of opening a browser")
    login.add_argument("--device", action="store_true", help="log in on another device by typing a code")
    options = parser.parse_args(arguments)
    try:
        manager, upstream = _find(upstreams, options.scheme)
        said = asyncio.run(_execute(manager, upstream, options))
    except (OAuthError, ToolError) as error:
        code = f" ({error.code})" if isinstance(error, OAuthError) else ""
        sys.stderr.write(f"error{code}: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    _print(said)
    sys.exit(0)


async def log_in(
    manager: TokenManager,
    *,
    visit: Callable[[Visit], Any],
    redirect_uri: str,
    scopes: Sequence[str] | None = None,
    device: bool = False,
) -> tuple[str, ...]:
    """Let the user authorize the server, and store the tokens. Return the scopes of the token.

    `visit` shows a page and returns the URL to which the browser was redirected. If `device` is True, a device code is
    used even if the scheme has another login. If `scopes` is None, the scopes of all tools are requested.
    """
    kinds = ("deviceAuthorization", "discovery") if device else LOGIN_GRANTS
    flow = manager.flow(*kinds)
    if flow is None:
        raise OAuthError("no_login", f"the scheme {manager.scheme.name!r} has no {'device ' if device else ''}login")
    client_id = manager.client_id
    if not client_id:
        raise OAuthError(
            "no_registration",
            f"{manager.scheme.variables[1]} is not set\nhint: register a client at the API's authorization "
            f"server, with the redirect URI {redirect_uri}, and set the variable",
        )
    server = await manager.server(flow)
    by_code_possible = bool(server.authorization_endpoint)
    if not by_code_possible and not server.device_endpoint:
        raise OAuthError("bad_metadata", f"{server.name} has neither an authorization nor a device endpoint")
    asked = _scopes(manager, server, scopes)

    def steps(context: GrantContext) -> Steps[Tokens]:
        if device or not by_code_possible:
            return device_code_grant(context, asked)
        return authorization_code_grant(context, redirect_uri, asked)

    tokens = await manager.exchange(steps, server, client_id, visit=visit)
    granted = asked if tokens.scopes is None else tokens.scopes
    await manager.save_login(tokens, granted, client_id)
    return granted


async def _execute(manager: TokenManager, upstream: Upstream, options: Namespace) -> str:
    scheme = manager.scheme.name
    if options.command == "logout":
        return f"logged out of {scheme}" if await manager.delete_login() else f"there was no login for {scheme}"
    loopback = Loopback(options.port, _print_url if options.no_browser else _open_browser)

    async def visit(page: Visit) -> str:
        if page.code:
            _print(f"Open {page.url} on any device and type {page.code}")
            return ""
        return await loopback(page.url)

    async with upstream:
        scopes = await log_in(
            manager, visit=visit, redirect_uri=loopback.redirect_uri, scopes=options.scope, device=options.device
        )
    return f"logged in with {scheme}; scopes: {' '.join(scopes) or 'the default ones'}"


def _find(upstreams: Sequence[Upstream], scheme: str) -> tuple[TokenManager, Upstream]:
    """Return the token manager of `scheme`, or of the only scheme with a login if `scheme` is ""."""
    able = [
        (manager, upstream)
        for upstream in upstreams
        for manager in upstream.token_managers.values()
        if manager.flow(*LOGIN_GRANTS) is not None
    ]
    chosen = [pair for pair in able if scheme in ("", pair[0].scheme.name)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(sorted(manager.scheme.name for manager, _ in able))
    if not able:
        raise OAuthError(
            "no_login",
            "no scheme of this API has a login\nhint: `mcpfactory doctor` shows which credentials it needs",
        )
    raise OAuthError("no_login", f"the scheme is unknown or ambiguous\nhint: set --scheme to one of {names}")


def _scopes(manager: TokenManager, server: AuthorizationServer, chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the chosen scopes. None stands for the scopes of all tools, of OpenID Connect and of long-lived logins."""
    if chosen is not None:
        return tuple(chosen)
    more = [scope for scope in ("openid", "offline_access") if scope in server.scopes]
    return tuple(dict.fromkeys((*manager.scheme.scopes, *more)))


def _open_browser(url: str) -> None:
    if not webbrowser.open(url):
        _print_url(url)


def _print_url(url: str) -> None:
    _print(f"Open this page in a browser on this machine:\n{url}")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
