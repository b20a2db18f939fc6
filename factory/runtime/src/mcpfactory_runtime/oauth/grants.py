"""Getting tokens: by authorization code with PKCE, by device code, by refreshing, and on one's own behalf (OAuth 2.1 §4)."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcpfactory_runtime.oauth.metadata import AuthorizationServer
from mcpfactory_runtime.oauth.model import OAuthError, Pause, Steps, Visit, json_object, post_form
from mcpfactory_runtime.oauth.registration import Registration, prove

__all__ = ["Party", "Tokens", "by_code", "by_device", "by_refreshing", "on_own_behalf"]


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """What a token endpoint gave. `expires_in` is in seconds, None when not told; `scopes` None likewise."""

    access_token: str
    refresh_token: str = ""
    expires_in: float | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Party:
    """Both ends of a grant: the authorization server, and us; and the resource that tokens are for ("": not told)."""

    server: AuthorizationServer
    registration: Registration
    resource: str


def by_code(party: Party, redirect_uri: str, scopes: Iterable[str]) -> Steps[Tokens]:
    """Let the person agree in a browser, and exchange the code.

    Raises:
        OAuthError: `state_mismatch`, `issuer_mismatch`, `bad_response`, or the server's own code (`access_denied`).
    """
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": party.registration.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **_scope(scopes),
        **_resource(party),
    }
    page = party.server.authorization_endpoint
    came_back = yield Visit(f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(asked)}")
    code = _code(str(came_back), state, party.server)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    return (yield from _token(party, form))


def by_refreshing(party: Party, refresh_token: str) -> Steps[Tokens]:
    """Yield new tokens for a refresh token; the old one stays when no other is given. Raises OAuthError."""
    tokens = yield from _token(party, {"grant_type": "refresh_token", "refresh_token": refresh_token})
    return Tokens(tokens.access_token, tokens.refresh_token or refresh_token, tokens.expires_in, tokens.scopes)


def on_own_behalf(party: Party, scopes: Iterable[str]) -> Steps[Tokens]:
    """Tokens for the client itself, without a person (`client_credentials`). Raises OAuthError."""
    return (yield from _token(party, {"grant_type": "client_credentials", **_scope(scopes)}))


def by_device(party: Party, scopes: Iterable[str]) -> Steps[Tokens]:
    """Let the person agree on any device (RFC 8628): a `Visit` with a code, then asking until the answer is there.

    Raises:
        OAuthError: `bad_response`, `expired_token`, or the server's own code (`access_denied`).
    """
    asked = {"client_id": party.registration.client_id, **_scope(scopes), **_resource(party)}
    form, headers = prove(party.registration, asked)
    answer = yield from post_form(party.server.device_endpoint, form, headers)
    data = json_object(answer, f"the answer of {party.server.device_endpoint}")
    device, code = data.get("device_code"), data.get("user_code")
    page = data.get("verification_uri")
    if answer.status != 200 or not (isinstance(device, str) and isinstance(code, str) and isinstance(page, str)):
        wrong = str(data.get("error") or "bad_response")
        raise OAuthError(wrong, f"{party.server.name} gave no device code: {data.get('error_description') or wrong}")
    yield Visit(page, code)
    interval = data.get("interval", 5)
    pause = float(interval) if isinstance(interval, int | float) else 5.0
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device}
    while True:
        yield Pause(pause)
        try:
            return (yield from _token(party, form))
        except OAuthError as error:
            if error.code not in ("authorization_pending", "slow_down"):
                raise
            pause += 5 if error.code == "slow_down" else 0  # §3.5


def _code(url: str, state: str, server: AuthorizationServer) -> str:
    """Return the code of an authorization response, after RFC 9207 §2.4: nothing is believed before the issuer is."""
    told = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if not secrets.compare_digest(told.get("state", "").encode(), state.encode()):
        raise OAuthError("state_mismatch", "the browser came back with an answer to another question")
    issuer = told.get("iss")
    if issuer is None and server.names_issuer:
        raise OAuthError("issuer_mismatch", f"the answer does not say that it is from {server.issuer} (RFC 9207)")
    if issuer is not None and server.issuer and issuer != server.issuer:
        raise OAuthError("issuer_mismatch", f"the answer is not from {server.issuer} (RFC 9207)")
    if "error" in told:
        raise OAuthError(told["error"], f"{server.name} refused: {told.get('error_description') or told['error']}")
    if not told.get("code"):
        raise OAuthError("bad_response", f"{server.name} sent the browser back without a code")
    return told["code"]


def _token(party: Party, form: dict[str, str]) -> Steps[Tokens]:
    form, headers = prove(party.registration, {**form, **_resource(party)})
    answer = yield from post_form(party.server.token_endpoint, form, headers)
    data = json_object(answer, f"the answer of {party.server.token_endpoint}")
    token = data.get("access_token")
    if answer.status != 200 or not isinstance(token, str) or not token:
        code = str(data.get("error") or "bad_response")
        raise OAuthError(code, f"{party.server.name} gave no token: {data.get('error_description') or code}")
    if str(data.get("token_type", "")).lower() != "bearer":
        raise OAuthError("bad_response", f"{party.server.name} gave a token of type {data.get('token_type')!r}")
    expires, scope, refresh = data.get("expires_in"), data.get("scope"), data.get("refresh_token")
    return Tokens(
        token,
        refresh if isinstance(refresh, str) else "",
        float(expires) if isinstance(expires, int | float) else None,
        tuple(scope.split()) if isinstance(scope, str) else None,
    )


def _scope(scopes: Iterable[str]) -> dict[str, str]:
    text = " ".join(scopes)
    return {"scope": text} if text else {}


def _resource(party: Party) -> dict[str, str]:
    return {"resource": party.resource} if party.resource else {}
