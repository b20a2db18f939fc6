"""`OAuthProxy`: logins at a provider, and the endpoints that give tokens to MCP clients.

Three rules prevent an attacker's client from acting on behalf of a user.

The user confirms each client on a page of this server, and a cookie binds the browser to the request. The provider must
redirect the user back in the same browser. Codes are sent only to registered redirect URIs, and require PKCE.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from mcpfactory_runtime.auth.authorization import SERVER_WELL_KNOWN, Authorization, AuthorizationError, canonical
from mcpfactory_runtime.auth.tokens import Principal, merge_scopes
from mcpfactory_runtime.oauth_proxy.clients import (
    ClientMetadataCache,
    OAuthRequestError,
    ProxyClient,
    is_client_metadata_url,
    is_registered_redirect,
    read_client_registration,
)
from mcpfactory_runtime.oauth_proxy.grants import GRANT_SECONDS, LOGIN_SECONDS, GrantStore, TokenKeys, digest
from mcpfactory_runtime.oauth_proxy.login_providers import LoginProvider, ProviderRefusedError
from mcpfactory_runtime.oauth_proxy.pages import consent_page, error_page
from mcpfactory_runtime.server.rates import PerClientCache, TokenBucket
from mcpfactory_runtime.storage.base import MemoryStore, SharedStore
from mcpfactory_runtime.types import Json

log = logging.getLogger(__name__)

_LOGINS: Final = 5000  # maximum logins per LOGIN_SECONDS
_LOGINS_OF_ONE: Final = 1000  # maximum logins per LOGIN_SECONDS and address; one address cannot block the others
_SHORTEST_SECRET: Final = 16  # minimum characters of the proxy's secret
_LONGEST_STATE: Final = 2000  # maximum characters of the parameter `state`
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")  # syntax of an S256 challenge (RFC 7636 §4.2)
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_BROWSER: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_PAGE: Final = (
    (
        "content-security-policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),  # with stricter policies, browsers omit the origin of the form
    ("cache-control", "no-store"),
)


@dataclass(frozen=True, slots=True)
class OAuthEndpointRequest:
    """A request to an endpoint."""

    method: str
    fields: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    cookies: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


@dataclass(frozen=True, slots=True)
class OAuthEndpointResponse:
    """The response of an endpoint."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class OAuthProxy:
    """An OAuth proxy for providers without dynamic client registration: `server.run_http(auth=OAuthProxy(…))`.

    Args:
        provider: the login provider: `github(…)`, `google(…)`, `oidc(…)`, or a custom one.
        resource: URL of the MCP endpoint as clients write it. The proxy's issuer is this URL without its last path
            segment.
        allow: permitted callers. An entry is a GitHub user name, a verified email address, `@example.com` for all
            verified addresses of a domain, `sub:ID` for an account at the provider, or `*` for all accounts. With
            Google, `@example.com` permits all accounts of that organization.
        required_scopes: scopes that each request needs.
        scope_hierarchy: scope → scopes that it implies.
        scopes_of: function from a user's claims to the scopes that clients may get for the user. None grants all
            requested scopes.
        secret: the secret from which keys are derived. None means the provider's client secret. A changed secret ends
            all logins.
        access_seconds: lifetime of an access token. When a grant ends, its tokens become invalid immediately.
        clock: returns seconds since the epoch.
        fetch: function that returns the document at a client ID's URL, or raises OSError. None permits only public
            addresses.

    Raises:
        AuthorizationError: the configuration is contradictory or insecure.
        RuntimeError: a library is missing.
    """

    def __init__(
        self,
        provider: LoginProvider,
        resource: str,
        *,
        allow: Collection[str],
        required_scopes: Sequence[str] = (),
        scope_hierarchy: Mapping[str, Sequence[str]] | None = None,
        scopes_of: Callable[[Json], Iterable[str]] | None = None,
        secret: str | None = None,
        access_seconds: float = 900.0,
        clock: Callable[[], float] = time.time,
        fetch: Callable[[str], Awaitable[bytes]] | None = None,
    ) -> None:
        secret = provider.client_secret if secret is None else secret
        _check_settings(secret, allow)
        try:
            parts = urlsplit(canonical(resource))
        except ValueError as error:
            raise AuthorizationError(str(error)) from None
        prefix = parts.path.rpartition("/")[0]
        self.issuer = urlunsplit((parts.scheme, parts.netloc, prefix, "", ""))
        self.authorization = Authorization(
            issuer=self.issuer,
            resource=resource,
            verify=self._verify,
            required_scopes=required_scopes,
            scope_hierarchy=scope_hierarchy,
            clock=clock,
        )
        self.origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._answers = self._endpoints()
        self.paths = {prefix + path: path for path in self._answers} | {path: path for path in self._answers}
        self.paths |= dict.fromkeys((SERVER_WELL_KNOWN, SERVER_WELL_KNOWN + prefix), SERVER_WELL_KNOWN)
        self._prefix = prefix
        self._provider = provider
        self._allow = frozenset(one if one.startswith("sub:") else one.lower() for one in allow)
        self._scopes_of = scopes_of
        self._keys = TokenKeys(secret, self.issuer)
        self._access_seconds = access_seconds
        self._clock = clock
        self._secure = parts.scheme == "https"
        self._cookie = f"{'__Host-' if self._secure else ''}mcp-login-{digest(self.issuer)[:8]}"
        self._grants = GrantStore(MemoryStore())
        self._documents = ClientMetadataCache(fetch, clock)
        self._logins = TokenBucket(_LOGINS, LOGIN_SECONDS, clock)
        self._logins_of = PerClientCache(lambda: TokenBucket(_LOGINS_OF_ONE, LOGIN_SECONDS, clock))
        self._name = "this server"
        self._supported: Callable[[], Sequence[str]] = lambda: merge_scopes(required_scopes)

    def _endpoints(self) -> dict[str, tuple[str, Callable[[OAuthEndpointRequest], Awaitable[OAuthEndpointResponse]]]]:
        return {
            SERVER_WELL_KNOWN: ("GET", self._describe),
            "/authorize": ("GET", self._authorize),
            "/auth/consent": ("POST", self._consent),
            "/auth/callback": ("GET", self._callback),
            "/token": ("POST", self._token),
            "/register": ("POST", self._register),
            "/revoke": ("POST", self._revoke),
        }

    def bind(self, store: SharedStore | None, name: str, supported: Callable[[], Sequence[str]]) -> None:
        """Set the shared store, the server's name, and a function that returns the supported scopes."""
        if store is not None:
            self._grants = GrantStore(store)
        self._name, self._supported = name, supported

    def allowed_method(self, path: str) -> str:
        """Return the HTTP method that a path in `paths` accepts."""
        return self._answers[self.paths[path]][0]

    async def answer(self, path: str, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Return the response to a request for a path in `paths`."""
        try:
            return await self._answers[self.paths[path]][1](request)
        except OAuthRequestError as refusal:
            return _json({"error": refusal.code, "error_description": str(refusal)}, refusal.status)
        except OSError as error:  # the store or the login provider is unreachable
            log.error("login: %s", error)
            return _json({"error": "temporarily_unavailable", "error_description": "Try again later"}, 503)

    async def provider_token(self, principal: Principal | None) -> str:
        """Return the provider's token for a caller (`ctx.principal`). A token that expires soon is refreshed.

        Raises:
            AuthorizationError: the grant has ended, or the principal does not belong to this proxy.
            OSError: the store or the provider is unreachable.
        """
        ours = principal is not None and principal.issuer == self.issuer
        grant_id = str(principal.claims.get("sid", "")) if principal is not None and ours else ""
        for _ in range(2):  # another request may renew the token during the first attempt
            grant = await self._grants.find(grant_id) if ours else None
            held = self._keys.decrypt(grant["vault"], grant_id) if grant is not None else None
            if grant is None or held is None:
                break
            if not _ends_soon(held, self._clock(), 30.0):
                return str(held["access"])
            try:
                held = await self._renew(held)
            except ProviderRefusedError:
                await self._grants.end(grant_id)
                break
            after = {**grant, "vault": self._keys.encrypt(held, grant_id)}
            if await self._grants.change(grant_id, grant, after):
                return str(held["access"])
        raise AuthorizationError("the provider's token is no longer available\nhint: log in again from the client")

    # -- metadata and registration -------------------------------------------------------------------------------

    async def _describe(self, _request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Return the metadata of the authorization server (RFC 8414)."""
        supported = list(self._supported())
        return _json(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "revocation_endpoint": f"{self.issuer}/revoke",
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
                "client_id_metadata_document_supported": True,
                **({"scopes_supported": supported} if supported else {}),
            }
        )

    async def _register(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Register a client (RFC 7591), whose ID is the signed registration, so that the server stores nothing."""
        name, uris = read_client_registration(request.body)
        now = int(self._clock())
        client_id = self._keys.sign("client", {"name": name, "redirect_uris": uris, "iat": now})
        return _json(
            {
                "client_id": client_id,
                "client_id_issued_at": now,
                "redirect_uris": uris,
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                **({"client_name": name} if name else {}),
            },
            201,
        )

    def _label_of(self, asked: Mapping[str, str]) -> str:
        client_id = asked.get("client_id", "")
        if self._keys.read("client", client_id) is None and not is_client_metadata_url(client_id):
            raise OAuthRequestError("invalid_client", "This client is not registered here", 401)
        return _short_id(client_id)

    async def _find_client(self, client_id: str) -> ProxyClient | None:
        read = self._keys.read("client", client_id)
        if read is not None:
            return ProxyClient(client_id, _short_id(client_id), read["name"], tuple(read["redirect_uris"]))
        described = await self._documents.find(client_id) if is_client_metadata_url(client_id) else None
        return None if described is None else ProxyClient(client_id, _short_id(client_id), *described)

    # -- browser -------------------------------------------------------------------------------------------------

    async def _authorize(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Show the consent page for an authorization request (RFC 6749 §4.1.1)."""
        asked = request.fields
        client, uri = await self._find_client(asked.get("client_id", "")), asked.get("redirect_uri", "")
        if client is None:
            return _page(
                400, error_page("The program that sent you here is not registered. Remove and re-add the server there.")
            )
        if not is_registered_redirect(client.redirect_uris, uri):
            return _page(400, error_page("The redirect URI in the request is not registered for this program."))
        wrong = self._wrong_request(asked)
        if wrong is not None:
            return self._to_client(uri, asked.get("state"), error=wrong[0], error_description=wrong[1])
        browser = request.cookies.get(self._cookie, "")
        if not _BROWSER.fullmatch(browser):
            browser = secrets.token_urlsafe(32)
        scopes = self._granted(asked.get("scope", ""))
        agreed = {
            "client": client.label,
            "redirect_uri": uri,
            "state": asked.get("state"),
            "challenge": asked["code_challenge"],
            "scope": " ".join(scopes),
            "browser": digest(browser),
            "exp": self._clock() + LOGIN_SECONDS,
        }
        page = consent_page(
            server=self._name,
            provider=self._provider.name,
            client=client.name,
            page=client.id if is_client_metadata_url(client.id) else "",
            redirect_uri=uri,
            scopes=scopes,
            action=f"{self._prefix}/auth/consent",
            request=self._keys.sign("consent", agreed),
        )
        attributes = (
            f"Path=/; HttpOnly; SameSite=Lax; Max-Age={2 * LOGIN_SECONDS:.0f}{'; Secure' if self._secure else ''}"
        )
        return _page(200, page, ("set-cookie", f"{self._cookie}={browser}; {attributes}"))

    def _wrong_request(self, asked: Mapping[str, str]) -> tuple[str, str] | None:
        """Return an error code and a reason if a client's request is invalid."""
        if asked.get("response_type") != "code":
            return "unsupported_response_type", "response_type must be code"
        if asked.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(asked.get("code_challenge", "")):
            return "invalid_request", "PKCE with S256 is required: code_challenge, code_challenge_method"
        if len(asked.get("state", "")) > _LONGEST_STATE:
            return "invalid_request", f"state has more than {_LONGEST_STATE} characters"
        if not self._is_here(asked.get("resource")):
            return "invalid_target", f"resource must be {self.authorization.resource}"
        return None

    async def _consent(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Redirect the browser to the provider after consent, or to the client without consent."""
        agreed = self._keys.read("consent", request.fields.get("request", ""), self._clock())
        if agreed is None or not self._same_browser(request, agreed["browser"]):
            return _page(
                400, error_page("This page has expired, or is from another browser. Start again in your program.")
            )
        if request.fields.get("decision") != "allow":
            return self._to_client(agreed["redirect_uri"], agreed["state"], error="access_denied")
        if not (self._logins_of.of(request.address).take() and self._logins.take()):
            return _page(503, error_page("Too many logins are in progress. Try again in a few minutes."))
        verifier = secrets.token_urlsafe(48)
        state = await self._grants.begin_login({**agreed, "verifier": verifier})
        return _redirect(self._provider.login_url(f"{self.issuer}/auth/callback", state, _challenge(verifier)))

    async def _callback(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Handle the redirect from the provider: identify the user, and redirect to the client with a code."""
        asked, state = request.fields, request.fields.get("state", "")
        login = await self._grants.find_login(state)
        if (
            login is None
            or not self._same_browser(request, login["browser"])
            or login["exp"] + LOGIN_SECONDS < self._clock()
        ):
            return _page(400, error_page("This login is from another browser, has ended, or has expired. Start again."))
        if not await self._grants.end_login(state, login):
            return _page(400, error_page("This login has ended. Start again."))
        back, client_state = login["redirect_uri"], login["state"]
        if "code" not in asked:
            return self._to_client(back, client_state, error="access_denied", error_description="The provider refused")
        form = {
            "grant_type": "authorization_code",
            "code": asked["code"],
            "redirect_uri": f"{self.issuer}/auth/callback",
            "code_verifier": login["verifier"],
        }
        try:
            held = await self._provider.redeem(form, self._clock())
            person = await self._provider.token_owner_claims(held["access"])
        except ProviderRefusedError as refusal:
            log.warning("login: %s", refusal)
            return self._to_client(back, client_state, error="access_denied", error_description="The provider refused")
        except OSError as error:
            log.error("login: %s", error)
            return self._to_client(
                back, client_state, error="server_error", error_description="The provider is unavailable"
            )
        if person is None or not self._may_call(person):
            return self._to_client(back, client_state, error="access_denied", error_description="Account not allowed")
        return self._to_client(back, client_state, code=await self._keep_code(login, held, person))

    async def _keep_code(self, login: Json, held: Json, person: Json) -> str:
        grant_id = secrets.token_hex(16)
        waiting = {name: login[name] for name in ("client", "redirect_uri", "challenge")} | {"grant": grant_id}
        grant = {name: login[name] for name in ("client", "scope")}
        grant |= {"person": person, "vault": self._keys.encrypt(held, grant_id), "generation": 0}
        return await self._grants.issue_code(waiting, grant)

    def _same_browser(self, request: OAuthEndpointRequest, expected: str) -> bool:
        return hmac.compare_digest(digest(request.cookies.get(self._cookie, "")), expected)

    def _to_client(self, uri: str, state: str | None, **answer: str) -> OAuthEndpointResponse:
        """Redirect a browser to the client, with the issuer in the URL (RFC 9207)."""
        named = {**answer, **({} if state is None else {"state": state}), "iss": self.issuer}
        return _redirect(f"{uri}{'&' if '?' in uri else '?'}{urlencode(named)}")

    # -- tokens --------------------------------------------------------------------------------------------------

    async def _token(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Handle a token request (RFC 6749 §3.2)."""
        asked = request.fields
        client = self._label_of(asked)
        if not self._is_here(asked.get("resource")):
            raise OAuthRequestError("invalid_target", f"resource must be {self.authorization.resource}")
        if asked.get("grant_type") == "authorization_code":
            return await self._redeem_code(asked, client)
        if asked.get("grant_type") == "refresh_token":
            return await self._refresh(asked, client)
        raise OAuthRequestError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")

    async def _redeem_code(self, asked: Mapping[str, str], client: str) -> OAuthEndpointResponse:
        refusal = OAuthRequestError("invalid_grant", "The code was used, is too old, or belongs to another request")
        waiting = await self._grants.redeem_code(asked.get("code", ""))
        if waiting is None:
            raise refusal
        grant_id, verifier = waiting["grant"], asked.get("code_verifier", "")
        grant = await self._grants.find(grant_id)
        if grant is None:
            raise refusal
        after = {**grant, "generation": 1}
        if (
            waiting["client"] != client
            or waiting["redirect_uri"] != asked.get("redirect_uri")
            or not _VERIFIER.fullmatch(verifier)
            or not hmac.compare_digest(_challenge(verifier), waiting["challenge"])
            or not await self._grants.change(grant_id, grant, after)
        ):
            await self._grants.end(grant_id)
            raise refusal
        return self._tokens(grant_id, after, client)

    async def _refresh(self, asked: Mapping[str, str], client: str) -> OAuthEndpointResponse:
        """Return new tokens, or end the grant if the refresh token was used before (theft, RFC 9700 §4.14.2)."""
        shown = self._keys.read("refresh", asked.get("refresh_token", ""), self._clock())
        refusal = OAuthRequestError(
            "invalid_grant", "The refresh token was used, is too old, or belongs to another client"
        )
        if shown is None or shown["client"] != client:
            raise refusal
        grant_id = shown["sid"]
        grant = await self._grants.find(grant_id)
        if grant is None:
            raise refusal
        if grant["generation"] != shown["generation"]:
            await self._grants.end(grant_id)
            raise refusal
        scope = grant["scope"] if not asked.get("scope") else asked["scope"]
        if not set(scope.split()) <= set(grant["scope"].split()):
            raise OAuthRequestError("invalid_scope", "The scopes must be among those of the grant")
        after = await self._next_generation(grant_id, grant)
        if after is None or not await self._grants.change(grant_id, grant, after):
            await self._grants.end(grant_id)
            raise refusal
        return self._tokens(grant_id, {**after, "scope": scope}, client)

    async def _next_generation(self, grant_id: str, grant: Json) -> Json | None:
        """Return the next generation of a grant, or None if the account is no longer valid or permitted."""
        held = self._keys.decrypt(grant["vault"], grant_id)
        if held is None:
            return None
        try:
            if _ends_soon(held, self._clock(), self._access_seconds):
                held = await self._renew(held)
        except ProviderRefusedError:
            return None
        person = await self._provider.token_owner_claims(held["access"])
        if person is None or person["sub"] != grant["person"]["sub"] or not self._may_call(person):
            return None
        vault = self._keys.encrypt(held, grant_id)
        return {**grant, "person": person, "vault": vault, "generation": grant["generation"] + 1}

    async def _renew(self, held: Json) -> Json:
        if not held["refresh"]:
            raise ProviderRefusedError("the provider's token has expired, and no refresh token is stored")
        return await self._provider.redeem(
            {"grant_type": "refresh_token", "refresh_token": held["refresh"]}, self._clock()
        )

    def _tokens(self, grant_id: str, grant: Json, client: str) -> OAuthEndpointResponse:
        now = self._clock()
        scopes = grant["scope"].split()
        if self._scopes_of is not None:
            allowed = frozenset(self._scopes_of(dict(grant["person"])))
            scopes = [word for word in scopes if word in allowed]
        access = {
            "iss": self.issuer,
            "aud": self.authorization.resource,
            "sub": grant["person"]["sub"],
            "client_id": client,
            "scope": " ".join(scopes),
            "sid": grant_id,
            "iat": int(now),
            "exp": int(now + self._access_seconds),
            "jti": secrets.token_hex(8),
        }
        refresh = {
            "sid": grant_id,
            "client": client,
            "generation": grant["generation"],
            "exp": int(now + GRANT_SECONDS),
        }
        return _json(
            {
                "access_token": self._keys.sign("at+jwt", access),
                "token_type": "Bearer",
                "expires_in": int(self._access_seconds),
                "refresh_token": self._keys.sign("refresh", refresh),
                "scope": " ".join(scopes),
            }
        )

    async def _revoke(self, request: OAuthEndpointRequest) -> OAuthEndpointResponse:
        """Revoke a token by ending its grant, with all tokens of the grant (RFC 7009)."""
        client, token = self._label_of(request.fields), request.fields.get("token", "")
        shown = self._keys.read("refresh", token) or self._keys.read("at+jwt", token) or {}
        if client in (shown.get("client"), shown.get("client_id")):
            await self._grants.end(shown["sid"])
        return _json({})  # an invalid token gets an equal response (RFC 7009 §2.2)

    async def _verify(self, token: str) -> Json | None:
        claims = self._keys.read("at+jwt", token)
        grant = None if claims is None else await self._grants.find(claims["sid"])
        if claims is None or grant is None or not self._may_call(grant["person"]):
            return None
        return {**grant["person"], **claims}

    # -- permissions ---------------------------------------------------------------------------------------------

    def _may_call(self, person: Json) -> bool:
        names = {f"sub:{person['sub']}"}
        login = str(person.get("login", "")).lower()
        # A login name must not look like another kind of entry in `allow`, such as an email address.
        names |= {login} if login.replace("-", "").replace("_", "").isalnum() else set()
        email = str(person.get("email", "")).lower()
        email = email if "@" in email and person.get("email_verified") is True else ""
        claim = self._provider.domain_claim
        domain = str(person.get(claim, "")).lower() if claim else email.rpartition("@")[2]
        names |= {email} if email else set()
        names |= {f"@{domain}"} if domain else set()
        return "*" in self._allow or not names.isdisjoint(self._allow)

    def _granted(self, scope: str) -> tuple[str, ...]:
        """Return the requested scopes, or by default the required scopes, without unsupported scopes."""
        supported = self._supported()
        asked = scope.split() or self.authorization.required_scopes
        return tuple(dict.fromkeys(word for word in asked if word in supported))

    def _is_here(self, resource: str | None) -> bool:
        """Return True if `resource` is None or this server (RFC 8707)."""
        if resource is None:
            return True
        try:
            return canonical(resource).rstrip("/") == self.authorization.resource.rstrip("/")
        except ValueError:
            return False


def _check_settings(secret: str, allow: Collection[str]) -> None:
    if find_spec("httpx") is None:
        raise RuntimeError("an OAuth proxy needs httpx\nhint: pip install 'mcpfactory-runtime[auth]'")
    if len(secret) < _SHORTEST_SECRET:
        raise AuthorizationError(
            f"the secret has fewer than {_SHORTEST_SECRET} characters\nhint: create a secret with secrets.token_urlsafe(32), and store the secret"
        )
    if not allow or isinstance(allow, str):
        raise AuthorizationError(
            "the permitted users are missing\nhint: set allow=('ada', '@example.com'), or ('*',) for everybody"
        )


def _short_id(client_id: str) -> str:
    return digest(client_id)[:24]


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def _ends_soon(held: Json, now: float, margin: float) -> bool:
    return bool(held["expires"]) and held["expires"] - now <= margin


def _json(data: Json, status: int = 200) -> OAuthEndpointResponse:
    headers = (("content-type", "application/json"), ("cache-control", "no-store"))
    return OAuthEndpointResponse(status, json.dumps(data).encode(), headers)


def _page(status: int, text: str, *headers: tuple[str, str]) -> OAuthEndpointResponse:
    return OAuthEndpointResponse(
        status, text.encode(), (("content-type", "text/html; charset=utf-8"), *_PAGE, *headers)
    )


def _redirect(url: str) -> OAuthEndpointResponse:
    return OAuthEndpointResponse(
        303, b"", (("location", url), ("cache-control", "no-store"), ("referrer-policy", "no-referrer"))
    )
