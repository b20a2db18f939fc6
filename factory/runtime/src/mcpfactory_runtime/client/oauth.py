"""Client side of authorization for MCP servers over HTTP (basic/authorization): discovery, step-up, refresh.

Authorization starts when the MCP server refuses a request with 401, or with 403 for missing scopes. The client finds
the authorization server and registers there. A login in a browser, or a refresh token, gives an access token.
Registrations are stored per authorization server and tokens per MCP server, and other servers never receive them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_runtime.oauth.grants import (
    AssertionSource,
    GrantContext,
    IdentityProvider,
    OAuthClientSettings,
    PrivateKey,
    Registration,
    Tokens,
    Workload,
    authorization_code_grant,
    client_credentials_grant,
    jwt_bearer_grant,
    refresh_token_grant,
    register,
)
from mcpfactory_runtime.oauth.loopback import Loopback
from mcpfactory_runtime.oauth.steps_and_metadata import (
    ANY_METHOD,
    AuthChallenge,
    AuthorizationServer,
    Fetch,
    HttpAnswer,
    OAuthError,
    Steps,
    Visit,
    bearer_challenge,
    check_metadata_url,
    drive,
    fetch,
    is_same_issuer,
    origin,
    parse_json_body,
    string_list,
)
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.urls import private_target_kind

__all__ = ["Fetch", "IdentityProvider", "Loopback", "OAuth", "OAuthError", "PrivateKey", "Visit", "Workload"]

_MARGIN: Final = 10.0  # seconds before expiry at which a token counts as expired
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "registration_endpoint")


@dataclass(frozen=True, slots=True)
class _ServerToken:
    access_token: str
    refresh_token: str
    expires_at: float | None
    issuer: str
    requested: tuple[str, ...]
    granted: tuple[str, ...]


class OAuth:
    """Token provider for `Client.connect_http`. The provider gets and stores tokens, for one client or several.

    Args:
        visit: shows a URL to the user and returns the complete redirect URL, which begins with `redirect_uri`.
            Without `visit`, the client acts on its own behalf (`client_credentials`).
        redirect_uri: the URI to which browsers are redirected.
        client_id, client_secret: existing credentials of the client. If `issuer` is set, no other server receives them.
        issuer: the authorization server to choose if a resource has several.
        document: https URL of a client ID metadata document, for authorization servers that support such documents.
        name: name of the client on consent pages.
        store: storage of registrations and tokens as JSON objects. All values in the store are secret. Defaults to a
            dict.
        clock: returns seconds since the epoch.
        private_key: key that replaces the secret. `client_id` must be registered with the matching public key.
        assertion: a `Workload` or an `IdentityProvider`, which replaces the login in a browser; requires `issuer`.
        private_hosts: hosts on a private network that MCP servers may refer to, such as `auth.corp.example`.
        scopes: scopes to request, instead of all scopes in the resource's metadata.
    """

    def __init__(
        self,
        visit: Callable[[str], Awaitable[str]] | None = None,
        *,
        redirect_uri: str = "",
        client_id: str = "",
        client_secret: str = "",
        issuer: str = "",
        document: str = "",
        name: str = "mcpfactory",
        store: MutableMapping[str, Json] | None = None,
        clock: Callable[[], float] = time.time,
        private_key: PrivateKey | None = None,
        assertion: AssertionSource | None = None,
        private_hosts: Iterable[str] = (),
        scopes: Iterable[str] = (),
    ) -> None:
        if visit is not None and not redirect_uri:
            raise ValueError("login in a browser requires redirect_uri")
        if assertion is not None and not issuer:
            raise ValueError("an assertion requires an issuer\nhint: set issuer to the URL of the authorization server")
        self._visit = visit
        self._private_key = private_key
        self._assertion = assertion
        signs = private_key is not None
        self._identity = OAuthClientSettings(name, redirect_uri, client_id, client_secret, issuer, document, signs)
        self._store: MutableMapping[str, Json] = {} if store is None else store
        self._clock = clock
        self._private_hosts = frozenset(host.lower() for host in private_hosts)
        self._own_scopes = tuple(scopes)
        self._lock = asyncio.Lock()

    def token(self, url: str) -> str:
        """Return the access token for the MCP server at `url`, or "" if there is no valid token."""
        grant = self._stored(url)
        if grant is None or (grant.expires_at is not None and grant.expires_at - _MARGIN <= self._clock()):
            return ""
        return grant.access_token

    def permits_private_host(self, url: str) -> bool:
        """Return True if a URL's host is in `private_hosts`."""
        return (urlsplit(url).hostname or "") in self._private_hosts

    @staticmethod
    def refused(status: int, header: str) -> bool:
        """Return True if another token would help after a response."""
        return status == 401 or (
            status == 403 and bearer_challenge(header).parameters.get("error") == "insufficient_scope"
        )

    async def renew(
        self, url: str, status: int, header: str, used: str, fetch: Callable[[Fetch], Awaitable[HttpAnswer]]
    ) -> None:
        """Get a token after a refusal, or raise OAuthError.

        If the store already has another token than `used`, no new token is requested. `fetch` must not follow
        redirects.
        """
        async with self._lock:
            if self.token(url) in ("", used):
                await drive(self.steps(url, status, header), fetch, partial(self._show, url))

    def steps(self, url: str, status: int, header: str) -> Steps[None]:
        """Yield the requests and the pages to visit for `renew`, and store the token."""
        challenge = bearer_challenge(header)
        held = self._stored(url)
        if status == 403 and held is not None and set(challenge.scopes) <= set(held.granted):
            raise OAuthError("refused", f"{url} rejects a token that has all required scopes")
        resource = yield from _find_resource(url, challenge)
        server = yield from _find_authorization_server(resource, url, self._identity.issuer)
        registration = yield from self._registration(server)
        place = resource.identifier if resource else ""
        context = GrantContext(server, registration, place, self._prove)
        before = held.requested if held else self._own_scopes
        if status == 401 and held and held.refresh_token and held.issuer == server.issuer:
            try:
                tokens = yield from refresh_token_grant(context, held.refresh_token)
            except OAuthError:
                self._store.pop(_tokens_of(url), None)  # the tokens are invalid, so log in
            else:
                return self._keep(url, server, before, tokens, held.granted)
        offered = () if self._own_scopes or resource is None else resource.scopes
        scopes = _scopes(challenge, offered, server, before)
        try:
            if self._assertion is not None:
                tokens = yield from self._by_assertion(context, url)
            elif self._visit is None:
                tokens = yield from client_credentials_grant(context, scopes)
            else:
                tokens = yield from authorization_code_grant(context, self._identity.redirect_uri, scopes)
        except OAuthError as error:
            if error.code in ("invalid_client", "unauthorized_client"):
                # The authorization server no longer knows this client, so register again at the next login.
                self._store.pop(_client_of(server), None)
            raise
        return self._keep(url, server, scopes, tokens, scopes)

    def _by_assertion(self, context: GrantContext, url: str) -> Steps[Tokens]:
        """Exchange an assertion for a token, but only at the authorization server `issuer`."""
        assert self._assertion is not None
        if not is_same_issuer(context.server.issuer, self._identity.issuer):
            raise OAuthError("issuer_mismatch", f"{url} uses {context.server.issuer}, not {self._identity.issuer}")
        statement = yield from self._assertion.steps(context.server.issuer, context.resource or url)
        return (yield from jwt_bearer_grant(context, statement))

    def _prove(self, audience: str) -> dict[str, str]:
        assert self._private_key is not None
        return self._private_key.proof(self._identity.client_id, audience, self._clock())

    def _registration(self, server: AuthorizationServer) -> Steps[Registration]:
        known = self._store.get(_client_of(server))
        if known is not None and not self._identity.client_id:
            return Registration(**known)
        registration = yield from register(self._identity, server)
        if registration.client_id not in (self._identity.client_id, self._identity.document):
            self._store[_client_of(server)] = asdict(registration)
        return registration

    def _stored(self, url: str) -> _ServerToken | None:
        known: dict[str, Any] | None = self._store.get(_tokens_of(url))
        if known is None:
            return None
        scopes = {name: tuple(known[name]) for name in ("requested", "granted")}
        return _ServerToken(**{**known, **scopes})

    def _keep(
        self, url: str, server: AuthorizationServer, asked: tuple[str, ...], tokens: Tokens, granted: tuple[str, ...]
    ) -> None:
        """Store tokens. The scopes in the response take precedence over `granted` (RFC 6749 §5.1)."""
        expires_at = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        had = granted if tokens.scopes is None else tokens.scopes
        grant = _ServerToken(tokens.access_token, tokens.refresh_token, expires_at, server.issuer, asked, had)
        data = asdict(grant)
        self._store[_tokens_of(url)] = {**data, "requested": list(asked), "granted": list(had)}

    async def _show(self, url: str, page: Visit) -> str:
        if self._visit is None:
            raise OAuthError("no_browser", "no browser is available for the login")
        if private_target_kind(page.url) and not private_target_kind(url) and not self.permits_private_host(page.url):
            raise OAuthError(
                "unsafe_url", f"{url} sends browsers to {page.url}, which is at a private or local address"
            )
        return await self._visit(page.url)


