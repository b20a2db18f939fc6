"""From an MCP server to its authorization server (basic/authorization, Authorization Server Discovery)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcpfactory_runtime.oauth.challenge import Challenge
from mcpfactory_runtime.oauth.metadata import ANY_METHOD, AuthorizationServer
from mcpfactory_runtime.oauth.model import Fetch, Json, OAuthError, Steps, check_url, fetch, json_object, origin, texts

__all__ = ["Resource", "find_authorization_server", "find_resource"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A protected resource (RFC 9728). `scopes` is None when the document has none; `issuers` is never empty."""

    identifier: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None


def find_resource(url: str, challenge: Challenge) -> Steps[Resource | None]:
    """Yield the metadata of the MCP server at `url`; None when it has none, as in the first revision with authorization.

    Raises:
        OAuthError: `resource_mismatch`, `unsafe_url`, `bad_metadata`, `bad_response`.
    """
    named = challenge.parameters.get("resource_metadata")
    places = [check_url(named, url, "resource_metadata")] if named else list(_resource_places(url))
    for place in places:
        answer = yield from fetch(Fetch("GET", place, {"Accept": "application/json"}))
        if answer.status == 200:
            return _resource(json_object(answer, f"the resource metadata at {place}"), url)
        if named or answer.status >= 500:
            raise OAuthError("bad_metadata", f"there is no resource metadata at {place} (HTTP status {answer.status})")
    return None


def find_authorization_server(resource: Resource | None, url: str, issuer: str = "") -> Steps[AuthorizationServer]:
    """Yield the metadata of the resource's authorization server.

    Args:
        resource: from `find_resource`. None means the rules of the first revision with authorization: the server's
            origin is the issuer, with the endpoints `/authorize`, `/token` and `/register` if it has no metadata.
        url: of the MCP server.
        issuer: the one to take when the resource names several.

    Raises:
        OAuthError: `issuer_mismatch`, `no_pkce`, `unsafe_url`, `bad_metadata`, `bad_response`.
    """
    issuers = resource.issuers if resource else (origin(url),)
    chosen = issuer if issuer in issuers else issuers[0]
    check_url(chosen, url, "the authorization server")
    for place in _server_places(chosen):
        answer = yield from fetch(Fetch("GET", place, {"Accept": "application/json"}))
        if answer.status == 200:
            return _server(json_object(answer, f"the metadata at {place}"), chosen, url)
        if answer.status >= 500:
            raise OAuthError("bad_metadata", f"{place} answered with HTTP status {answer.status}")
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


def _resource(data: Json, url: str) -> Resource:
    identifier = data.get("resource")
    if not isinstance(identifier, str) or not _covers(identifier, url):
        raise OAuthError(
            "resource_mismatch", f"the resource metadata is about {identifier!r}, not about {url} (RFC 9728 §3.3)"
        )
    issuers = texts(data.get("authorization_servers"))
    if not issuers:
        raise OAuthError("bad_metadata", f"the resource metadata of {url} names no authorization server")
    scopes = texts(data["scopes_supported"]) if "scopes_supported" in data else None
    return Resource(identifier, issuers, scopes)


def _covers(identifier: str, url: str) -> bool:
    """Whether the identifier is the URL or a place above it: a root document speaks for all paths of its host."""
    try:
        above, here = urlsplit(identifier), urlsplit(url)
        same = (above.scheme, above.hostname, above.port) == (here.scheme, here.hostname, here.port)
    except ValueError:
        return False
    path = above.path.rstrip("/")
    return same and not above.fragment and (here.path.rstrip("/") == path or here.path.startswith(f"{path}/"))


def _server(data: Json, issuer: str, url: str) -> AuthorizationServer:
    if data.get("issuer") != issuer:
        raise OAuthError(
            "issuer_mismatch", f"the metadata of {issuer} says that it is {data.get('issuer')!r} (RFC 8414 §3.3)"
        )
    if "S256" not in texts(data.get("code_challenge_methods_supported")):
        raise OAuthError("no_pkce", f"the authorization server {issuer} does not say that it supports PKCE with S256")
    register = data.get("registration_endpoint")
    return AuthorizationServer(
        issuer,
        check_url(data.get("authorization_endpoint"), url, "authorization_endpoint"),
        check_url(data.get("token_endpoint"), url, "token_endpoint"),
        "" if register is None else check_url(register, url, "registration_endpoint"),
        scopes=texts(data.get("scopes_supported")),
        auth_methods=texts(data.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
        names_issuer=data.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=data.get("client_id_metadata_document_supported") is True,
    )
