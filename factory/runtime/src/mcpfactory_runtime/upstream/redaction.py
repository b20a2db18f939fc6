"""What an API echoes of the server's own credentials, taken out of all that leaves: raw, escaped, or encoded."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_runtime.server.results import ToolResult
from mcpfactory_runtime.upstream.escapes import layers, needless

__all__ = ["REDACTED", "Redaction", "remember_secrets", "seen_secrets"]

REDACTED: Final = "[redacted]"
_SHORTEST_CODE: Final = 8  # characters of base64 that are no accident
_LONG_WORD: Final = 4  # letters and digits in a row that few texts have
_MOST_WORDS: Final = 4  # shorter ones that few texts have together
_BETWEEN_DIGITS: Final = (
    " :,-"  # what stands between the bytes in hexadecimal; the hyphen last, as in a set of a regular expression
)


class Redaction:
    """Takes some secrets out of texts, in every spelling that an answer may give them.

    That is as they are, with characters escaped as in URLs, HTML, JSON, Python, C or mail, also one within the other; and the whole
    in base64 (within other bytes too, also as JSON escapes it), in hexadecimal digits, or in UTF-16.

    Args:
        secrets: what nobody should see, longest first.
    """

    __slots__ = ("_raw", "_secrets")

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = tuple(secrets)
        self._raw = [secret.encode() for secret in secrets]

    def content(self, content: bytes) -> bytes:
        """Return a body without the secrets as they are, in UTF-8 and UTF-16: what is no text has no other spelling."""
        for secret in self._raw:
            content = content.replace(secret, REDACTED.encode())
        if self._secrets and b"\0" in content:
            for wide in (one for secret in self._secrets for one in _wide(secret)):
                content = content.replace(wide, REDACTED.encode())
        return content

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        if not self._secrets:
            return text
        known = _spellings(self._secrets)
        for words in known.words:
            if words[0] in text and all(word in text for word in words):
                return known.taken_out(text)
        return known.taken_out(text) if "\0" in text or needless(text) else text

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


class _Spellings:
    """What is looked for.

    Args:
        secrets: longest first.

    Attributes:
        words: what a text has that has one of the secrets, unless letters are escaped: all words of one of these groups. No escape changes them.
    """

    __slots__ = ("_inside", "_pattern", "words")

    def __init__(self, secrets: tuple[str, ...]) -> None:
        forms = [form for secret in secrets for form in _forms(secret)]
        codes = [code for form in forms for code, _ in _base64(form)]
        digits = [digits for secret in secrets for digits in _hexadecimal(secret)]
        self.words = tuple(dict.fromkeys([*(_words(one) for one in (*secrets, *codes)), *((one,) for one in digits)]))
        plain = [_words(one.decode(errors="replace")) for secret in secrets for one in _unescaped(secret)]
        self._inside = [[word.encode() for word in words] for words in {*self.words, *plain, ("\0",)}]
        self._pattern = re.compile(b"|".join(one for secret in secrets for one in _patterns(secret)))

    def taken_out(self, text: str) -> str:
        """Return a text without what is found in it, or in it without its escapes."""
        data = text.encode(errors="surrogatepass")
        places = sorted(
            layer.place(*found.span())
            for layer in layers(data)
            if any(all(word in layer.data for word in words) for words in self._inside)
            for found in self._pattern.finditer(layer.data)
        )
        if not places:
            return text
        pieces, end = [], 0
        for begin, until in places:
            if begin >= end:
                pieces += [data[end:begin], REDACTED.encode()]
            end = max(end, until)
        return b"".join((*pieces, data[end:])).decode(errors="surrogatepass")


_spellings: Final = lru_cache(maxsize=32)(_Spellings)
_WORDS: Final = re.compile("[0-9A-Za-z]+")


def _words(text: str) -> tuple[str, ...]:
    """Return the longest word of a text, which stays as it is however the text is escaped; several, where all are short."""
    words = sorted(_WORDS.findall(text), key=len, reverse=True) or [""]
    return tuple(words[: 1 if len(words[0]) >= _LONG_WORD else _MOST_WORDS])


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as others encode it: itself, and as it stands in JSON and in URLs."""
    json_forms = [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]
    php_forms = [form.replace("/", "\\/") for form in json_forms]
    yield from dict.fromkeys([secret, *json_forms, *php_forms, quote(secret), quote(secret, safe="")])


def _patterns(secret: str) -> Iterator[bytes]:
    """Yield what a secret looks like where nothing is escaped, as regular expressions."""
    yield from (re.escape(form) for form in dict.fromkeys([*_unescaped(secret), secret.replace(" ", "+").encode()]))
    for form in _forms(secret):
        for code, last in _base64(form):
            # What ends with the secret has one more character with bits of it, and padding after that.
            end = f"(?:{re.escape(last)}={{1,2}})?" if last else ""
            yield ("".join(_OTHER_ALPHABET.get(one, one) for one in code) + end).encode()
    yield b"(?i:" + f"[{_BETWEEN_DIGITS}]?".encode().join(b"%02x" % byte for byte in secret.encode()) + b")"
    yield from map(re.escape, _wide(secret))


def _unescaped(secret: str) -> Iterator[bytes]:
    """Yield a secret; and what is left of one that looks escaped itself, where all escapes are undone."""
    *_, last = layers(secret.encode())
    yield from (secret.encode(), *([last.data] if len(last.data) >= _SHORTEST_CODE else []))


def _wide(secret: str) -> tuple[bytes, bytes]:
    return secret.encode("utf-16-le"), secret.encode("utf-16-be")


def _hexadecimal(secret: str) -> Iterator[str]:
    data = secret.encode()
    for digits in (data.hex(), *map(data.hex, _BETWEEN_DIGITS)):
        yield from (digits, digits.upper())


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


_OTHER_ALPHABET: Final = {"+": "[+-]", "/": "[/_]"}  # as in URLs
