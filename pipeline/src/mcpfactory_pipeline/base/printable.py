"""Text that a terminal only shows: names and messages come from documents and servers that nobody vouches for."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["cell_width", "printable", "truncate", "wrap"]

# Everything that moves the cursor, rings, or reorders what is read; line ends and tabs stay.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")


def printable(text: str, *, colour: bool = False) -> str:
    r"""Return the text with control characters written out (`\x1b`); with `colour`, codes that only colour stay."""
    text = text.replace("\r\n", "\n")
    if not colour:
        return _CONTROL.sub(_named, _COLOUR.sub("", text))
    parts, codes = _COLOUR.split(text), [*_COLOUR.findall(text), ""]
    return "".join(_CONTROL.sub(_named, part) + code for part, code in zip(parts, codes, strict=True))


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian wide characters take two, combining ones none, colours none."""
    text = _COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def truncate(text: str, width: int) -> str:
    """Return the text within so many columns, its end replaced by `…` where it is longer."""
    if cell_width(text) <= width:
        return text
    kept, left = "", width - 1
    for character in text:
        left -= cell_width(character)
        if left < 0:
            break
        kept += character
    return f"{kept.rstrip()}…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """Return the text in lines of at most so many columns, broken between words where that is possible; never empty."""
    width, lines = max(width, 2), [""]
    for word in text.split():
        if lines[-1] and cell_width(lines[-1]) + 1 + cell_width(word) <= width:
            lines[-1] += f" {word}"
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if cell_width(lines[-1]) + cell_width(character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
