"""Client identity and authentication at an authorization server (basic/authorization, Client Registration)."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus, urlsplit

from mcpfactory_runtime.oauth.model import (
    AuthorizationServer,
    Fetch,
    OAuthError,
    Steps,
    fetch,
    is_loopback,
    json_object,
)
from mcpfactory_runtime.types import Json

_METHODS: Final = ("client_secret_basic", "client_secret_post", "none")  # in the order of preference for a secret

_SIGNED: Final = "private_key_jwt"


@dataclass(frozen=True, slots=True, repr=False)
class Registration:
    """A client as one authorization server knows it; `method` is how it authenticates at the token endpoint."""

    client_id: str
    client_secret: str = ""
    method: str = "none"


@dataclass(frozen=True, slots=True)
class Identity:
    """The person's settings for the client.

    Attributes:
        name: shown on consent pages.
        redirect_uri: the URI to which browsers are redirected; loopback (a native application) or https (a web one).
        client_id, client_secret: registered beforehand, at `issuer` only; without an issuer, the secret is never
            sent.
        issuer: the authorization server to which the two belong, and the one to choose among several.
        document: the https URL of our client ID metadata document.
        signs: True if a private key replaces the secret.
    """

    name: str
    redirect_uri: str
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    document: str = ""
    signs: bool = False


def register(identity: Identity, server: AuthorizationServer) -> Steps[Registration]:
    """Yield a registration: the one from beforehand, else our metadata document, else a new one.

    Raises:
        OAuthError: `issuer_mismatch`, `no_issuer`, `no_registration`, `unsupported_method`, or the server's own code.
    """
    if identity.client_id:
        if identity.issuer and identity.issuer != server.issuer:
            raise OAuthError(
                "issuer_mismatch",
                f"the client id is registered at {identity.issuer}, but the server now uses {server.issuer}\n"
                "hint: register there, and give that client id",
            )
        if identity.client_secret and not identity.issuer:
            raise OAuthError(
                "no_issuer",
                f"nothing says which authorization server the client secret is for, and {server.issuer} would be given it\n"
                "hint: give issuer, the URL of the one where the client is registered",
            )
        if identity.signs:
            return Registration(identity.client_id, "", _signed_method(server))
        return Registration(identity.client_id, identity.client_secret, _method(identity.client_secret, "", server))
    if identity.document and server.takes_documents:
        return Registration(identity.document)
    if server.registration_endpoint:
        return (yield from _register_anew(identity, server))
    raise OAuthError(
        "no_registration",
        f"{server.issuer} registers no clients by itself\nhint: register there, and give client id and secret",
    )


def authenticate_client(registration: Registration, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers of a token request, with our proof added (RFC 6749 §2.3.1)."""
    if registration.method == "client_secret_basic":
        pair = f"{quote_plus(registration.client_id)}:{quote_plus(registration.client_secret)}"
        return form, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    secret = {"client_secret": registration.client_secret} if registration.method == "client_secret_post" else {}
    client_id = {"client_id": registration.client_id} if registration.client_id else {}
    return {**form, **client_id, **secret}, {}


def _register_anew(identity: Identity, server: AuthorizationServer) -> Steps[Registration]:
    wanted = next((method for method in reversed(_METHODS) if method in server.auth_methods), "none")
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
    data = json_object(answer, f"the answer of {server.registration_endpoint}")
    client_id, secret = data.get("client_id"), str(data.get("client_secret") or "")
    if answer.status not in (200, 201) or not isinstance(client_id, str):
        code = str(data.get("error") or "no_registration")
        raise OAuthError(code, f"{server.issuer} did not register us: {data.get('error_description') or code}")
    chosen = data.get("token_endpoint_auth_method")
    return Registration(client_id, secret, _method(secret, str(chosen or ""), server))


def _signed_method(server: AuthorizationServer) -> str:
    """Return the authentication method for a client with a key, if the server supports one."""
    if _SIGNED not in server.auth_methods:
        known = ", ".join(server.auth_methods)
        raise OAuthError("unsupported_method", f"{server.issuer} takes no signed statements of clients, but {known}")
    return _SIGNED


def _method(secret: str, chosen: str, server: AuthorizationServer) -> str:
    """Return our authentication method: the registered one, else the first that both sides support."""
    known = (chosen,) if chosen else server.auth_methods
    for method in _METHODS if secret else ("none",):
        if method in known or not secret:
            return method
    raise OAuthError("unsupported_method", f"{server.issuer} wants clients to authenticate by {', '.join(known)}")
