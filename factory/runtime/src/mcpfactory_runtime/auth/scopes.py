"""Scopes: words that a token was granted, and words that imply others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["expand", "missing", "read_granted", "union"]

_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")  # RFC 6749 §3.3


def union(*groups: Iterable[str]) -> tuple[str, ...]:
    """All words, each once, in the order of their first mention.

    Raises:
        TypeError: a group is one string instead of several.
        ValueError: a word cannot be a scope.
    """
    words: dict[str, None] = {}
    for group in groups:
        if isinstance(group, str):
            raise TypeError(f"scopes are several words, not one string\nhint: ({group!r},)")
        for word in group:
            if not _SCOPE.fullmatch(word):
                raise ValueError(f"{word!r} cannot be a scope\nhint: printable ASCII without space, quote or backslash")
            words[word] = None
    return tuple(words)


def read_granted(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return what a token was granted: `scope` (RFC 8693 §4.2), or `scp` as some issuers call it; a string or a list."""
    value = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(word for word in value if isinstance(word, str))
    return frozenset()


def expand(granted: Iterable[str], implies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return what was granted and everything that follows from it; circles do no harm."""
    found: set[str] = set()
    waiting = list(granted)
    while waiting:
        word = waiting.pop()
        if word not in found:
            found.add(word)
            waiting.extend(implies.get(word, ()))
    return frozenset(found)


def missing(needed: Iterable[str], held: frozenset[str]) -> tuple[str, ...]:
    """Return the words of `needed` that are not held."""
    return tuple(word for word in needed if word not in held)
