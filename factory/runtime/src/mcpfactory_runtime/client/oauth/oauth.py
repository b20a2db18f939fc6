"""The client's side of authorization for MCP servers behind URLs (basic/authorization).

A server's refusal (401, or 403 for want of scopes) starts it: find the authorization server, be registered there, let the
person agree in a browser or use a refresh token, keep the token. Registrations are kept per authorization server and
tokens per MCP server, so none is ever shown to another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_runtime.client.oauth.discovery import Resource, find_authorization_server, find_resource
from mcpfactory_runtime.oauth.answer import HttpAnswer
from mcpfactory_runtime.oauth.challenge import Challenge, bearer_challenge
from mcpfactory_runtime.oauth.grants import Party, Tokens, by_code, by_refreshing, on_own_behalf
from mcpfactory_runtime.oauth.metadata import AuthorizationServer
from mcpfactory_runtime.oauth.model import Fetch, Json, OAuthError, Steps, Visit, drive
from mcpfactory_runtime.oauth.registration import Identity, Registration, register

__all__ = ["OAuth"]

_MARGIN: Final = 10.0  # seconds before its end at which a token counts as expired


@dataclass(frozen=True, slots=True)
class _Grant:
    """A token for one MCP server. `requested` are the scopes asked for, `granted` those that the token has."""

    access_token: str
    refresh_token: str
    expires_at: float | None
    issuer: str
    requested: tuple[str, ...]
    granted: tuple[str, ...]


class OAuth:
    """Gets and keeps tokens; give it to `Client.connect_http`. One may serve several clients.

    Args:
        visit: shows a URL to the person and returns the whole URL that the browser was sent back to, which begins with
            `redirect_uri`. Without it the client acts on its own behalf (`client_credentials`).
        redirect_uri: where browsers are sent back to.
        client_id, client_secret: registered beforehand; with `issuer` for that authorization server alone.
        issuer: the authorization server to choose where a resource names several.
        document: the https URL of a client-id metadata document; used where it is understood.
        name: what consent pages call the client.
        store: where registrations and tokens are kept, as JSON objects; they are secrets. A dict when not given.
        clock: seconds since the epoch.
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
    ) -> None:
        if visit is not None and not redirect_uri:
            raise ValueError("a browser needs a redirect_uri to come back to")
        self._visit = visit
        self._identity = Identity(name, redirect_uri, client_id, client_secret, issuer, document)
        self._store: MutableMapping[str, Json] = {} if store is None else store
        self._clock = clock
        self._lock = asyncio.Lock()

    def token(self, url: str) -> str:
        """Return the access token for the MCP server at `url`; "" when there is none that is still good."""
        grant = self._grant(url)
        if grant is None or (grant.expires_at is not None and grant.expires_at - _MARGIN <= self._clock()):
            return ""
        return grant.access_token

    @staticmethod
    def refused(status: int, header: str) -> bool:
        """Whether a response (status, `WWW-Authenticate`) says that another token would help."""
        return status == 401 or (
            status == 403 and bearer_challenge(header).parameters.get("error") == "insufficient_scope"
        )

    async def renew(
        self, url: str, status: int, header: str, used: str, fetch: Callable[[Fetch], Awaitable[HttpAnswer]]
    ) -> None:
        """Get a token after a refusal.

        Args:
            url: of the MCP server.
            status: of the refusal.
            header: its `WWW-Authenticate`.
            used: the token that was refused; if there is another by now nothing is done.
            fetch: makes an HTTP request, without following redirects.

        Raises:
            OAuthError: there is none to be had.
        """
        async with self._lock:
            if self.token(url) in ("", used):
                await drive(self.steps(url, status, header), fetch, self._show)

    def steps(self, url: str, status: int, header: str) -> Steps[None]:
        """Yield what `renew` does, without I/O: yields requests and pages, and keeps the token in the end. Raises OAuthError."""
        challenge = bearer_challenge(header)
        held = self._grant(url)
        if status == 403 and held is not None and set(challenge.scopes) <= set(held.granted):
            raise OAuthError("refused", f"{url} refuses a token that has the scopes it asks for")
        resource = yield from find_resource(url, challenge)
        server = yield from find_authorization_server(resource, url, self._identity.issuer)
        registration = yield from self._registration(server)
        party = Party(server, registration, resource.identifier if resource else "")
        before = held.requested if held else ()
        if status == 401 and held and held.refresh_token and held.issuer == server.issuer:
            try:
                tokens = yield from by_refreshing(party, held.refresh_token)
            except OAuthError:
                self._store.pop(_tokens_of(url), None)  # it is used up; the person is asked
            else:
                return self._keep(url, server, before, tokens, held.granted)
        scopes = _scopes(challenge, resource, server, before)
        try:
            if self._visit is None:
                tokens = yield from on_own_behalf(party, scopes)
            else:
                tokens = yield from by_code(party, self._identity.redirect_uri, scopes)
        except OAuthError as error:
            if error.code in ("invalid_client", "unauthorized_client"):
                self._store.pop(_client_of(server), None)  # it was forgotten there; the next time registers anew
            raise
        return self._keep(url, server, scopes, tokens, scopes)

    def _registration(self, server: AuthorizationServer) -> Steps[Registration]:
        known = self._store.get(_client_of(server))
        if known is not None and not self._identity.client_id:
            return Registration(**known)
        registration = yield from register(self._identity, server)
        if registration.client_id not in (self._identity.client_id, self._identity.document):
            self._store[_client_of(server)] = asdict(registration)
        return registration

    def _grant(self, url: str) -> _Grant | None:
        known: dict[str, Any] | None = self._store.get(_tokens_of(url))
        if known is None:
            return None
        scopes = {name: tuple(known[name]) for name in ("requested", "granted")}
        return _Grant(**{**known, **scopes})

    def _keep(
        self, url: str, server: AuthorizationServer, asked: tuple[str, ...], tokens: Tokens, granted: tuple[str, ...]
    ) -> None:
        """Keep tokens; `granted` are their scopes when the answer did not say (RFC 6749 §5.1)."""
        expires_at = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        had = granted if tokens.scopes is None else tokens.scopes
        grant = _Grant(tokens.access_token, tokens.refresh_token, expires_at, server.issuer, asked, had)
        data = asdict(grant)
        self._store[_tokens_of(url)] = {**data, "requested": list(asked), "granted": list(had)}

    async def _show(self, page: Visit) -> str:
        if self._visit is None:
            raise OAuthError("no_browser", "there is nobody to ask")
        return await self._visit(page.url)


def _scopes(
    challenge: Challenge, resource: Resource | None, server: AuthorizationServer, before: Iterable[str]
) -> tuple[str, ...]:
    """Return what to ask for (Scope Selection Strategy, Step-Up Authorization Flow, Refresh Tokens); () asks for the default."""
    wanted = challenge.scopes or (resource.scopes if resource else None) or ()
    wanted = tuple(dict.fromkeys((*before, *wanted)))
    if wanted and "offline_access" in server.scopes and "offline_access" not in wanted:
        return (*wanted, "offline_access")
    return wanted


def _client_of(server: AuthorizationServer) -> str:
    return f"client {server.issuer}"


def _tokens_of(url: str) -> str:
    return f"tokens {url}"
