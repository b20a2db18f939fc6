"""OAuth flows and OpenID Connect: the ways to a token that a server can go (OpenAPI 3.2 §4.29, §4.30). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from mcpfactory_codegen.ir import OAuthFlow

__all__ = ["read_flows", "read_scopes", "ways"]

_URL: Final = re.compile(r"[!-~]{1,2000}")  # printable ASCII
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,200}")  # RFC 6749 §3.3
_SCOPES: Final = 200
_WAYS: Final = {
    "clientCredentials": "client credentials",
    "authorizationCode": "a login in a browser",
    "deviceAuthorization": "a login by device code",
    "discovery": "a login or client credentials",
}


def read_flows(scheme: dict[str, Any]) -> tuple[OAuthFlow, ...]:
    """Return the usable flows of an oauth2 or openIdConnect scheme of 3.x; () when there is none.

    The implicit flow and the one with a user's password are gone from OAuth 2.1 and are not among them.
    """
    if scheme.get("type") == "openIdConnect":
        metadata = _url(scheme, "openIdConnectUrl")
        return (OAuthFlow("discovery", metadata_url=metadata),) if metadata else ()
    node = scheme.get("flows")
    flows = node if isinstance(node, dict) else {}
    own, code, device = (
        _object(flows, name) for name in ("clientCredentials", "authorizationCode", "deviceAuthorization")
    )
    found: list[OAuthFlow] = []
    if token := _url(own, "tokenUrl"):
        found.append(OAuthFlow("clientCredentials", token))
    if (token := _url(code, "tokenUrl")) and (page := _url(code, "authorizationUrl")):
        found.append(OAuthFlow("authorizationCode", token, page, refresh_url=_url(code, "refreshUrl")))
    if (token := _url(device, "tokenUrl")) and (page := _url(device, "deviceAuthorizationUrl")):
        found.append(OAuthFlow("deviceAuthorization", token, device_url=page, refresh_url=_url(device, "refreshUrl")))
    if not found and (metadata := _url(scheme, "oauth2MetadataUrl")):
        found.append(OAuthFlow("discovery", metadata_url=metadata))
    return tuple(found)


def read_scopes(node: Any) -> tuple[str, ...]:
    """Return the scopes of a security requirement; what cannot be a scope is left out."""
    items = node if isinstance(node, list) else ()
    return tuple(dict.fromkeys(one for one in items if isinstance(one, str) and _SCOPE.fullmatch(one)))[:_SCOPES]


def ways(flows: Iterable[OAuthFlow]) -> str:
    """Return the flows in words."""
    return " or ".join(_WAYS[flow.grant] for flow in flows) or "an access token made elsewhere is sent as bearer"


def _object(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _url(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value.strip() if isinstance(value, str) and _URL.fullmatch(value.strip()) else ""
