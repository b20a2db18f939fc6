"""Deterministic texts that match a schema's regular expression.

The parser covers what samples need: characters, classes, groups, choices and counts. Lookaround is skipped. A
linear-time engine decides if a text matches, because a malicious pattern could keep `re` busy for years. That engine
has no lookaround, so such patterns are checked with `re`, on short texts only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

LONGEST: Final = 2_000
"""Characters of a text made here."""
_REPEATS: Final = (0, 1, 3, 8, 24, 64)
"""Repeat counts to try for unbounded repetitions."""
_CANDIDATES: Final = "a1A0f_-./: "
_CLASSES: Final[dict[str, str]] = {
    "d": "1",
    "w": "a",
    "s": " ",
    "D": "a",
    "W": "-",
    "S": "a",
    "n": "\n",
    "t": "\t",
    "r": "\r",
}
_COUNT: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
_AROUND: Final = re.compile(r"\?(:|=|!|<=|<!)")
_SET: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_DEEPEST: Final = 30
_SHORT: Final = 16
"""Characters of a text that `re` may be asked about: 2^16 steps are soon done."""


class _UnknownSyntaxError(Exception):
    """The expression has something that no text is made for."""


def matches(pattern: str, text: str) -> bool:
    """Return True if the text matches; False if that cannot be determined."""
    compiled = _validator(pattern)
    if compiled is None:
        return len(text) <= _SHORT and _searched(pattern, text)
    try:
        compiled.validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=512)
def _validator(pattern: str) -> SchemaValidator | None:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None


def is_judged(pattern: str) -> bool:
    """Return True if servers enforce this pattern; they skip patterns with lookaround."""
    return _validator(pattern) is not None


def _searched(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return False


def texts(pattern: str) -> Iterator[str]:
    """Yield texts that match the pattern, shortest first; nothing for unsupported syntax."""
    seen = set()
    for repeats in _REPEATS:
        try:
            text = _Reader(pattern, repeats).text()
        except _UnknownSyntaxError:
            return
        if text not in seen and len(text) <= LONGEST and matches(pattern, text):
            yield text
        seen.add(text)


class _Reader:
    """Reads an expression from left to right, and writes the text as it goes."""

    def __init__(self, pattern: str, repeats: int) -> None:
        self._pattern = pattern
        self._repeats = repeats
        self._at = 0
        self._depth = 0

    def text(self) -> str:
        """Return a text for the whole expression."""
        text = self._choice()
        if self._at < len(self._pattern):
            raise _UnknownSyntaxError
        return text

    def _choice(self) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnknownSyntaxError
        choices = [self._row()]
        while self._next() == "|":
            self._at += 1
            choices.append(self._row())
        self._depth -= 1
        return next(filter(None, choices), "")

    def _row(self) -> str:
        pieces: list[str] = []
        total = 0
        while self._next() not in {"", "|", ")"}:
            unit = self._unit()
            least, most = self._count()
            piece = unit * min(max(least, self._repeats), most)
            total += len(piece)
            if total > LONGEST:
                raise _UnknownSyntaxError
            pieces.append(piece)
        return "".join(pieces)

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _unit(self) -> str:
        sign = self._next()
        self._at += 1
        if sign in {"^", "$"}:
            return ""
        if sign == "(":
            return self._group()
        if sign == "[":
            found = _SET.match(self._pattern, self._at - 1)
            if found is None:
                raise _UnknownSyntaxError
            self._at = found.end()
            return _one_of(found[0])
        if sign == "\\":
            return self._escaped()
        if sign in {"*", "+", "?"}:
            raise _UnknownSyntaxError
        return "a" if sign == "." else sign

    def _group(self) -> str:
        around = _AROUND.match(self._pattern, self._at)
        if around is not None:
            self._at = around.end()
        elif self._next() == "?":
            raise _UnknownSyntaxError
        text = self._choice()
        if around is not None and around[0] != "?:":
            text = ""
        if self._next() != ")":
            raise _UnknownSyntaxError
        self._at += 1
        return text

    def _escaped(self) -> str:
        sign = self._next()
        self._at += 1
        if sign in {"b", "B"}:
            return ""
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.isalnum() or not sign:
            raise _UnknownSyntaxError  # a reference back, a code, a class of Unicode
        return sign

    def _count(self) -> tuple[int, int]:
        sign = self._next()
        found = _COUNT.match(self._pattern, self._at) if sign == "{" else None
        if found is not None:
            self._at = found.end()
            least = int(found[1])
            most = least if not found[2] else int(found[3]) if found[3] else LONGEST + 1
        elif sign and sign in "*+?":
            self._at += 1
            least, most = int(sign == "+"), 1 if sign == "?" else LONGEST + 1
        else:
            return 1, 1
        if self._next() == "?":  # as few as possible: the same texts
            self._at += 1
        return min(least, LONGEST + 1), min(most, LONGEST + 1)


@lru_cache(maxsize=2048)
def _one_of(characters: str) -> str:
    for candidate in _CANDIDATES + characters[1:-1]:
        if matches(f"^{characters}$", candidate):
            return candidate
    raise _UnknownSyntaxError
