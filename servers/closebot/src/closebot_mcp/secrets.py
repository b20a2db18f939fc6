"""Credentials of connected CRMs, which the API sends along with sources: they do not reach a model, in answers or in errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime import ToolCall, ToolResult

__all__ = ["hidden_text", "without_secrets"]

_HIDDEN: Final = "(hidden)"
_NAMES: Final = frozenset(
    {
        *("accesstoken", "refreshtoken", "authtoken", "apitoken", "bearertoken", "idtoken", "token", "authorization"),
        *("apikey", "xapikey", "secret", "apisecret", "clientsecret", "webhooksecret", "signingsecret", "secretkey"),
        *("privatekey", "password", "credential", "credentials", "stripecustomerid"),
    }
)
"""Names of members in small letters, without `_` and `-`."""
_KEY: Final = "key"  # a credential of a source; in a field of a lead, the name of the field
_OF_FIELD: Final = frozenset({"value", "label", "fieldValue"})
_NAMED: Final = "|".join("[_-]?".join(name) for name in sorted(_NAMES, key=len, reverse=True))
# As text: a name, perhaps in quotes that are escaped as JSON within JSON is, and what is said of it. The bound keeps it linear in a run of backslashes.
_IN_TEXT: Final = re.compile(
    rf"""(?i)(?<![A-Za-z0-9])(?P<lead>(?P<quote>\\{{0,63}}["']?)(?:{_NAMED})(?P=quote)\s*[:=]\s*(?:bearer\s+)?)"""
    r"""(?P<value>\\{0,63}"[^"]*"?|'[^']*'?|\[[^\]]*\]?|\{[^{}]*\}?|[^\s"',;&}\]]+)"""
)
_KEY_IN_TEXT: Final = re.compile(
    r"""(?P<lead>(?P<quote>\\{0,63}")key(?P=quote)\s*:\s*)(?P<value>\\{0,63}"[^"]*"?|\[[^\]]*\]?|\{[^{}]*\}?)(?!\s*,\s*\\{0,63}"(?:value|label|fieldValue)\\{0,63}"\s*:)"""
)


def without_secrets(call: ToolCall, result: ToolResult) -> ToolResult:
    """Return the result with credentials replaced, in its text as well as in what is structured."""
    blocks = [
        {**block, "text": hidden_text(block["text"])} if block.get("type") == "text" else block
        for block in result.content
    ]
    return ToolResult(blocks, _hidden(result.structured), is_error=result.is_error, meta=result.meta)


def hidden_text(text: str) -> str:
    """Return a text without credentials: member by member where it is JSON, else by the names that stand before them."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            shown = _hidden(value)
            return text if shown == value else json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return _KEY_IN_TEXT.sub(_replaced, _IN_TEXT.sub(_replaced, text))


def _replaced(found: re.Match[str]) -> str:
    quote = "'" if found["value"].startswith("'") else found["quote"]
    return f"{found['lead']}{quote}{_HIDDEN}{quote}"


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _HIDDEN if _is_secret(name, value) else _hidden(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_hidden(member) for member in value]
    return hidden_text(value) if isinstance(value, str) else value


def _is_secret(name: str, of: Mapping[str, Any]) -> bool:
    if of[name] is None or isinstance(of[name], bool):  # whether there is one
        return False
    plain = name.lower().replace("_", "").replace("-", "")
    return plain in _NAMES or (plain == _KEY and not _OF_FIELD & of.keys())
