"""Authentication of HTTP requests, and limits for clients with failed attempts.

A check of a token costs a signature verification or a request to the issuer. Each attempt counts against the client's
address until the token is found valid. Tokens that were valid before are exempt from the limit. Clients that share an
address with an attacker, for example in an office, can therefore continue.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib.util import find_spec
from inspect import isawaitable
from math import ceil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic_core import from_json

from mcpfactory_runtime.auth.authorization import (
    SERVER_WELL_KNOWN,
    document,
    issuer_metadata_url,
    resource_metadata_paths,
    resource_metadata_url,
)
from mcpfactory_runtime.auth.jwks import KeyCache, PublicKey
from mcpfactory_runtime.auth.tokens import (
    BearerChallenge,
    Principal,
    TokenError,
    check_claims,
    merge_scopes,
    missing_scopes,
    read_claims,
    read_token,
    read_token_header,
)
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.protocol.methods import CALL_TOOL
from mcpfactory_runtime.revisions import wire_names
from mcpfactory_runtime.server.rates import PerClientCache, TokenBucket, read_rate
from mcpfactory_runtime.transports.http.asgi import address_of

if TYPE_CHECKING:
    from mcpfactory_runtime.auth.authorization import Authorization, Fetch, Verify
    from mcpfactory_runtime.server.interfaces import ServerInterface


_TOKENS: Final = 10_000  # maximum number of remembered valid tokens, of which only hashes are stored


class FailureLimit:
    """Limit of failed attempts, with one token bucket per address, for use in the event loop.

    Access tokens are stored only as hashes (`hash_token`). `rate` is a rate like `600/m`, as in `Server(rates=)`. None
    or `off` means no limit, and an invalid rate raises ValueError.
    """

    def __init__(self, rate: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        limit = None if rate is None or rate == "off" else read_rate("failures", rate)
        self._addresses = None if limit is None else PerClientCache(lambda: TokenBucket(*limit, clock))
        self._good: dict[bytes, None] = {}

    def attempt(self, address: str, token: bytes) -> float:
        """Count an attempt, and return the seconds to wait before the token may be checked."""
        if self._addresses is None or token in self._good:
            return 0.0
        bucket = self._addresses.of(address)
        return 0.0 if bucket.take() else bucket.wait

    def record_success(self, address: str, token: bytes) -> None:
        """Remove the attempt from the count, and exempt the valid token from the limit."""
        if self._addresses is not None and token not in self._good:
            self.cancel_attempt(address)
            if len(self._good) >= _TOKENS:
                del self._good[next(iter(self._good))]
            self._good[token] = None

    def record_failure(self, token: bytes) -> None:
        """Keep the failed attempt in the count, and end the token's exemption from the limit."""
        self._good.pop(token, None)

    def cancel_attempt(self, address: str) -> None:
        """Remove the attempt from the count, because the token could not be checked."""
        if self._addresses is not None:
            self._addresses.of(address).give_back()


