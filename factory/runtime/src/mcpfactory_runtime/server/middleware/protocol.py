"""What a middleware is: an object with one or both of two functions.

class Audit(Middleware):
async def on_tool(self, call: ToolRequest, call_next: NextTool) -> dict[str, Any]:
result = await call_next(call)          # before this line: before the call; after it: after the call
print(call.name, call.context.principal)
return result
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context

__all__ = ["Middleware", "NextRequest", "NextTool", "Request", "ToolRequest"]

Json = dict[str, Any]


@dataclass(slots=True)
class Request:
    """A request of a client on its way to its answer.

    Attributes:
        method: as the newest revision calls it: `tools/list`.
        params: its parameters; changes in place reach what answers.
        context: who asks, and the way back to them.
    """

    method: str
    params: Json
    context: Context


@dataclass(slots=True)
class ToolRequest:
    """A call of one tool: of a client, of another tool, by way of search mode, or of a task.

    Attributes:
        name: the tool's.
        arguments: as they came; they are checked against the tool's schema after the last middleware, which may change them.
        tool: the tool as it is listed; not to be changed.
        context: who calls, and the way back to them.
    """

    name: str
    arguments: Json
    tool: Mapping[str, Any]
    context: Context

    @property
    def read_only(self) -> bool:
        """Whether the tool says that it changes nothing (server/tools, ToolAnnotations)."""
        return self.tool.get("annotations", {}).get("readOnlyHint") is True

    @property
    def idempotent(self) -> bool:
        """Whether the tool says that to call it twice does no more than to call it once."""
        return self.read_only or self.tool.get("annotations", {}).get("idempotentHint") is True


NextRequest = Callable[[Request], Awaitable[Json]]
"""What is inside of a middleware: the next one, or what answers the request."""

NextTool = Callable[[ToolRequest], Awaitable[Json]]
"""What is inside of a middleware: the next one, or the tool."""


class Middleware:
    """Base of middleware: override one function, or both. Results have the form of the newest revision, whoever asks."""

    async def on_request(self, request: Request, call_next: NextRequest) -> Json:
        """Answer a request, mostly with what `call_next(request)` returns.

        Raises:
            McpError: the error that the client gets.
        """
        return await call_next(request)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Answer a call of a tool, mostly with what `call_next(call)` returns: content, structuredContent, isError.

        What the handler raises arrives here as it is: it becomes a result with `isError` outside of all middleware.

        Raises:
            ToolError: the failure that the model should read.
        """
        return await call_next(call)
