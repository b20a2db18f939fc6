"""Removal of credentials from results and errors. The API includes those of connected CRMs in sources."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime import ToolCall, ToolResult

__all__ = ["hidden_text", "without_secrets"]

_HIDDEN: Final = "(hidden)"
# Names are compared in lowercase, without separators between words.
_ENDINGS: Final = ("token", "secret", "password", "passwd", "passphrase", "authorization", "credential", "credentials")
_KEYS: Final = tuple(
    f"{word}key"
    for word in ("api", "access", "secret", "private", "signing", "encryption", "auth", "client", "shared", "master", "service", "account", "cb", "source", "crm", "app", "webhook",
                 "integration", "session", "license")
)  # fmt: skip
_NAMES: Final = frozenset({"stripecustomerid", "cookie", "setcookie", "jwt", "pwd"})
_NO_SECRETS: Final = ("pagetoken", "nexttoken", "continuationtoken", "cancellationtoken")  # not credentials
_COUNTS: Final = frozenset(
    f"{word}token" for word in ("prompt", "completion", "total", "max", "min", "input", "output", "cached", "reasoning")
)  # whole names, because "admin" ends in "min"
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?(?![A-Za-z0-9_.\-])|[0-9]{1,12}(?=\.(?:\s|\Z))")
_KEY: Final = "key"  # the credential of a source, but the name of a lead's field
_OF_FIELD: Final = frozenset({"value", "label", "fieldValue"})
_NAMING: Final = ("name", "key", "header")  # members that name the `value` next to them
_BETWEEN: Final = re.compile(r"[^a-z0-9]+")

# In text: a name, optionally in (escaped) quotes, and `:` or `=`. Bounded repetition keeps the time linear.
_NAMED: Final = re.compile(
    r"""(?:(?P<quote>\\{0,63}["'])|(?<![A-Za-z0-9_.\-]))(?P<name>[A-Za-z0-9_.\-]++)(?(quote)(?P=quote))\s{0,20}(?P<sign>[:=])>?\s{0,20}"""
)
_BEFORE: Final = re.compile(
    r"([A-Za-z]+)\s{1,20}\Z"
)  # the first word of a name with two words: "API key", "page token"
_FAR: Final = 36  # characters to search for that word
_NO_WORD: Final = re.compile(
    r"""(?=[^\s"',;&)\]}]{0,99}[0-9_])[^\s"',;&)\]}]{6}|[^\s"',;&)\]}]{16}"""
)  # natural words rarely look like this
_QUOTE: Final = re.compile(r"""(?P<escape>\\{0,63})(?P<mark>["'])""")
_RUN: Final = re.compile(r"""(?<!\\)(?P<escape>\\*+)["']""")
_BRACKET: Final = re.compile(r"[\[\]{}]|(?<!\\)(?P<quote>\\*+\")")
_SCHEMES: Final = "bearer|basic|token|digest|apikey|key|hmac|negotiate"
_WORD: Final = re.compile(rf"""(?i:(?:{_SCHEMES})\s+)?[^\s"',;&)\]}}]+""")
_LINE: Final = re.compile(r"[^\r\n]+")
_BESIDE: Final = re.compile(r"""\s{0,20},\s{0,20}\\{0,63}"(?:value|label|fieldValue)\\{0,63}"\s{0,20}:""")
_SAYS_NOTHING: Final = frozenset({"null", "None", "true", "false", "True", "False"})  # these reveal nothing


def without_secrets(call: ToolCall, result: ToolResult) -> ToolResult:
    """Return a result with credentials replaced in text and structured content."""
    blocks = [
        {**block, "text": hidden_text(block["text"])} if block.get("type") == "text" else block
        for block in result.content
    ]
    return ToolResult(blocks, _hidden(result.structured), is_error=result.is_error, meta=result.meta)


def hidden_text(text: str) -> str:
    """Return a text without credentials: by member if it is JSON, otherwise by the names before values."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            shown = _hidden(value)
            return text if shown == value else json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    pieces, done = [], 0
    while named := _NAMED.search(text, done):
        start = end = named.end()
        name = _plain(named["name"])
        if _names_a_secret(text, named, name):
            end = _end_of_value(text, start, name)
            if name == _KEY and _BESIDE.match(text, end):
                end = start
        pieces.append(text[done:start])
        if end > start and text[start:end] not in _SAYS_NOTHING:
            quote = _QUOTE.match(text, start)
            around = quote[0] if quote else named["quote"] if text[start] in "[{" and named["quote"] else ""
            pieces.append(f"{around}{_HIDDEN}{around}")
        else:
            end = start
        done = end
    return "".join([*pieces, text[done:]])


def _names_a_secret(text: str, named: re.Match[str], name: str) -> bool:
    """Return True if a credential follows a name in text. Prose also has two-word names, token counts, and ordinary keys."""
    start, end = named.span()
    before = None if named["quote"] else _BEFORE.search(text[max(0, start - _FAR) : start])
    full = before[1].lower() + name if before else name
    if name == _KEY:
        said = bool(named["quote"]) or named["sign"] == "="
        return said or _is_credential(full) or bool(_NO_WORD.match(text, end))
    if full == "pagetoken":
        return full != name and bool(_NO_WORD.match(text, end))  # "page token" in two words may also name a credential
    if _COUNTS & {name, full} and _NUMBER.match(text, end):
        return False
    return _is_credential(name)


def _end_of_value(text: str, start: int, name: str) -> int:
    """Return the end of a value: its closing quote or bracket, after `Authorization` the end of the line, else of the word."""
    if quote := _QUOTE.match(text, start):
        return _end_of_string(text, quote.end(), quote["mark"], len(quote["escape"]))
    if text[start : start + 1] in ("[", "{"):
        return _end_of_brackets(text, start)
    found = (_LINE if name.endswith("authorization") else _WORD).match(text, start)
    return found.end() if found else start


def _end_of_string(text: str, start: int, mark: str, escapes: int) -> int:
    """Return the end of a string whose quotes have `escapes` backslashes, or the end of the text if it is cut off.

    Nested JSON escapes a quote with 1, 3, 7 … backslashes. A quote within the string has more of them.
    """
    for run in _RUN.finditer(text, start):
        count = len(run["escape"])
        if run[0][-1] == mark and (count < escapes or (count - escapes) % (2 * (escapes + 1)) == 0):
            return run.end()
    return len(text)


def _end_of_brackets(text: str, start: int) -> int:
    """Return the end of a bracketed value, or the end of the text if it is cut off."""
    depth, place = 0, start
    while found := _BRACKET.search(text, place):
        place = found.end()
        if found["quote"]:
            place = _end_of_string(text, place, '"', len(found["quote"]) - 1)
            continue
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            return place
    return len(text)


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _HIDDEN if _is_secret(name, value) else _hidden(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_hidden(member) for member in value]
    return hidden_text(value) if isinstance(value, str) else value


def _is_secret(name: str, of: Mapping[str, Any]) -> bool:
    if of[name] is None or isinstance(of[name], bool):  # only shows that a value exists or not
        return False
    plain = _plain(name)
    if isinstance(of[name], int | float) and plain in _COUNTS:
        return False
    if plain == "value":
        return any(isinstance(of.get(one), str) and _is_credential(_plain(of[one])) for one in _NAMING)
    return _is_credential(plain) or (plain == _KEY and not _OF_FIELD & of.keys())


def _is_credential(plain: str) -> bool:
    if plain.endswith(_NO_SECRETS):
        return False
    return plain in _NAMES or plain.endswith((*_ENDINGS, *_KEYS))


def _plain(name: str) -> str:
    return _BETWEEN.sub("", name.lower())
