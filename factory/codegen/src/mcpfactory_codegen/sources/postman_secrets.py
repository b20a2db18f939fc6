"""Removal of credentials from Postman collections and environments."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_codegen.sources.translation_helpers import (
    REDACTED,
    VARIABLE,
    iterate_objects,
    redacted,
    strip_userinfo,
    table,
    text,
)

# JSONPath of a collection's `info`, or of the collection in an export that wraps it. The translation reads `variable` of
# both. The path matches nothing in other documents, so that the overlay is reported as unmatched.
_ENVIRONMENT_TARGET: Final = "$[?@.schema || @._postman_id || @.info.schema || @.info._postman_id]"
_SETTINGS: Final = frozenset(
    {
        "accessTokenUrl", "addTokenTo", "algorithm", "authUrl", "client_authentication", "grant_type", "headerPrefix", "in",
        "key", "realm", "redirect_uri", "refreshTokenUrl", "region", "scope", "service", "signatureMethod", "tokenType",
        "type", "version",
    }
)  # fmt: skip
"""Settings in an `auth` object that contain no credentials."""
_NOT_KEPT: Final = frozenset({"event", "cookie"})
_PROSE: Final = frozenset({"name", "description", "content"})
_SENT: Final = re.compile(r"((?:Bearer|Basic|Token|Digest)[ ]+)?(.*)", re.IGNORECASE | re.DOTALL)


def overlay_of_postman_environment(data: Any) -> dict[str, Any] | None:
    """Return an overlay that adds a Postman environment's variables to a collection, or None for other data.

    The overlay contains no values of credentials.
    """
    environment = table(data, "environment") or data
    if not isinstance(environment, dict) or not isinstance(environment.get("values"), list):
        return None
    variables = [one for _, one in iterate_objects(environment, "values") if one.get("enabled") is not False]
    title = text(environment, "name") or "Postman environment"
    action = {
        "target": _ENVIRONMENT_TARGET,
        "description": "add variables to the Postman collection",
        "update": {"variable": _kept(variables, "variable")},
    }
    return {"overlay": "1.0.0", "info": {"title": title, "version": "1"}, "actions": [action]}


def strip_secrets(data: dict[str, Any]) -> dict[str, Any]:
    """Remove scripts, cookies and values of credentials from a collection. The names of variables are kept."""
    kept: dict[str, Any] = _kept(data, "")
    return kept


def _kept(node: Any, key: str) -> Any:
    if isinstance(node, list):
        return [_kept(one, key) for one in node]
    if isinstance(node, str):
        plain = strip_userinfo(node) if "://" in node else node
        return redacted(plain, pairs=key not in _PROSE)
    if not isinstance(node, dict):
        return node
    if key == "auth":
        return {name: _without_settings(one) for name, one in node.items()}
    named = is_secret(text(node, "key") or text(node, "id")) or text(node, "type") == "secret"
    return {
        name: _covered(one) if named and name == "value" else _kept(one, name)
        for name, one in node.items()
        if name not in _NOT_KEPT
    }


def _without_settings(auth: Any) -> Any:
    """Remove the values of credentials from an `auth`, which is a list in version 2.1 and an object in version 2.0."""
    if isinstance(auth, list):
        return [
            one if text(one, "key") in _SETTINGS else {**one, "value": _covered(one.get("value"))}
            for one in auth
            if isinstance(one, dict)
        ]
    if isinstance(auth, dict):
        return {name: one if name in _SETTINGS else _covered(one) for name, one in auth.items()}
    return auth


def _covered(value: Any) -> Any:
    """Replace a credential by REDACTED, except variables, URLs, and the scheme before the credential."""
    if not isinstance(value, str):
        return value if isinstance(value, bool) or not value else REDACTED
    sent = _SENT.fullmatch(value)
    lead, secret = (sent[1] or "", sent[2]) if sent is not None else ("", value)
    if not secret or VARIABLE.fullmatch(secret.strip()):
        return value
    return redacted(strip_userinfo(value)) if "://" in value else f"{lead}{REDACTED}"
