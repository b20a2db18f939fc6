"""The reason of a decision: one line, which a person reads in the history and on pages beside others."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.text import escape_invisible, on_one_line
from mcpfactory_runtime.errors import Exit

__all__ = ["LONGEST_REASON", "ReasonError", "checked_reason"]

LONGEST_REASON: Final = 500  # characters


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
    if line.strip() and not escape_invisible(line, lambda _: "").strip():
        raise ReasonError("a reason of characters that nobody sees says nothing", hint="say it in words")
    return line