def hash_token(token: str) -> bytes:
    """Return the SHA-256 hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


log = logging.getLogger(__name__)

# Names of tools/call in all revisions. Scopes are checked before the revision is known.
_CALLS: Final = wire_names(CALL_TOOL)


class AnonymousAccessGate:
    """Gate that admits all callers, but refuses tools that require scopes, because it cannot check scopes."""

    hosts: frozenset[str] = frozenset()

    def __init__(self, server: ServerInterface) -> None:
        self._server = server

    def supported_scopes(self) -> Sequence[str]:
        """Return no scopes, because there is no issuer."""
        return ()

    def document(self, path: str) -> dict[str, Any] | None:
        """Return None, because there is no metadata."""
        return None

    def issuer_redirect_url(self, path: str) -> str | None:
        """Return None, because there is no issuer."""
        return None

    async def authenticate(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> str | Rejection:
        """Return "", the anonymous principal."""
        return ""

    def authorize(self, principal: str, body: Any) -> Rejection | None:
        """Return a rejection if the body calls a tool that requires scopes."""
        for name, scopes in called_tools(self._server, body):
            if scopes:
                text = f"Tool {name!r} needs the scopes {', '.join(scopes)}, and this server has no authorization."
                return Rejection(403, None, f"{text} hint: set auth= of http_app or run_http, or MCPFACTORY_AUTH_*\n")
        return None


class AccessGate:
    """Gate that checks the tokens of requests, for use in the event loop."""

    def __init__(self, auth: Authorization, server: ServerInterface, endpoint: str) -> None:
        self._auth = auth
        self._server = server
        self._rules = auth.rules
        self._required = merge_scopes(auth.required_scopes)
        self._metadata_url = resource_metadata_url(auth.resource)
        self._paths = resource_metadata_paths(auth.resource, endpoint)
        self._keys = {issuer: KeyCache(auth.jwks) for issuer in auth.issuers}
        self._locks = {issuer: asyncio.Lock() for issuer in auth.issuers}
        self._failures = FailureLimit(auth.failures)
        self.hosts = frozenset({urlsplit(auth.resource).hostname or ""})

    def document(self, path: str) -> dict[str, Any] | None:
        """Return the protected-resource metadata, or None if `path` is another path."""
        if path.rstrip("/") not in self._paths:
            return None
        auth = self._auth
        name = self._server.info.get("title") or self._server.name
        return document(auth.resource, auth.issuers, self.supported_scopes(), name, auth.documentation)

    def supported_scopes(self) -> Sequence[str]:
        """Return the scopes that clients may request."""
        if self._auth.scopes_supported is not None:
            return self._auth.scopes_supported
        return merge_scopes(self._required, *(tool.scopes for tool in self._server.registry.callable_tools))

    def issuer_redirect_url(self, path: str) -> str | None:
        """Return the URL of the issuer's metadata if `path` is a path of such metadata.

        In the first revision with authorization, clients request the issuer's metadata from the MCP server's origin.
        """
        return issuer_metadata_url(self._auth.issuers[0]) if path.rstrip("/") == SERVER_WELL_KNOWN else None

    async def authenticate(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> Principal | Rejection:
        """Return the sender of a request. Remove the token from scope and headers to hide the token from later code."""
        token = read_token(headers.pop("authorization", None), self._required)
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
        if isinstance(token, BearerChallenge):
            return self._refused(token)
        address, known = address_of(scope), hash_token(token)
        wait = self._failures.attempt(address, known)
        if wait:
            text = "Too many invalid access tokens from this address. hint: try again later\n"
            return Rejection(429, None, text, {"retry-after": str(ceil(wait)), "cache-control": "no-store"})
        try:
            principal = await self._read(token)
        except TokenError as error:
            self._failures.record_failure(known)
            return self._refused(BearerChallenge(401, "invalid_token", str(error), self._required))
        except OSError as error:
            self._failures.cancel_attempt(address)
            log.error("access tokens cannot be checked: %s", error)
            text = "Access tokens cannot be checked now. hint: try again later\n"
            return Rejection(503, None, text, {"retry-after": "5"})
        self._failures.record_success(address, known)
        return principal

    def authorize(self, principal: Principal | str, body: Any) -> Rejection | None:
        """Return a rejection if the principal lacks scopes for the request, or for one request of a batch."""
        needed = merge_scopes(self._required, *(scopes for _, scopes in called_tools(self._server, body)))
        held = principal.scopes if isinstance(principal, Principal) else frozenset()
        lacking = missing_scopes(needed, held)
        if not lacking:
            return None
        text = f"The access token lacks: {' '.join(lacking)}"
        return self._refused(BearerChallenge(403, "insufficient_scope", text, needed))

    def _refused(self, challenge: BearerChallenge) -> Rejection:
        text = challenge.description or f"An access token is required. hint: see {self._metadata_url}"
        headers = {"www-authenticate": challenge.header(self._metadata_url), "cache-control": "no-store"}
        return Rejection(challenge.status, None, f"{text}\n", headers)

    async def _read(self, token: str) -> Principal:
        auth = self._auth
        if auth.verify is not None:
            claims = await self._verify_opaque(auth.verify, token)
            if claims is None:
                raise TokenError("inactive")
            return check_claims(dict(claims), self._rules, auth.clock(), signed=False)
        header = read_token_header(token, auth.algorithms)
        if header.issuer not in self._keys:
            raise TokenError("issuer")
        from mcpfactory_runtime.auth.jose import verify  # noqa: PLC0415 - optional library

        failure = TokenError("key")
        for key in await self._keys_for(header.issuer, header.key_id, header.algorithm):
            try:
                payload = verify(token, key, header.algorithm)
            except TokenError as error:
                failure = error
            else:
                return check_claims(read_claims(payload), self._rules, auth.clock())
        raise failure

    async def _verify_opaque(self, verify: Verify, token: str) -> Mapping[str, Any] | None:
        try:
            answer = verify(token)
            return await answer if isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the message of an error may contain the token
            raise OSError(f"verify raised {type(error).__name__}") from None

    async def _keys_for(self, issuer: str, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        cache, clock = self._keys[issuer], self._auth.clock
        found = cache.find(key_id, algorithm, clock())
        if found.fetch:
            # While one request fetches the keys, other requests wait, and then find the keys in the cache.
            async with self._locks[issuer]:
                found = cache.find(key_id, algorithm, clock())
                if found.fetch:
                    await self._fetch(issuer, cache)
                    found = cache.find(key_id, algorithm, clock())
        if not found.known:
            raise OSError(f"the keys of {issuer} could not be fetched")
        return found.keys

    async def _fetch(self, issuer: str, cache: KeyCache) -> None:
        url, clock = self._auth.key_urls[issuer], self._auth.clock
        try:
            body = await (self._auth.fetch or _default_fetch())(url)
            usable = cache.store(from_json(body), clock())
        except (OSError, ValueError) as error:
            cache.mark_failed(clock())
            log.warning("keys of %s: %s: %s", issuer, url, error)
        else:
            if not usable:
                log.warning("keys of %s: %s is not a JWK Set", issuer, url)


def create_gate(auth: Authorization | None, server: ServerInterface, endpoint: str) -> AccessGate | AnonymousAccessGate:
    """Return the gate of an HTTP application."""
    if auth is None:
        return AnonymousAccessGate(server)
    needed = () if auth.verify is not None else ("jwt", "cryptography")
    if auth.jwks_url is not None and auth.fetch is None:
        needed = (*needed, "httpx")
    absent = [name for name in needed if find_spec(name) is None]
    if absent:
        raise RuntimeError(
            f"checking access tokens needs {', '.join(absent)}\nhint: pip install 'mcpfactory-runtime[auth]'"
        )
    return AccessGate(auth, server, endpoint)


def called_tools(server: ServerInterface, body: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the scopes of each known tool that a body calls, even through another tool."""
    for message in body if isinstance(body, list) else (body,):
        method = message.get("method") if isinstance(message, Mapping) else None
        if isinstance(method, str) and method in _CALLS:
            params = message.get("params")
            name = params.get("name") if isinstance(params, Mapping) else None
            tool = server.registry.tools.get(name) if isinstance(name, str) else None
            if tool is not None:
                yield tool.name, tool.scopes
                if tool.resolve_target is not None:
                    target = tool.resolve_target(dict(params or {}).get("arguments"))
                    if target is not None:
                        yield target.name, target.scopes


def _default_fetch() -> Fetch:
    from mcpfactory_runtime.client.http import fetch  # noqa: PLC0415 - loaded at the first fetch

    return fetch
