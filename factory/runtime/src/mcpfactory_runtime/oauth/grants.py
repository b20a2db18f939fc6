"""OAuth clients: identity and authentication (basic/authorization, Client Registration), and grants.

All grants raise OAuthError if the authorization server refuses, or if its response is invalid.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from mcpfactory_runtime.oauth.steps_and_metadata import (
    ANY_METHOD,
    AuthorizationServer,
    Fetch,
    OAuthError,
    Pause,
    Steps,
    Visit,
    fetch,
    is_loopback,
    is_same_issuer,
    parse_json_body,
    post_form,
)
from mcpfactory_runtime.types import Json


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The response of a token endpoint. `expires_in` is in seconds."""

    access_token: str
    refresh_token: str = ""
    expires_in: float | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GrantContext:
    """Parties of a grant: the authorization server, our registration there, and the resource.

    With `private_key_jwt`, `prove` maps an audience to the form fields that replace a secret.
    """

    server: AuthorizationServer
    registration: Registration
    resource: str
    prove: Callable[[str], dict[str, str]] | None = None


def authorization_code_grant(context: GrantContext, redirect_uri: str, scopes: Iterable[str]) -> Steps[Tokens]:
    """Let the user log in and consent in a browser, and return the tokens."""
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": context.registration.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **_scope(scopes),
        **_resource(context),
    }
    page = context.server.authorization_endpoint
    returned_url = yield Visit(f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(asked)}")
    code = _code(str(returned_url), state, context.server)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    return (yield from _token(context, form))


def refresh_token_grant(context: GrantContext, refresh_token: str) -> Steps[Tokens]:
    """Return new tokens, with the old refresh token if the response has no refresh token."""
    tokens = yield from _token(context, {"grant_type": "refresh_token", "refresh_token": refresh_token})
    return replace(tokens, refresh_token=tokens.refresh_token or refresh_token)


def client_credentials_grant(context: GrantContext, scopes: Iterable[str]) -> Steps[Tokens]:
    """Return tokens for the client itself, without a user."""
    return (yield from _token(context, {"grant_type": "client_credentials", **_scope(scopes)}))


def jwt_bearer_grant(context: GrantContext, assertion: str) -> Steps[Tokens]:
    """Return tokens for a signed assertion, without a user (RFC 7523 §2.1)."""
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
    return (yield from _token(context, form))


def device_code_grant(context: GrantContext, scopes: Iterable[str]) -> Steps[Tokens]:
    """Let the user consent on any device (RFC 8628), and return the tokens."""
    asked = {"client_id": context.registration.client_id, **_scope(scopes), **_resource(context)}
    form, headers = _authenticated(context, asked)
    answer = yield from post_form(context.server.device_endpoint, form, headers)
    data = parse_json_body(answer, f"the answer of {context.server.device_endpoint}")
    device, code = data.get("device_code"), data.get("user_code")
    page = data.get("verification_uri")
    if answer.status != 200 or not (isinstance(device, str) and isinstance(code, str) and isinstance(page, str)):
        raise _refusal(data, f"{context.server.name} returned no device code")
    yield Visit(page, code)
    interval = data.get("interval", 5)
    pause = float(interval) if isinstance(interval, int | float) else 5.0
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device}
    while True:
        yield Pause(pause)
        try:
            return (yield from _token(context, form))
        except OAuthError as error:
            if error.code not in ("authorization_pending", "slow_down"):
                raise
            pause += 5 if error.code == "slow_down" else 0  # RFC 8628 §3.5


def _code(url: str, state: str, server: AuthorizationServer) -> str:
    """Return the code of an authorization response, after checks of the state and the issuer (RFC 9207 §2.4)."""
    answered = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if not secrets.compare_digest(answered.get("state", "").encode(), state.encode()):
        raise OAuthError("state_mismatch", "the browser returned a response to another login request")
    issuer = answered.get("iss")
    if issuer is None and server.names_issuer:
        raise OAuthError("issuer_mismatch", f"the response does not name {server.issuer} as its issuer (RFC 9207)")
    if issuer is not None and server.issuer and issuer != server.issuer:
        raise OAuthError("issuer_mismatch", f"the response is not from {server.issuer} (RFC 9207)")
    if "error" in answered:
        raise _refusal(answered, f"{server.name} refused")
    if not answered.get("code"):
        raise OAuthError("bad_response", f"{server.name} redirected the browser without a code")
    return answered["code"]


