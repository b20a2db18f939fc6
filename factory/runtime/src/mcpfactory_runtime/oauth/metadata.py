"""What is known of an authorization server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.oauth.model import Fetch, Json, OAuthError, Steps, check_url, fetch, json_object, origin, texts

__all__ = ["ANY_METHOD", "AuthorizationServer", "read_metadata"]

ANY_METHOD: Final = ("client_secret_basic", "client_secret_post", "none")
"""How clients may authenticate where nothing says how."""

_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "device_authorization_endpoint")


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """What we need of an authorization server's metadata (RFC 8414, OpenID Connect Discovery).

    `issuer` is "" when only endpoints are known, as from an OpenAPI document.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    device_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ("client_secret_basic",)  # RFC 8414 §2: the default
    names_issuer: bool = False
    takes_documents: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.issuer or origin(self.token_endpoint)

    @classmethod
    def from_metadata(cls, data: Json, issuer: str, url: str, endpoints: Iterable[str]) -> AuthorizationServer:
        """Return what the metadata of `issuer` says; `url` is that of the API or MCP server that tokens are for.

        Raises:
            OAuthError: `unsafe_url`: one of `endpoints` must not be used.
        """
        found = {name: check_url(data[name], url, name) for name in endpoints if data.get(name) is not None}
        return cls(
            issuer,
            found.get("authorization_endpoint", ""),
            found.get("token_endpoint", ""),
            found.get("registration_endpoint", ""),
            found.get("device_authorization_endpoint", ""),
            scopes=texts(data.get("scopes_supported")),
            auth_methods=texts(data.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
            names_issuer=data.get("authorization_response_iss_parameter_supported") is True,
            takes_documents=data.get("client_id_metadata_document_supported") is True,
        )


def read_metadata(url: str, base_url: str) -> Steps[AuthorizationServer]:
    """Yield the metadata at `url`, an `openIdConnectUrl` or `oauth2MetadataUrl`; one without a well-known path gets OpenID's.

    Its issuer must be of the same origin, so that a document on one host cannot speak for another.

    Args:
        url: where it is.
        base_url: of the API; http endpoints on this machine are for an API on this machine only.

    Raises:
        OAuthError: `unsafe_url`, `bad_metadata`, `issuer_mismatch`, `bad_response`.
    """
    if "/.well-known/" not in urlsplit(url).path:
        url = f"{url.rstrip('/')}/.well-known/openid-configuration"
    answer = yield from fetch(
        Fetch("GET", check_url(url, base_url, "the metadata URL"), {"Accept": "application/json"})
    )
    if answer.status != 200:
        raise OAuthError("bad_metadata", f"{url} answered with HTTP status {answer.status}")
    data = json_object(answer, f"the metadata at {url}")
    issuer = data.get("issuer")
    if not isinstance(issuer, str) or origin(issuer) != origin(url):
        raise OAuthError("issuer_mismatch", f"the metadata at {url} says that it is of {issuer!r}")
    server = AuthorizationServer.from_metadata(data, issuer, base_url, _ENDPOINTS)
    if not server.token_endpoint:
        raise OAuthError("bad_metadata", f"the metadata at {url} names no token endpoint")
    return server
