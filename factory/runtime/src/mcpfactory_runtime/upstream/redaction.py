"""Redaction of the server's own credentials in responses of an API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

from mcpfactory_runtime.server.results import ToolResult

REDACTED: Final = "[redacted]"


class Redaction:
    """Removal of secrets from texts, in unchanged, URL-encoded and JSON-escaped form.

    `secrets` must be sorted, longest first.
    """

    __slots__ = ("_forms", "_raw")

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = _all_forms(tuple(secrets))
        self._raw = [secret.encode() for secret in secrets]

    def content(self, content: bytes) -> bytes:
        """Return a body without unchanged secrets. `text` and `result` also remove other forms of the secrets."""
        for secret in self._raw:
            content = content.replace(secret, REDACTED.encode())
        return content

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers without secrets in their values."""
        return {name: self.text(value) for name, value in headers.items()}

    def result(self, result: ToolResult) -> ToolResult:
        """Return a tool result without the secrets."""
        content = [self._block(block) for block in result.content]
        if content == result.content:  # the content includes the structured content as text, so nothing was redacted
            return result
        structured, meta = self._value(result.structured), self._value(result.meta)
        return ToolResult(content, structured=structured, is_error=result.is_error, meta=meta)

    def _block(self, block: dict[str, Any]) -> dict[str, Any]:
        if isinstance(block.get("text"), str):
            return {**block, "text": self.text(block["text"])}
        return {**block, "resource": self._block(block["resource"])} if "resource" in block else block

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return value


_MOST_SEEN: Final = 256  # maximum number of remembered secrets; the oldest secret is dropped first
_seen: dict[str, None] = {}


def remember_secrets(secrets: Sequence[str]) -> None:
    """Remember the secrets of API calls, to redact text that does not belong to a call."""
    for secret in secrets:
        _seen.pop(secret, None)
        _seen[secret] = None
    while len(_seen) > _MOST_SEEN:
        del _seen[next(iter(_seen))]


def known_secrets_redaction() -> Redaction:
    """Return the `Redaction` of all remembered secrets."""
    return Redaction(sorted(_seen.copy(), key=len, reverse=True))


@lru_cache(maxsize=32)
def _all_forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the forms of all secrets, longest first, so that no part of a longer form remains."""
    return tuple(sorted({form for secret in secrets for form in secret_forms(secret)}, key=len, reverse=True))


def secret_forms(secret: str) -> set[str]:
    """Return the forms of a secret: unchanged, escaped in JSON as by Python or PHP, and URL-encoded."""
    escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    encoded = (
        quote(secret, errors="replace"),
        quote(secret, "", errors="replace"),
        quote_plus(secret, errors="replace"),
    )
    return {secret, *escaped, *(form.replace("/", "\\/") for form in escaped), *encoded}
