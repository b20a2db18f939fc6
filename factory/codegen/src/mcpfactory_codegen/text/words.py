"""Words inside names: splitting, folding to ASCII, number, and identifiers made of them. Pure, no knowledge of APIs."""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["VERSION", "digest", "identifier", "is_identifier", "plural", "shorten", "singular", "snake", "words"]

VERSION: Final = re.compile(r"v?\d+(\.\d+)*(alpha|beta|rc)?\d*\Z", re.I)
"""A path segment or word that is a version: v1, 2, 1.0, v2beta1."""

_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEPT_S: Final = ("ss", "us", "is", "news", "series", "species", "analytics", "settings", "sms", "dns", "https", "aws")


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """Lower-case ASCII words of a name in any spelling: `users.GetMail2` → users, get, mail2."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return tuple(part.lower() for part in _BOUNDARY.split(text) if part)


def snake(text: str) -> str:
    """`X-Request-ID` → x_request_id; "" when no ASCII letter or digit is left."""
    return "_".join(words(text))


def singular(word: str) -> str:
    """One of what the word names, for regular English plurals; other words come back as they are."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_KEPT_S):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def plural(word: str) -> bool:
    """Whether the word looks like a plural."""
    return singular(word) != word


def digest(text: str, length: int = 8) -> str:
    """Return the first hexadecimal digits of the text's SHA-256: short, and the same on every machine."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def shorten(parts: Iterable[str], limit: int, key: str) -> str:
    """Join words by `_`; over `limit` characters, words are dropped from the middle and `key`'s digest is added."""
    parts = list(parts)
    name = "_".join(parts)
    if len(name) <= limit:
        return name
    suffix = digest(key)
    room = limit - 1 - len(suffix)
    while len("_".join(parts)) > room and len(parts) > 1:
        parts.pop(len(parts) * 2 // 3 if len(parts) > 2 else 1)
    return "_".join(parts)[:room].rstrip("_") + "_" + suffix


def is_identifier(text: str) -> bool:
    """Whether the text is an ASCII Python identifier that is no keyword."""
    return bool(_IDENTIFIER.match(text)) and not keyword.iskeyword(text)


def identifier(text: str, *, prefix: str, reserved: frozenset[str] = frozenset()) -> str:
    """Return an ASCII Python identifier from snake-cased text; `prefix` leads when it is empty or begins with a digit."""
    name = snake(text)
    if not name:
        return f"{prefix}_{digest(text, 6)}"
    if name[0].isdigit():
        name = f"{prefix}_{name}"
    return name + "_" if keyword.iskeyword(name) or name in reserved else name
