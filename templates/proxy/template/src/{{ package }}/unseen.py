"""Texts without characters that nobody sees, and that could tell a model what no person reads. Pure."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

__all__ = ["seen_only"]

_UNSEEN: Final = {"Cf", "Cc", "Cs", "Co", "Cn"}  # categories of Unicode
_TEXTS: Final = ("description", "title")  # members that are read


def seen_only(value: Any) -> Any:
    """Return a value of JSON with the descriptions and titles in it as a person sees them."""
    if isinstance(value, list):
        return [seen_only(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _seen(one) if key in _TEXTS and isinstance(one, str) else seen_only(one) for key, one in value.items()}


def _seen(text: str) -> str:
    return "".join(one for one in text if one in "\n\t" or unicodedata.category(one) not in _UNSEEN)
