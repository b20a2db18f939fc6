"""What a model reads of the exceptions of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.signature import ArgumentsError

__all__ = ["ErrorShaping"]

Json = dict[str, Any]
Words = str | Callable[[Exception], str]


class ErrorShaping(Middleware):
    """Turns exceptions into words for the model: `ErrorShaping({KeyError: "There is no such note.", OSError: str})`.

    Without it the model reads that the tool failed, and the log has the rest: the text of an exception may hold secrets.

    Args:
        words: exception → the text, or what makes one of it. The first entry that fits is used.
    """

    def __init__(self, words: Mapping[type[Exception], Words]) -> None:
        self._words = dict(words)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool.

        Raises:
            ToolError: with the words for what the tool raised.
        """
        try:
            return await call_next(call)
        except (ToolError, McpError, ArgumentsError):
            raise
        except tuple(self._words) as error:
            words = next(words for kind, words in self._words.items() if isinstance(error, kind))
            raise ToolError(words if isinstance(words, str) else words(error)) from error
