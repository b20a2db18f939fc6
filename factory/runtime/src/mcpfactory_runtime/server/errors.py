"""What a handler raises for the model to see."""

from __future__ import annotations

__all__ = ["ToolError"]


class ToolError(Exception):
    """A failure that the model should read: becomes a tool result with `isError` and this message.

    Any other exception of a tool is logged on stderr and reaches the peer as a generic sentence only, since its text
    may hold secrets.
    """