def _scopes(
    challenge: AuthChallenge, offered: Iterable[str] | None, server: AuthorizationServer, before: Iterable[str]
) -> tuple[str, ...]:
    """Return the scopes to request (Scope Selection Strategy, Step-Up Authorization Flow)."""
    wanted = tuple(dict.fromkeys((*before, *(challenge.scopes or offered or ()))))
    if wanted and "offline_access" in server.scopes and "offline_access" not in wanted:
        return (*wanted, "offline_access")
    return wanted


def _client_of(server: AuthorizationServer) -> str:
    return f"client {server.issuer}"


def _tokens_of(url: str) -> str:
    return f"tokens {url}"


# --- discovery: from an MCP server to its authorization server ---


@dataclass(frozen=True, slots=True)
class _ProtectedResource:
    """A protected resource (RFC 9728). `scopes` is None if the document has no scopes."""

    identifier: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None


def _find_resource(url: str, challenge: AuthChallenge) -> Steps[_ProtectedResource | None]:
    """Return the metadata of the MCP server at `url`, or None if the server has no metadata."""
    named = challenge.parameters.get("resource_metadata")
    places = [check_metadata_url(named, url, "resource_metadata")] if named else list(_resource_places(url))
    for place in places:
        answer = yield from fetch(Fetch("GET", place, {"Accept": "application/json"}))
        if answer.status == 200:
            return _resource(parse_json_body(answer, f"the resource metadata at {place}"), url)
        if named or answer.status >= 500:
            raise OAuthError("bad_metadata", f"no resource metadata found at {place} (HTTP status {answer.status})")
    return None


