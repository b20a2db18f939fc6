"""Numbers in the words that people use."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["escape_markdown", "format_duration", "pluralize"]

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units: `2 d 3 h`, `5 min`, `0 s`."""
    left, parts = int(max(0.0, seconds)), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def escape_markdown(text: str) -> str:
    """Text that comes from servers and their tests, on one line: nothing of it is Markdown or HTML."""
    plain = re.sub(r"\s+", " ", text)[:300].replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|!@#~])", r"\\\1", plain)


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 server`, `2 servers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
