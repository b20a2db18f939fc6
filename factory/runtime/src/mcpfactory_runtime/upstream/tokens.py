"""OAuth credentials of APIs: selection of tokens for a call, and renewal of tokens that the API refuses.

Only servers whose API has an oauth2 scheme load this module. The sources of tokens are, in this order, the environment
(a refresh token, or the key of a service account), a login, and the client's own credentials. Rules:

1. One exchange renews a token for all calls that find the token expired or refused. If the call that started the
   exchange is canceled, the exchange continues, because the old refresh token may be invalid.
2. Processes share the tokens of logins through the store. A renewal holds the store's lock, and first checks for a
   renewal by another process.
3. Tokens from the client's own credentials or from the environment are kept in memory only.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar
from urllib.parse import urljoin, urlsplit

from mcpfactory_runtime.oauth.grants import (
    GrantContext,
    Registration,
    Tokens,
    client_credentials_grant,
    jwt_bearer_grant,
    refresh_token_grant,
)
from mcpfactory_runtime.oauth.steps_and_metadata import (
    AuthorizationServer,
    Fetch,
    HttpAnswer,
    OAuthError,
    Steps,
    Visit,
    bearer_challenge,
    check_metadata_url,
    drive,
    fetch_server_metadata,
    is_loopback,
)
from mcpfactory_runtime.oauth.token_store import TokenStore, locked, open_store
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.auth import (
    NO_CREDENTIALS,
    Credentials,
    ServiceAccount,
    choose_schemes,
    collect_credentials,
    read_service_account,
    unset_variables,
)
from mcpfactory_runtime.upstream.operation import OAuthFlow, Operation, SecurityScheme
from mcpfactory_runtime.upstream.secrets import is_variable_set, secret
from mcpfactory_runtime.upstream.servers import Addresses

LOGIN_GRANTS: Final = ("authorizationCode", "deviceAuthorization", "discovery")
"""OAuth flows that a login can use."""

# Maximum seconds before expiry at which a token is renewed. A short-lived token uses a tenth of its lifetime.
_MAX_MARGIN: Final = 10.0
_REFUSED: Final = (401, 403)
_REFRESH: Final = 3  # position of the refresh token among the variables of a scheme
_ACCOUNT: Final = 4  # position of the service account key among the variables of a scheme
_METHODS: Final = ("client_secret_basic", "client_secret_post")

T = TypeVar("T")
Clock = Callable[[], float]
FetchFunction = Callable[[Fetch], Awaitable[HttpAnswer]]


@dataclass(frozen=True, slots=True, repr=False)
class StoredToken:
    """A token with the data to renew it. `renew_at` is in seconds since the epoch, or None without expiry."""

    access_token: str
    refresh_token: str = ""
    renew_at: float | None = None
    client_id: str = ""
    scopes: tuple[str, ...] = ()


def login_store_key(base_url: str, scheme: SecurityScheme) -> str:
    """Return the key of a login in the store, unique per API, scheme and authorization server."""
    flows = [flow for flow in scheme.flows if flow.grant != "serviceAccount"]  # a service account needs no login
    parts = [base_url, scheme.name, *(text for flow in flows for text in dataclasses.astuple(flow))]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def login_base_url(addresses: Addresses) -> str:
    """Return the base for relative login URLs: the root of the API, or the first server if all servers are loopback."""
    others = addresses.others
    try:
        here = all(is_loopback(urlsplit(url).hostname) for url in others)
    except ValueError:
        here = False
    return addresses.root or (others[0] if others and here else "")


def has_login(base_url: str, scheme: SecurityScheme, environ: Mapping[str, str]) -> bool:
    """Return True if the store has a login for the scheme."""
    return open_store(environ).read(login_store_key(base_url, scheme)) is not None


def has_environment_grant(scheme: SecurityScheme, environ: Mapping[str, str]) -> bool:
    """Return True if the environment has a refresh token or a service account key for the scheme."""
    refresh = len(scheme.variables) > _REFRESH and is_variable_set(scheme.variables[_REFRESH], environ)
    account = len(scheme.variables) > _ACCOUNT and is_variable_set(scheme.variables[_ACCOUNT], environ)
    return (refresh and is_variable_set(scheme.variables[1], environ)) or account


class TokenManager:
    """The tokens of one oauth2 scheme with flows."""

    def __init__(
        self,
        scheme: SecurityScheme,
        *,
        base_url: str,
        current_url: Callable[[], str],
        environ: Mapping[str, str],
        fetch: FetchFunction,
        clock: Clock,
    ) -> None:
        self.scheme = scheme
        self._key = login_store_key(base_url, scheme)
        self._current_url = current_url
        self._environ = environ
        self._fetch = fetch
        self._clock = clock
        self._grant: StoredToken | None = None
        self._renewal: tuple[asyncio.Task[StoredToken] | None, tuple[str, ...]] = (None, ())
        self._metadata: AuthorizationServer | None = None
        self._auth_method = ""

    @property
    def client_id(self) -> str:
        """Return the client's ID, or "" if unset."""
        return secret(self.scheme.variables[1], self._environ)

    async def has_credentials(self) -> bool:
        """Return True if the environment has credentials for a token, or the store has a login."""
        if self._grant is not None or has_environment_grant(self.scheme, self._environ):
            return True
        return self._client_flow() is not None or await self._login() is not None

    async def token(self, scopes: tuple[str, ...], refused: str = "") -> str:
        """Return a valid access token other than `refused`, or raise OAuthError."""
        if self._grant is None and self._allows_login():
            self._grant = await self._login()
        while not self._usable(self._grant, scopes, refused):
            task, wanted = self._renewal
            if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
                task, wanted = self._renewal = asyncio.ensure_future(self._renew(scopes, refused)), scopes
                # Read the error, so that asyncio does not log it.
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                grant = await asyncio.shield(task)
            except OAuthError:
                if wanted == scopes:
                    raise
            else:
                if wanted == scopes:
                    return grant.access_token
        assert self._grant is not None
        return self._grant.access_token

    async def save_login(self, tokens: Tokens, scopes: tuple[str, ...], client_id: str) -> None:
        """Store the tokens of a login."""
        store = open_store(self._environ)
        async with locked(store, self._key):
            await self._write(store, self._to_grant(tokens, scopes, client_id))

    async def delete_login(self) -> bool:
        """Remove the login, or return False if there was no login."""
        self._grant = None
        store = open_store(self._environ)
        async with locked(store, self._key):
            return await asyncio.to_thread(store.delete, self._key)

    async def exchange(
        self,
        steps: Callable[[GrantContext], Steps[T]],
        server: AuthorizationServer,
        client_id: str,
        visit: Callable[[Visit], Awaitable[str]] | None = None,
    ) -> T:
        """Execute a grant, with the client's secret in the header or in the form, as the server requires."""
        value = secret(self.scheme.variables[2], self._environ)
        methods = [self._auth_method] if self._auth_method else [one for one in _METHODS if one in server.auth_methods]
        if not value:
            methods = ["none"]
        for method in methods or _METHODS[:1]:
            context = GrantContext(server, Registration(client_id, value, method), "")
            try:
                outcome = await drive(steps(context), self._fetch, visit)
            except OAuthError as error:
                if error.code != "invalid_client" or method == (methods or _METHODS[:1])[-1]:
                    raise
            else:
                self._auth_method = method if value else ""
                return outcome
        raise AssertionError(
            "internal error: the last method neither returned nor raised (this is a bug; please report it)"
        )

    async def server(self, flow: OAuthFlow) -> AuthorizationServer:
        """Return the endpoints of a flow."""
        base = self._current_url()
        if flow.grant == "discovery":
            if self._metadata is None:
                self._metadata = await drive(fetch_server_metadata(urljoin(base, flow.metadata_url), base), self._fetch)
            return self._metadata

        def end(name: str, url: str) -> str:
            return check_metadata_url(urljoin(base, url), base, name) if url else ""

        return AuthorizationServer(
            "",
            end("authorization_endpoint", flow.authorization_url),
            end("token_endpoint", flow.token_url),
            device_endpoint=end("device_endpoint", flow.device_url),
            auth_methods=_METHODS,
        )

    def flow(self, *grants: str) -> OAuthFlow | None:
        """Return the scheme's first flow of the given kinds, of which earlier kinds take precedence."""
        return next((flow for grant in grants for flow in self.scheme.flows if flow.grant == grant), None)

    def _allows_login(self) -> bool:
        return self.flow(*LOGIN_GRANTS) is not None and not has_environment_grant(self.scheme, self._environ)

    def _refresh_token(self) -> str:
        variables = self.scheme.variables
        value = secret(variables[_REFRESH], self._environ) if len(variables) > _REFRESH else ""
        return value if self.client_id else ""

    def _service_account(self) -> ServiceAccount | None:
        variables = self.scheme.variables
        return read_service_account(variables[_ACCOUNT], self._environ) if len(variables) > _ACCOUNT else None

    def _client_flow(self) -> OAuthFlow | None:
        has_both = all(secret(name, self._environ) for name in self.scheme.variables[1:3])
        return self.flow("clientCredentials", "discovery") if has_both else None

    def _usable(self, grant: StoredToken | None, scopes: tuple[str, ...], refused: str) -> bool:
        if grant is None or grant.access_token == refused:
            return False
        if grant.renew_at is not None and grant.renew_at <= self._clock():
            return False
        return bool(grant.client_id) or set(scopes) <= set(grant.scopes)  # the user chooses the scopes of a login

    async def _login(self) -> StoredToken | None:
        if not self._allows_login():
            return None
        return self._parsed(await asyncio.to_thread(open_store(self._environ).read, self._key))

    def _parsed(self, stored: Json | None) -> StoredToken | None:
        if stored is None:
            return None
        try:
            grant = StoredToken(**{**stored, "scopes": tuple(stored["scopes"])})
        except (KeyError, TypeError):  # written by another version of mcpfactory
            return None
        return grant if self.client_id in ("", grant.client_id) else None

    async def _renew(self, scopes: tuple[str, ...], refused: str) -> StoredToken:
        """Renew and store the token in one task, so that no call finds the old token after the renewal."""
        try:
            self._grant = await self._fresh_token(scopes, refused)
        except OAuthError as error:
            self._grant = None if error.code == "no_login" else self._grant
            raise
        return self._grant

    async def _fresh_token(self, scopes: tuple[str, ...], refused: str) -> StoredToken:
        if refresh_token := self._refresh_token():
            return await self._refresh_from_environment(refresh_token)
        if (account := self._service_account()) is not None:
            return await self._account_token(account, scopes)
        if self._allows_login():
            store = open_store(self._environ)
            if await self._login() is not None:
                async with locked(store, self._key):
                    # Another process may have renewed the token before this process got the lock.
                    grant = await self._login()
                    if grant is not None:
                        return grant if self._usable(grant, scopes, refused) else await self._refresh(store, grant)
        return await self._client_token(scopes)

    async def _refresh(self, store: TokenStore, grant: StoredToken) -> StoredToken:
        if not grant.refresh_token:
            raise OAuthError("no_login", "the login has ended and has no refresh token")
        server = await self._refresh_server()
        try:
            tokens = await self.exchange(
                lambda context: refresh_token_grant(context, grant.refresh_token), server, grant.client_id
            )
        except OAuthError as error:
            if error.code != "invalid_grant":
                raise
            await asyncio.to_thread(store.delete, self._key)
            raise OAuthError("no_login", "the login has ended: its refresh token is no longer accepted") from None
        return await self._write(store, self._to_grant(tokens, grant.scopes, grant.client_id))

    async def _refresh_server(self) -> AuthorizationServer:
        flow = self.flow(*LOGIN_GRANTS)
        assert flow is not None
        server = await self.server(flow)
        if not flow.refresh_url:
            return server
        base = self._current_url()
        endpoint = check_metadata_url(urljoin(base, flow.refresh_url), base, "refresh_url")
        return dataclasses.replace(server, token_endpoint=endpoint)

    async def _refresh_from_environment(self, refresh_token: str) -> StoredToken:
        """Return a token for the refresh token in the environment, or for a newer refresh token from the server."""
        server, client_id = await self._refresh_server(), self.client_id
        held = self._grant.refresh_token if self._grant else ""
        for one in dict.fromkeys([held, refresh_token]):
            if not one:
                continue
            try:
                tokens = await self.exchange(partial(refresh_token_grant, refresh_token=one), server, client_id)
            except OAuthError as error:
                if error.code != "invalid_grant" or one == refresh_token:
                    raise
            else:
                return self._to_grant(tokens, tokens.scopes or (), client_id)
        raise AssertionError(
            "internal error: the last refresh token caused neither a result nor an error (this is a bug; please report it)"
        )

    async def _account_token(self, account: ServiceAccount, scopes: tuple[str, ...]) -> StoredToken:
        flow = self.flow("serviceAccount")
        assert flow is not None
        held = self._grant.scopes if self._grant else ()
        wanted = tuple(dict.fromkeys((*held, *scopes)))
        base = self._current_url()
        server = await self.server(flow)
        if account.token_url:
            endpoint = check_metadata_url(account.token_url, base, "token_uri")
            server = dataclasses.replace(server, token_endpoint=endpoint)
        assertion = account.assertion(server.token_endpoint, wanted, self._clock())
        context = GrantContext(server, Registration("", "", "none"), "")
        tokens = await drive(jwt_bearer_grant(context, assertion), self._fetch)
        return dataclasses.replace(self._to_grant(tokens, wanted, ""), refresh_token="")

    async def _client_token(self, scopes: tuple[str, ...]) -> StoredToken:
        flow = self._client_flow()
        if flow is None:
            raise OAuthError("no_login", "there is no login")
        held = self._grant
        wanted = tuple(dict.fromkeys((*(held.scopes if held and not held.client_id else ()), *scopes)))
        server = await self.server(flow)
        tokens = await self.exchange(lambda context: client_credentials_grant(context, wanted), server, self.client_id)
        return dataclasses.replace(self._to_grant(tokens, wanted, ""), refresh_token="")

    def _to_grant(self, tokens: Tokens, scopes: tuple[str, ...], client_id: str) -> StoredToken:
        renew_at = None
        if tokens.expires_in is not None:
            renew_at = self._clock() + tokens.expires_in - min(_MAX_MARGIN, tokens.expires_in / 10)
        return StoredToken(tokens.access_token, tokens.refresh_token, renew_at, client_id, scopes)

    async def _write(self, store: TokenStore, grant: StoredToken) -> StoredToken:
        value = {**dataclasses.asdict(grant), "scopes": list(grant.scopes)}
        await asyncio.to_thread(store.write, self._key, value)
        return grant


class OAuthCredentials:
    """The credentials of one API's operations."""

    def __init__(
        self,
        schemes: Mapping[str, SecurityScheme],
        *,
        base_url: str,
        current_url: Callable[[], str],
        name: str,
        environ: Mapping[str, str],
        fetch: FetchFunction,
        clock: Clock,
    ) -> None:
        self._schemes = schemes
        self._name = name
        self._environ = environ
        self._managers = {
            scheme.name: TokenManager(
                scheme, base_url=base_url, current_url=current_url, environ=environ, fetch=fetch, clock=clock
            )
            for scheme in schemes.values()
            if scheme.kind == "oauth2"
        }

    @property
    def token_managers(self) -> Mapping[str, TokenManager]:
        """Return the token managers by scheme name."""
        return self._managers

    async def credentials(self, operation: Operation, refused: Mapping[str, str] | None = None) -> Credentials:
        """Return the credentials of a call. `refused` maps scheme names to tokens that the API has refused."""
        mine = {name for one in operation.security for name in one if name in self._managers}
        if not mine:
            return collect_credentials(choose_schemes(operation, self._schemes, self._environ), self._environ)
        managed = [name for name in mine if unset_variables(self._schemes[name], self._environ)]
        try:
            missing = {
                name: []
                if await self._managers[name].has_credentials()
                else [describe_scheme_variables(self._schemes[name])]
                for name in managed
            }
            chosen = choose_schemes(operation, self._schemes, self._environ, missing, self._login_hint(managed))
            tokens = {
                scheme.name: await self._managers[scheme.name].token(
                    dict(operation.scopes).get(scheme.name, ()), (refused or {}).get(scheme.name, "")
                )
                for scheme in chosen
                if scheme.name in missing
            }
        except OAuthError as error:
            hint = f"the person who runs this server checks its credentials{self._login_hint(managed)}"
            message = str(error) if "\nhint: " in str(error) else f"{error}\nhint: {hint}."
            raise ToolError(f"{operation.method} {operation.path}: no access token ({error.code}): {message}") from None
        return collect_credentials(chosen, self._environ, tokens)

    async def credentials_for_retry(
        self, operation: Operation, used: Credentials, status: int, headers: Mapping[str, str], *, repeatable: bool
    ) -> Credentials:
        """Return new credentials for a retry after a refusal, or NO_CREDENTIALS if the call must not be retried.

        After a response with status 401, the token is renewed. A call that is not repeatable is retried only if the API
        reports `invalid_token` (RFC 6750 §3.1), because such a call had no effect. If the call is not retried, the next
        call uses the new token.
        """
        if status not in _REFUSED or not used.tokens:
            return NO_CREDENTIALS
        challenge = bearer_challenge(headers.get("www-authenticate", ""))
        because = challenge.parameters.get("error")
        if because == "insufficient_scope":
            names = [name for name, _ in used.tokens]
            scopes = challenge.scopes or tuple(one for name in names for one in dict(operation.scopes).get(name, ()))
            raise ToolError(
                f"{operation.method} {operation.path}: the API requires a token with more scopes: "
                f"{' '.join(scopes)[:200] or 'unknown ones'}.\nhint: ask the person who runs this server to "
                f"grant the client these scopes{self._login_hint(names)} with `--scope`."
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


def describe_scheme_variables(scheme: SecurityScheme) -> str:
    """Return the variables of an oauth2 scheme for a message, as alternatives."""
    token, client_id, client_secret, *further = scheme.variables
    grants = {flow.grant for flow in scheme.flows}
    ways = [f"{client_id} and {client_secret}"] if grants & {"clientCredentials", "discovery"} else []
    ways += [f"a login with {client_id}"] if grants & set(LOGIN_GRANTS) else []
    ways += [f"{further[0]} with {client_id}"] if further else []
    ways += further[1:2]
    return f"{token} (or {', or '.join(ways)})" if ways else token
