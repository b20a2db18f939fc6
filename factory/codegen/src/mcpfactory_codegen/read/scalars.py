"""Plain words of YAML → values of JSON, which remember how they were written where that is more than their value."""

from __future__ import annotations

import math
import re
from typing import Any, Final

__all__ = ["WrittenFloat", "WrittenInt", "finite", "plain"]

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,4000}\Z|0o[0-7]{1,4000}\Z|0x[0-9a-fA-F]{1,4000}\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def finite(text: str) -> float | str:
    """Return the number, or its text when JSON has no such number."""
    number = float(text)
    return number if math.isfinite(number) else text


class WrittenInt(int):
    """A whole number that knows how it was written: where a text is meant, 01234 is not 1234."""

    text: str

    def __str__(self) -> str:
        return self.text


class WrittenFloat(float):
    """A number that knows how it was written: where a text is meant, 1.10 is not 1.1."""

    text: str

    def __str__(self) -> str:
        return self.text


def _number(text: str) -> int | float | str:
    """Return the number, and its text where the number alone would be written in another way."""
    if _INTEGER.match(text):
        whole = int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        if str(whole) == text:
            return whole
        written: WrittenInt | WrittenFloat = WrittenInt(whole)
    else:
        number = finite(text)
        if isinstance(number, str) or repr(number) == text:
            return number
        written = WrittenFloat(number)
    written.text = text
    return written


def plain(text: str) -> Any:
    """Return a plain scalar as the core schema of YAML 1.2 reads it (section 10.3.2), without .inf and .nan, which JSON lacks."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    return _number(text) if _INTEGER.match(text) or _FLOAT.match(text) else text
