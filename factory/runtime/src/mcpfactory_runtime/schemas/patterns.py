"""Deterministic texts that match a schema's regular expression.

A linear-time engine checks texts, because a malicious pattern could keep `re` busy for years. The engine does not
support lookaround. For patterns with lookaround, `re` checks only short texts.
"""

from __future__ import annotations

import re
import re._parser as parser  # type: ignore[import-not-found]  # missing in typeshed; unchanged since Python 3.11
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from mcpfactory_runtime.schemas.applicators import pattern_validator

MAX_TEXT_LENGTH: Final = 2_000
"""Maximum characters of a generated text."""
_REPEATS: Final = (0, 1, 3, 8, 24, 64)
"""Numbers to try for the repeats of an unbounded repetition."""
_CANDIDATES: Final = "a1A0f_-./: "
_CATEGORIES: Final[dict[str, Callable[[str], bool]]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda sign: sign.isalnum() or sign == "_",
}
_DEEPEST: Final = 30  # maximum nesting of groups
_SHORT: Final = 16  # maximum characters of a text for `re`, which may take exponential time

_Node = tuple[Any, Any]


class _UnknownSyntaxError(Exception):
    """The expression has unsupported syntax."""


def matches(pattern: str, text: str) -> bool:
    """Return True if the text matches, and False if the result is unknown."""
    compiled = pattern_validator(pattern)
    if compiled is None:
        return len(text) <= _SHORT and _searched(pattern, text)
    return compiled.isinstance_python(text)


def is_enforced(pattern: str) -> bool:
    """Return True if servers enforce this pattern, which must not contain lookaround."""
    return pattern_validator(pattern) is not None


def _searched(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return False


@lru_cache(maxsize=512)
def _parsed(pattern: str) -> tuple[_Node, ...]:
    """Return the nodes of an expression, or one unknown node if the expression is unreadable or has flags."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warning "possible nested set" is harmless
            found = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return (("UNKNOWN", None),)
    return (("UNKNOWN", None),) if found.state.flags & ~re.UNICODE else tuple(found)


def matching_texts(pattern: str) -> Iterator[str]:
    """Yield texts that match the pattern, shortest first."""
    seen = set()
    for repeats in _REPEATS:
        try:
            text = _text(_parsed(pattern), repeats, 0)
        except _UnknownSyntaxError:
            return
        if text not in seen and len(text) <= MAX_TEXT_LENGTH and matches(pattern, text):
            yield text
        seen.add(text)


def _text(nodes: Iterable[_Node], repeats: int, depth: int) -> str:
    """Return a text for a sequence of nodes, with `repeats` copies of each part that may be repeated."""
    if depth > _DEEPEST:
        raise _UnknownSyntaxError
    text = ""
    for operation, value in nodes:
        text += _piece(str(operation), value, repeats, depth)
        if len(text) > MAX_TEXT_LENGTH:
            raise _UnknownSyntaxError
    return text


def _piece(operation: str, value: Any, repeats: int, depth: int) -> str:
    match operation:
        case "LITERAL":
            return chr(value)
        case "ANY":
            return "a"
        case "IN":
            return _one_of(value)
        case "NOT_LITERAL":
            return _one_of([("NEGATE", None), ("LITERAL", value)])
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""
        case "BRANCH":
            return next(filter(None, [_text(branch, repeats, depth + 1) for branch in value[1]]), "")
        case "SUBPATTERN" if not value[1] and not value[2]:
            return _text(value[3], repeats, depth + 1)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, unit = value
            times: int = min(max(least, repeats), most, MAX_TEXT_LENGTH + 1)
            return _text(unit, repeats, depth + 1) * times
    raise _UnknownSyntaxError  # a backreference, flags of a group, or an atomic group


def _one_of(members: Iterable[_Node]) -> str:
    written = [(str(kind), value) for kind, value in members]
    negated = ("NEGATE", None) in written
    own = [chr(value if kind == "LITERAL" else value[0]) for kind, value in written if kind in {"LITERAL", "RANGE"}]
    for candidate in _CANDIDATES + "".join(own):
        if any(_has(kind, value, candidate) for kind, value in written) is not negated:
            return candidate
    raise _UnknownSyntaxError


def _has(kind: str, value: Any, sign: str) -> bool:
    if kind == "LITERAL":
        return bool(ord(sign) == value)
    if kind == "RANGE":
        return bool(value[0] <= ord(sign) <= value[1])
    if kind == "CATEGORY":
        name = str(value).removeprefix("CATEGORY_")
        return _CATEGORIES[name.removeprefix("NOT_")](sign) is not name.startswith("NOT_")
    return False