def _find_authorization_server(
    resource: _ProtectedResource | None, url: str, issuer: str = ""
) -> Steps[AuthorizationServer]:
    """Return the metadata of the resource's authorization server. `issuer` is preferred to other issuers.

    In the first revision with authorization, there is no resource (None), and the server's origin is the issuer. An
    issuer without metadata has the endpoints `/authorize`, `/token` and `/register`.
    """
    issuers = resource.issuers if resource else (origin(url),)
    chosen = next((one for one in issuers if is_same_issuer(one, issuer)), issuers[0])
    check_metadata_url(chosen, url, "the authorization server")
    for place in _server_places(chosen):
        answer = yield from fetch(Fetch("GET", place, {"Accept": "application/json"}))
        if answer.status == 200:
            return _server(parse_json_body(answer, f"the metadata at {place}"), chosen, url)
        if answer.status >= 500:
            raise OAuthError("bad_metadata", f"{place} returned HTTP status {answer.status}")
    if resource is None:
        return AuthorizationServer(
            chosen, f"{chosen}/authorize", f"{chosen}/token", f"{chosen}/register", auth_methods=ANY_METHOD
        )
    raise OAuthError("bad_metadata", f"the authorization server {chosen} has no metadata")


def _resource_places(url: str) -> Iterator[str]:
    path = urlsplit(url).path.rstrip("/")
    if path:
        yield f"{origin(url)}/.well-known/oauth-protected-resource{path}"
    yield f"{origin(url)}/.well-known/oauth-protected-resource"


def _server_places(issuer: str) -> Iterator[str]:
    base, path = origin(issuer), urlsplit(issuer).path.rstrip("/")
    yield f"{base}/.well-known/oauth-authorization-server{path}"
    yield f"{base}/.well-known/openid-configuration{path}"
    if path:
        yield f"{base}{path}/.well-known/openid-configuration"


def _resource(data: Json, url: str) -> _ProtectedResource:
    identifier = data.get("resource")
    if not isinstance(identifier, str) or not _covers(identifier, url):
        raise OAuthError(
            "resource_mismatch", f"the resource metadata is for {identifier!r}, not for {url} (RFC 9728 §3.3)"
        )
    issuers = string_list(data.get("authorization_servers"))
    if not issuers:
        raise OAuthError("bad_metadata", f"the resource metadata of {url} has no authorization server")
    scopes = string_list(data["scopes_supported"]) if "scopes_supported" in data else None
    return _ProtectedResource(identifier, issuers, scopes)


def _covers(identifier: str, url: str) -> bool:
    """Return True if the identifier is the URL or one of its parents."""
    try:
        above, here = urlsplit(identifier), urlsplit(url)
        same = (above.scheme, above.hostname, above.port) == (here.scheme, here.hostname, here.port)
    except ValueError:
        return False
    path = above.path.rstrip("/")
    return same and not above.fragment and (here.path.rstrip("/") == path or here.path.startswith(f"{path}/"))


def _server(data: Json, issuer: str, url: str) -> AuthorizationServer:
    named = data.get("issuer")
    if not isinstance(named, str) or not is_same_issuer(named, issuer):
        raise OAuthError("issuer_mismatch", f"the metadata of {issuer} has another issuer: {named!r} (RFC 8414 §3.3)")
    if "S256" not in string_list(data.get("code_challenge_methods_supported")):
        raise OAuthError("no_pkce", f"the authorization server {issuer} does not advertise PKCE with S256")
    for name in ("authorization_endpoint", "token_endpoint"):
        check_metadata_url(data.get(name), url, name)
    return AuthorizationServer.from_metadata(data, named, url, _ENDPOINTS)
