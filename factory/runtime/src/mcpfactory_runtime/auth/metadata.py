"""The document that tells clients where to get tokens (RFC 9728 §2, §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

__all__ = [
    "SERVER_WELL_KNOWN",
    "WELL_KNOWN",
    "canonical",
    "document",
    "is_local",
    "metadata_paths",
    "metadata_url",
    "server_url",
]

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
SERVER_WELL_KNOWN: Final = "/.well-known/oauth-authorization-server"

_LOCAL: Final = {"localhost", "127.0.0.1", "::1"}


def is_local(url: str) -> bool:
    """Whether a URL names this machine, where plain http is good enough."""
    return urlsplit(url).hostname in _LOCAL


def canonical(url: str) -> str:
    """Return a resource's URL as audiences name it: scheme and host in lower case, no slash alone (RFC 8707 §2).

    Raises:
        ValueError: it is not an https URL (http is for this machine only), or has a query or fragment.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} cannot be a protected resource\nhint: https://mcp.example.com/mcp")
    if parts.scheme == "http" and not is_local(url):
        raise ValueError(f"{url!r} would carry tokens without encryption\nhint: https://")
    return urlunsplit((parts.scheme, parts.netloc.lower(), "" if parts.path == "/" else parts.path, "", ""))


def metadata_url(resource: str) -> str:
    """Where a resource's document is: the well-known path goes between host and path (RFC 9728 §3.1)."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, "", ""))


def server_url(issuer: str) -> str:
    """Where an authorization server's own document is (RFC 8414 §3.1)."""
    parts = urlsplit(issuer)
    return urlunsplit((parts.scheme, parts.netloc, SERVER_WELL_KNOWN + parts.path.rstrip("/"), "", ""))


def metadata_paths(resource: str, endpoint: str) -> frozenset[str]:
    """Return the paths at which the document is served: the bare one, and those of the endpoint and of the resource's URL."""
    return frozenset({WELL_KNOWN, WELL_KNOWN + endpoint.rstrip("/"), WELL_KNOWN + urlsplit(resource).path.rstrip("/")})


def document(
    resource: str, issuers: Sequence[str], scopes: Sequence[str], name: str, documentation: str | None
) -> dict[str, Any]:
    """Return the document.

    Args:
        resource: the canonical URL.
        issuers: the authorization servers, at least one.
        scopes: what clients may ask for; `offline_access` is theirs to know and is left out.
        name: for people.
        documentation: URL of a page for developers.
    """
    metadata: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": list(issuers),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    supported = [scope for scope in scopes if scope != "offline_access"]
    if supported:
        metadata["scopes_supported"] = supported
    if documentation is not None:
        metadata["resource_documentation"] = documentation
    return metadata
