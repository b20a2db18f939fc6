"""What an API echoes of the server's own credentials, taken out of all that leaves: raw, escaped, or encoded."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html.entities import codepoint2name
from typing import Any, Final

from mcpfactory_runtime.server.results import ToolResult

__all__ = ["REDACTED", "Redaction", "remember_secrets", "seen_secrets"]

REDACTED: Final = "[redacted]"
_SHORTEST_CODE: Final = 8  # characters of base64 that are no accident


class Redaction:
    """Takes some secrets out of texts, in every spelling that an answer may give them.

    That is each character as it is, as an escape of JSON, of a URL, or of HTML; the whole in base64 (within other bytes too), or
    in hexadecimal digits.

    Args:
        secrets: what nobody should see, longest first.
    """

    __slots__ = ("_raw", "_secrets")

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = tuple(secrets)
        self._raw = [secret.encode() for secret in secrets]

    def content(self, content: bytes) -> bytes:
        """Return a body without the secrets as they are: what is no text has no other spelling."""
        for secret in self._raw:
            content = content.replace(secret, REDACTED.encode())
        return content

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        if not self._secrets:
            return text
        found, plain = _pattern(self._secrets)
        if not any(one in text for one in plain) and not any(one in text for one in _ESCAPES):
            return text
        return found.sub(REDACTED, text)

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers with values without the secrets."""
        return {name: self.text(value) for name, value in headers.items()}

    def result(self, result: ToolResult) -> ToolResult:
        """Return what a tool answers without the secrets, in its texts and in its structured content."""
        content = [self._block(block) for block in result.content]
        if content == result.content:  # the structured content is what the first text says
            return result
        structured, meta = self._value(result.structured), self._value(result.meta)
        return ToolResult(content, structured=structured, is_error=result.is_error, meta=meta)

    def _block(self, block: dict[str, Any]) -> dict[str, Any]:
        return {**block, "text": self.text(block["text"])} if block.get("type") == "text" else block

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return value


_MOST_SEEN: Final = 256  # tokens are renewed: the latest count
_seen: dict[str, None] = {}


def remember_secrets(secrets: Sequence[str]) -> None:
    """Note what calls of APIs carried, for what is written without knowing of which call it is."""
    for secret in secrets:
        _seen.pop(secret, None)
        _seen[secret] = None
    while len(_seen) > _MOST_SEEN:
        del _seen[next(iter(_seen))]


def seen_secrets() -> Redaction:
    """Return what takes the secrets that were noted out of texts."""
    return Redaction(sorted(_seen.copy(), key=len, reverse=True))


_ESCAPES: Final = ("%", "\\u", "\\/", "&")  # a text without them has a secret in one of few spellings, or not at all


@lru_cache(maxsize=32)
def _pattern(secrets: tuple[str, ...]) -> tuple[re.Pattern[str], list[str]]:
    """Return all spellings as one regular expression, and those that hold no escape, which are found faster."""
    spellings = [spelling for secret in secrets for spelling in _spellings(secret)]
    return re.compile("|".join(spellings)), [plain for secret in secrets for plain in _plain(secret)]


def _plain(secret: str) -> Iterator[str]:
    yield from {
        secret,
        secret.replace(" ", "+"),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    for code, _ in _base64(secret):
        yield from {code, code.replace("+", "-").replace("/", "_")}
    yield from (secret.encode().hex(), secret.encode().hex().upper())


def _spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret as regular expressions."""
    yield "".join(map(_character, secret))
    for code, last in _base64(secret):
        # What ends with the secret has one more character with bits of it, and padding after that.
        end = f"(?:{re.escape(last)}(?:=|%3[Dd]){{1,2}})?" if last else ""
        yield "".join(_OTHER_ALPHABET.get(one, one) for one in code) + end
    yield f"(?i:{secret.encode().hex()})"


def _base64(secret: str) -> Iterator[tuple[str, str]]:
    """Yield a secret in base64, as it stands alone or within other bytes, without characters that those have a part in.

    With each the last character where nothing follows the secret; "" where it belongs to the secret alone.
    """
    data = secret.encode()
    for offset in range(3):
        code = b64encode(bytes(offset) + data).decode("ascii").rstrip("=")
        shared = bool((offset + len(data)) % 3)
        own = code[(0, 2, 3)[offset] : len(code) - shared]
        if len(own) >= _SHORTEST_CODE:
            yield own, code[-1] if shared else ""


_OTHER_ALPHABET: Final = {"+": "(?:[+-]|%2[Bb])", "/": r"(?:\\?/|_|%2[Ff])"}  # as in URLs


def _character(one: str) -> str:
    """Return the spellings of one character: itself, and escapes of URLs, of JSON and of HTML, by number and by name."""
    percent = "".join(f"%{byte:02x}" for byte in one.encode())
    unicode = "".join(rf"\\u{unit:04x}" for unit in _utf16(one))
    entity = rf"&\#(?:0*{ord(one)}|x0*{ord(one):x});"
    ways = [re.escape(one), f"(?i:{percent}|{unicode}|{entity})"]
    if name := codepoint2name.get(ord(one)):
        ways.append(f"&{name};")
    if (escaped := json.dumps(one)[1:-1]) != one:
        ways.append(re.escape(escaped))
    ways += {"/": [r"\\/"], " ": [r"\+"]}.get(one, [])
    return f"(?:{'|'.join(ways)})"


def _utf16(one: str) -> list[int]:
    data = one.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]
