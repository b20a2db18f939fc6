"""Credentials of connected CRMs, which the API sends along with sources: they do not reach a model."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_runtime import ToolCall, ToolResult

__all__ = ["without_secrets"]

_SECRET: Final = frozenset({"accessToken", "authToken", "refreshToken", "key", "stripeCustomerId"})
_HIDDEN: Final = "(hidden)"
_IN_TEXT: Final = re.compile(rf'("(?:{"|".join(sorted(_SECRET))})"\s*:\s*)"(?:[^"\\]|\\.)*"?')


def without_secrets(call: ToolCall, result: ToolResult) -> ToolResult:
    """Return the result with credentials replaced, in its text as well as in what is structured."""
    blocks = [
        {**block, "text": _IN_TEXT.sub(rf'\1"{_HIDDEN}"', block["text"])} if block.get("type") == "text" else block
        for block in result.content
    ]
    return ToolResult(blocks, _hidden(result.structured), is_error=result.is_error, meta=result.meta)


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _HIDDEN if name in _SECRET and isinstance(member, str) else _hidden(member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_hidden(member) for member in value]
    return value
