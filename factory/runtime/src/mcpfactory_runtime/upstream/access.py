"""Credentials of APIs that want OAuth: which tokens a call needs, and what happens when the API refuses one.

Loaded only for servers whose API has an oauth2 scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcpfactory_runtime.oauth.challenge import bearer_challenge
from mcpfactory_runtime.oauth.model import OAuthError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.auth import NO_CREDENTIALS, Credentials, choose, gather, lacking
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS, Clock, FetchAnswer, Keeper

__all__ = ["Access", "wanted"]

_REFUSED: Final = (401, 403)


class Access:
    """The credentials of one API's operations.

    Args:
        schemes: by name.
        base_url: the API's as its document has it; `current_url` gives the one in force.
        name: of the server, for the command that hints show.
        environ: where credentials are.
        fetch: makes an HTTP request to an authorization server.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        schemes: Mapping[str, SecurityScheme],
        *,
        base_url: str,
        current_url: Callable[[], str],
        name: str,
        environ: Mapping[str, str],
        fetch: FetchAnswer,
        clock: Clock,
    ) -> None:
        self._schemes = schemes
        self._name = name
        self._environ = environ
        self._keepers = {
            scheme.name: Keeper(
                scheme, base_url=base_url, current_url=current_url, environ=environ, fetch=fetch, clock=clock
            )
            for scheme in schemes.values()
            if scheme.kind == "oauth2"
        }

    @property
    def keepers(self) -> Mapping[str, Keeper]:
        """Those who keep tokens, by scheme name."""
        return self._keepers

    async def credentials(self, operation: Operation, refused: Mapping[str, str] | None = None) -> Credentials:
        """Return what a call carries; `refused` are tokens that shall not be used again, by scheme name.

        Raises:
            ToolError: something is missing, or no token could be had.
        """
        mine = {name for one in operation.security for name in one if name in self._keepers}
        if not mine:
            return gather(choose(operation, self._schemes, self._environ), self._environ)
        keeping = [name for name in mine if lacking(self._schemes[name], self._environ)]
        try:
            missing = {
                name: [] if await self._keepers[name].can_serve() else [wanted(self._schemes[name])] for name in keeping
            }
            chosen = choose(operation, self._schemes, self._environ, missing, self._login_hint(keeping))
            tokens = {
                scheme.name: await self._keepers[scheme.name].token(
                    dict(operation.scopes).get(scheme.name, ()), (refused or {}).get(scheme.name, "")
                )
                for scheme in chosen
                if scheme.name in missing
            }
        except OAuthError as error:
            hint = f"the person who runs this server checks its credentials{self._login_hint(keeping)}"
            told = str(error) if "\nhint: " in str(error) else f"{error}\nhint: {hint}."
            raise ToolError(f"{operation.method} {operation.path}: no access token ({error.code}): {told}") from None
        return gather(chosen, self._environ, tokens)

    async def after_refusal(
        self, operation: Operation, used: Credentials, status: int, headers: Mapping[str, str], *, repeatable: bool
    ) -> Credentials:
        """Other credentials after an answer, when a call is worth repeating with them; NO_CREDENTIALS when it is not.

        Any 401 renews a token, once; what is not repeatable is repeated only if the API says that the token was the reason
        (RFC 6750 §3.1 `invalid_token`), so that it has not acted. Else the next call has the new token.

        Raises:
            ToolError: no other token could be had.
        """
        if status not in _REFUSED or not used.tokens:
            return NO_CREDENTIALS
        challenge = bearer_challenge(headers.get("www-authenticate", ""))
        because = challenge.parameters.get("error")
        if because == "insufficient_scope":
            names = [name for name, _ in used.tokens]
            scopes = challenge.scopes or tuple(one for name in names for one in dict(operation.scopes).get(name, ()))
            raise ToolError(
                f"{operation.method} {operation.path}: the API wants a token with more scopes: "
                f"{' '.join(scopes)[:200] or 'it does not say which'}.\n"
                f"hint: the person who runs this server lets the client have them{self._login_hint(names)} with `--scope`."
            )
        if status != 401:
            return NO_CREDENTIALS
        again = await self.credentials(operation, dict(used.tokens))
        return again if repeatable or because == "invalid_token" else NO_CREDENTIALS

    def _login_hint(self, names: list[str]) -> str:
        flows = [flow.grant for name in names for flow in self._schemes[name].flows]
        if not any(grant in LOGIN_GRANTS for grant in flows):
            return ""
        return f", or logs in: `mcpfactory login {self._name or 'SERVER'}`"


def wanted(scheme: SecurityScheme) -> str:
    """Return the variables of an oauth2 scheme in words: any one way is enough."""
    token, client_id, client_secret = scheme.variables
    grants = {flow.grant for flow in scheme.flows}
    ways = [f"{client_id} and {client_secret}"] if grants & {"clientCredentials", "discovery"} else []
    ways += [f"a login with {client_id}"] if grants & set(LOGIN_GRANTS) else []
    return f"{token} (or {', or '.join(ways)})" if ways else token