def _token(context: GrantContext, form: dict[str, str]) -> Steps[Tokens]:
    form, headers = _authenticated(context, {**form, **_resource(context)})
    answer = yield from post_form(context.server.token_endpoint, form, headers)
    data = parse_json_body(answer, f"the answer of {context.server.token_endpoint}")
    token = data.get("access_token")
    if answer.status != 200 or not isinstance(token, str) or not token:
        raise _refusal(data, f"{context.server.name} returned no token")
    if str(data.get("token_type", "")).lower() != "bearer":
        raise OAuthError("bad_response", f"{context.server.name} returned a token of type {data.get('token_type')!r}")
    expires, scope, refresh = data.get("expires_in"), data.get("scope"), data.get("refresh_token")
    return Tokens(
        token,
        refresh if isinstance(refresh, str) else "",
        float(expires) if isinstance(expires, int | float) else None,
        tuple(scope.split()) if isinstance(scope, str) else None,
    )


def _refusal(data: Mapping[str, object], what: str, otherwise: str = "bad_response") -> OAuthError:
    """Return the error for a refusal."""
    code = str(data.get("error") or otherwise)
    return OAuthError(code, f"{what}: {data.get('error_description') or code}")


def _authenticated(context: GrantContext, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    if context.prove is not None and context.registration.method == "private_key_jwt":
        return {**form, **context.prove(context.server.issuer or context.server.token_endpoint)}, {}
    return authenticate_client(context.registration, form)


def _scope(scopes: Iterable[str]) -> dict[str, str]:
    text = " ".join(scopes)
    return {"scope": text} if text else {}


def _resource(context: GrantContext) -> dict[str, str]:
    return {"resource": context.resource} if context.resource else {}


_LIFETIME: Final = 300  # seconds that a client assertion is valid
_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN: Final = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - a name


class AssertionSource(Protocol):
    """Source of assertions about the user or program that requests a token."""

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Return an assertion for an authorization server and an MCP server, or raise OAuthError."""


@dataclass(frozen=True, slots=True, repr=False)
class PrivateKey:
    """Private key of a client that authenticates by `private_key_jwt`."""

    pem: str
    algorithm: str = "ES256"
    key_id: str = ""

    def proof(self, client_id: str, audience: str, now: float) -> dict[str, str]:
        """Return the form fields that replace a secret in a token request, or raise OAuthError."""
        try:
            import jwt  # noqa: PLC0415 - an optional library
        except ImportError:
            raise _no_library() from None
        claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": secrets.token_urlsafe(24)}
        times = {"iat": int(now), "exp": int(now) + _LIFETIME}
        headers = {"kid": self.key_id} if self.key_id else None
        try:
            signed = jwt.encode({**claims, **times}, self.pem, algorithm=self.algorithm, headers=headers)
        except NotImplementedError:  # PyJWT is installed without cryptography
            raise _no_library() from None
        except (ValueError, TypeError, jwt.PyJWTError):
            raise OAuthError(
                "bad_key", f"the private key cannot be used with {self.algorithm}\nhint: give its PEM and its algorithm"
            ) from None
        return {"client_id": client_id, "client_assertion_type": _TYPE, "client_assertion": signed}


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """A program that has a JWT from the platform where it runs, which `token` returns for an issuer."""

    token: Callable[[str], str]

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Return the platform's JWT."""
        yield from ()
        return self.token(issuer)


@dataclass(frozen=True, slots=True, repr=False)
class IdentityProvider:
    """Identity provider of a company that controls access to MCP servers (Enterprise-Managed Authorization).

    The client `client_id` exchanges the user's ID token at `token_endpoint` for a grant. The MCP server's authorization
    server accepts this grant. Only `token_endpoint` receives the ID token.
    """

    token_endpoint: str
    id_token: Callable[[], str]
    client_id: str
    client_secret: str = ""

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Exchange the ID token for a grant, and return the grant."""
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": f"{_TOKEN}id-jag",
            "audience": issuer,
            "resource": resource,
            "subject_token": self.id_token(),
            "subject_token_type": f"{_TOKEN}id_token",
        }
        method = "client_secret_basic" if self.client_secret else "none"
        form, headers = authenticate_client(Registration(self.client_id, self.client_secret, method), form)
        answer = yield from post_form(self.token_endpoint, form, headers)
        data = parse_json_body(answer, f"the answer of {self.token_endpoint}")
        grant = data.get("access_token")
        if answer.status != 200 or not isinstance(grant, str) or data.get("issued_token_type") != f"{_TOKEN}id-jag":
            raise _refusal(data, f"the identity provider returned no grant for {resource}")
        return grant


def _no_library() -> OAuthError:
    return OAuthError(
        "no_library", "signing needs PyJWT with cryptography\nhint: pip install 'mcpfactory-runtime[auth]'"
    )


_SIGNED: Final = "private_key_jwt"


@dataclass(frozen=True, slots=True, repr=False)
class Registration:
    """Registration of a client at an authorization server."""

    client_id: str
    client_secret: str = ""
    method: str = "none"


@dataclass(frozen=True, slots=True)
class OAuthClientSettings:
    """The user's settings for the client.

    `client_id` and `client_secret` are existing credentials at `issuer`. Without `issuer`, the secret is never sent. If
    a resource has several authorization servers, `issuer` is preferred. `document` is the https URL of our client ID
    metadata document.
    """

    name: str
    redirect_uri: str
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    document: str = ""
    signs: bool = False


def register(identity: OAuthClientSettings, server: AuthorizationServer) -> Steps[Registration]:
    """Return a registration: the configured client ID, our metadata document, or else a new registration."""
    if identity.client_id:
        if identity.issuer and not is_same_issuer(identity.issuer, server.issuer):
            raise OAuthError(
                "issuer_mismatch",
                f"the client id is registered at {identity.issuer}, but the server now uses {server.issuer}\n"
                "hint: register a client there, and set its client ID",
            )
        if identity.client_secret and not identity.issuer:
            raise OAuthError(
                "no_issuer",
                f"the issuer of the client secret is unknown, so the secret is not sent to {server.issuer}\nhint: set "
                "issuer to the URL of the authorization server where the client is registered",
            )
        if identity.signs:
            return Registration(identity.client_id, "", _signed_method(server))
        return Registration(identity.client_id, identity.client_secret, _method(identity.client_secret, "", server))
    if identity.document and server.takes_documents:
        return Registration(identity.document)
    if server.registration_endpoint:
        return (yield from _register_client(identity, server))
    raise OAuthError(
        "no_registration",
        f"{server.issuer} does not support automatic client registration\nhint: register there, and set the "
        "client ID and secret",
    )


def authenticate_client(registration: Registration, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers of a request with client authentication (RFC 6749 §2.3.1)."""
    if registration.method == "client_secret_basic":
        pair = f"{quote_plus(registration.client_id)}:{quote_plus(registration.client_secret)}"
        return form, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    secret = {"client_secret": registration.client_secret} if registration.method == "client_secret_post" else {}
    client_id = {"client_id": registration.client_id} if registration.client_id else {}
    return {**form, **client_id, **secret}, {}


def _register_client(identity: OAuthClientSettings, server: AuthorizationServer) -> Steps[Registration]:
    wanted = next((method for method in reversed(ANY_METHOD) if method in server.auth_methods), "none")
    metadata: Json = {
        "client_name": identity.name,
        "redirect_uris": [identity.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native" if is_loopback(urlsplit(identity.redirect_uri).hostname) else "web",
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = Fetch("POST", server.registration_endpoint, headers, json.dumps(metadata).encode())
    answer = yield from fetch(request)
    data = parse_json_body(answer, f"the answer of {server.registration_endpoint}")
    client_id, secret = data.get("client_id"), str(data.get("client_secret") or "")
    if answer.status not in (200, 201) or not isinstance(client_id, str):
        raise _refusal(data, f"{server.issuer} rejected the client registration", "no_registration")
    chosen = data.get("token_endpoint_auth_method")
    return Registration(client_id, secret, _method(secret, str(chosen or ""), server))


def _signed_method(server: AuthorizationServer) -> str:
    """Return `private_key_jwt` if the server supports this method."""
    if _SIGNED not in server.auth_methods:
        known = ", ".join(server.auth_methods)
        raise OAuthError(
            "unsupported_method", f"{server.issuer} does not accept signed client assertions, only {known}"
        )
    return _SIGNED


def _method(secret: str, chosen: str, server: AuthorizationServer) -> str:
    """Return the registered authentication method, or the first method that both sides support."""
    known = (chosen,) if chosen else server.auth_methods
    for method in ANY_METHOD if secret else ("none",):
        if method in known or not secret:
            return method
    raise OAuthError(
        "unsupported_method", f"{server.issuer} accepts only these client authentication methods: {', '.join(known)}"
    )
