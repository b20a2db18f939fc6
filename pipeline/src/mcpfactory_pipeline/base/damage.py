"""What is wrong with a file that was written here and cannot be read any more, in words."""

from __future__ import annotations

import json
from typing import Final

__all__ = ["why_damaged"]

# How the words of a `ValueError` begin that Python itself raises.
_PYTHONS: Final = ("invalid", "Invalid", "Exceeds the limit", "could not convert")


def why_damaged(error: Exception) -> str:
    """Return in words, and none of Python's, why a file of JSON cannot be read, from what reading it raised.

    The text of a `ValueError` counts as words for people, unless it is one of Python's own.
    """
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: line {error.lineno}"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    if isinstance(error, ValueError) and not str(error).startswith(_PYTHONS):
        return str(error)
    return "a part of it has another form"
