"""Base class of middleware, and the middleware stack of one server.

>>> class Audit(Middleware):
... async def on_tool(self, call: ToolRequest, call_next: NextTool) -> dict[str, Any]:
... result = await call_next(call) # lines above run before the tool, lines below after it
... print(call.name, call.context.principal)
... return result
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context
    from mcpfactory_runtime.server.registry import RunHandler, Tool
    from mcpfactory_runtime.server.signature import InjectedParameter


@dataclass(slots=True)
class Request:
    """A client's request.

    Attributes:
        method: the method's name in the newest revision, such as `tools/list`.
        params: the parameters. Middleware may change the parameters in place.
        context: the request's `Context`.
    """

    method: str
    params: Json
    context: Context


@dataclass(slots=True)
class ToolRequest:
    """A tool call from a client, from another tool, through search mode, or in a task.

    Attributes:
        name: the tool's name.
        arguments: the arguments as received, before validation. Middleware may change the arguments.
        tool: the tool as listed. Middleware must not change the tool.
        context: the call's `Context`.
    """

    name: str
    arguments: Json
    tool: Mapping[str, Any]
    context: Context

    @property
    def read_only(self) -> bool:
        """Return True if the tool is annotated as read-only (server/tools, ToolAnnotations)."""
        return self.tool.get("annotations", {}).get("readOnlyHint") is True

    @property
    def idempotent(self) -> bool:
        """Return True if the tool is annotated as idempotent."""
        return self.read_only or self.tool.get("annotations", {}).get("idempotentHint") is True


NextRequest = Callable[[Request], Awaitable[Json]]
"""The next request middleware, or the handler of the request."""

NextTool = Callable[[ToolRequest], Awaitable[Json]]
"""The next tool middleware, or the tool."""


class Middleware:
    """Base class of middleware. Override one method, or both methods.

    For all clients, results have the form of the newest revision.
    """

    async def on_request(self, request: Request, call_next: NextRequest) -> Json:
        """Answer a request, usually with the result of `call_next(request)`.

        Raises:
            McpError: the error to send to the client.
        """
        return await call_next(request)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Answer a tool call, usually with the result of `call_next(call)`.

        The result is an object with `content`, `structuredContent` and `isError`. `call_next` raises exceptions of the
        handler unchanged. After all middleware, the server converts exceptions to results with `isError`.

        Raises:
            ToolError: a failure whose text is shown to the model.
        """
        return await call_next(call)


Layer = Callable[[Any, Callable[[Any], Awaitable[Json]]], Awaitable[Json]]
Subject = TypeVar("Subject")


class MiddlewareStack:
    """A server's middleware around requests and around tools."""

    def __init__(self) -> None:
        self._requests: list[tuple[frozenset[str], Layer]] = []
        self._tools: list[tuple[frozenset[str], Layer]] = []
        self.requests = False
        self.tools = False

    def add(self, middleware: Any) -> None:
        """Add an object with `on_request` or `on_tool`."""
        around_request, around_tool = _overridden(middleware, "on_request"), _overridden(middleware, "on_tool")
        if around_request is None and around_tool is None:
            raise TypeError(f"{middleware!r} has neither on_request nor on_tool\nhint: define one of these methods")
        if around_request is not None:
            self.add_around_requests((), around_request)
        if around_tool is not None:
            self.add_around_tools((), around_tool)

    def add_around_requests(self, methods: Iterable[str], layer: Layer) -> None:
        """Add a function around requests with the given methods, or around all requests if `methods` is empty."""
        chosen = frozenset(methods)
        known = {row.name for row in METHODS.values() if row.sender != "server" and not row.notification}
        for method in sorted(chosen - known):
            raise ValueError(f"unknown request {method!r}\nhint: use one of {', '.join(sorted(known))}")
        self._requests.append((chosen, _checked(layer)))
        self.requests = True

    def add_around_tools(self, names: Iterable[str], layer: Layer) -> None:
        """Add a function around the named tools, or around all tools if `names` is empty."""
        self._tools.append((frozenset(names), _checked(layer)))
        self.tools = True

    def tool_names(self) -> frozenset[str]:
        """Return the names of tools for which middleware is registered."""
        return frozenset().union(*(names for names, _ in self._tools))

    def around_request(self, method: str) -> list[Layer]:
        """Return the functions around a request, the outermost first."""
        return [layer for methods, layer in self._requests if not methods or method in methods]

    def around_tool(self, name: str) -> list[Layer]:
        """Return the functions around a tool, the outermost first."""
        return [layer for names, layer in self._tools if not names or name in names]

    def run_tool(self, tool: Tool, arguments: Json, context: InjectedParameter, run: RunHandler) -> Awaitable[Json]:
        """Call a tool inside its middleware."""

        def innermost(call: ToolRequest) -> Awaitable[Json]:
            return run(tool, call.arguments, lambda: call.context)

        call = ToolRequest(tool.name, arguments, tool.wire, cast("Context", context))
        return call_through_layers(self.around_tool(tool.name), call, innermost)


def call_through_layers(
    layers: Iterable[Layer], subject: Subject, innermost: Callable[[Subject], Awaitable[Json]]
) -> Awaitable[Json]:
    """Call `innermost` inside the layers. The first layer is the outermost."""
    call_next: Callable[[Any], Awaitable[Json]] = innermost
    for layer in reversed(list(layers)):
        call_next = partial(_step, layer, call_next)
    return call_next(subject)


async def _step(layer: Layer, call_next: Callable[[Any], Awaitable[Json]], subject: Any) -> Json:
    result = await layer(subject, call_next)
    if not isinstance(result, dict):
        name = getattr(layer, "__qualname__", repr(layer))
        raise TypeError(
            f"middleware {name} returned {type(result).__name__}\nhint: return await call_next(…), or a result"
        )
    return result


def _overridden(middleware: Any, name: str) -> Layer | None:
    """Return a middleware's own method, or None if the method is missing or inherited from `Middleware`."""
    function = getattr(middleware, name, None)
    if function is None or getattr(type(middleware), name, None) is getattr(Middleware, name):
        return None
    found: Layer = function
    return found


def _checked(layer: Layer) -> Layer:
    if not iscoroutinefunction(layer) and not iscoroutinefunction(getattr(layer, "__call__", None)):  # noqa: B004 - callable objects with an async __call__
        raise TypeError(
            f"{layer!r} cannot be awaited\nhint: write async def {getattr(layer, '__name__', 'middleware')}(…)"
        )
    try:
        signature(layer).bind(None, None)
    except ValueError:  # callables not written in Python may have no signature
        return layer
    except TypeError:
        name = getattr(layer, "__name__", "middleware")
        raise TypeError(
            f"middleware {name} must take two arguments\nhint: write async def {name}(call, call_next)"
        ) from None
    return layer


def middleware_decorator(add: Callable[[Iterable[str], Any], None], given: tuple[Any, ...]) -> Any:
    """Register decorated middleware, and return the decorator's result."""
    if len(given) == 1 and not isinstance(given[0], str):
        add((), given[0])
        return given[0]

    def register(function: Any) -> Any:
        add(given, function)
        return function

    return register
