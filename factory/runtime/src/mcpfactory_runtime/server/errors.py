"""What a handler raises for the model to see, and what ends a handler that has to ask first."""

from __future__ import annotations

from typing import Any

__all__ = ["InputRequired", "ToolError"]


class ToolError(Exception):
    """A failure that the model should read: becomes a tool result with `isError` and this message.

    Any other exception of a tool is logged on stderr and reaches the peer as a generic sentence only, since its text
    may hold secrets.
    """


class InputRequired(BaseException):
    """Ends a handler of the per-request lifecycle that asks the client: it is run again once the answers are there.

    Attributes:
        requests: key → the request object, as `inputRequests` on the wire.
    """

    def __init__(self, requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests
