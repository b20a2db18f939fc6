"""Removal of invisible characters, which could hide instructions to a model from people."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

__all__ = ["seen_only"]

_UNSEEN: Final = {"Cf", "Cc", "Cs", "Co", "Cn"}  # Unicode categories of invisible characters
_TEXTS: Final = ("description", "title")  # keys of texts that a model reads


def seen_only(value: Any) -> Any:
    """Return a JSON value without invisible characters in its descriptions and titles."""
    if isinstance(value, list):
        return [seen_only(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _seen(one) if key in _TEXTS and isinstance(one, str) else seen_only(one) for key, one in value.items()}


def _seen(text: str) -> str:
    return "".join(one for one in text if one in "\n\t" or unicodedata.category(one) not in _UNSEEN)
