"""The reason of a decision: one line, which a person reads in the history and on pages beside others."""

from __future__ import annotations

import unicodedata
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.text import escape_invisible, on_one_line
from mcpfactory_runtime.errors import Exit

__all__ = ["LONGEST_REASON", "ReasonError", "checked_reason"]

LONGEST_REASON: Final = 500  # characters
_BLANK_BRAILLE: Final = "\u2800"  # a sign by its category


class ReasonError(ConfigError):
    """A reason that no decision can have."""

    exit_code = Exit.USAGE


def checked_reason(text: str) -> str:
    """Return a reason as it is recorded, on one line.

    Raises:
        ReasonError: it has more than `LONGEST_REASON` characters, or only such as nobody sees.
    """
    if len(line := on_one_line(text)) > LONGEST_REASON:
        raise ReasonError(
            f"a reason has {LONGEST_REASON} characters at most, and this one {len(line):,}", hint="say it in short"
        )
    if line.strip() and not _is_seen(line):
        raise ReasonError("a reason of characters that nobody sees says nothing", hint="say it in words")
    return line


def _is_seen(text: str) -> bool:
    """Return whether a letter, a digit or a sign is in a text: spaces, marks and what only looks like a space are none."""
    seen = escape_invisible(text, lambda _: "").replace(_BLANK_BRAILLE, "")
    return any(unicodedata.category(one)[0] in "LNPS" for one in seen)
