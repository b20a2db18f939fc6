"""The middleware of one server, in order: the first that was added is the outermost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.server.middleware.protocol import Middleware, ToolRequest

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context
    from mcpfactory_runtime.server.registry import RunHandler, Tool
    from mcpfactory_runtime.server.signature import Injected

__all__ = ["Layer", "Layers", "through"]

Json = dict[str, Any]
Layer = Callable[[Any, Callable[[Any], Awaitable[Json]]], Awaitable[Json]]
Subject = TypeVar("Subject")


class Layers:
    """What a server has around requests, and around tools.

    Attributes:
        requests: whether there is middleware around requests at all.
        tools: whether there is some around tools.
    """

    def __init__(self) -> None:
        self._requests: list[tuple[frozenset[str], Layer]] = []
        self._tools: list[tuple[frozenset[str], Layer]] = []
        self.requests = False
        self.tools = False

    def add(self, middleware: Any) -> None:
        """Add an object with `on_request` or `on_tool`.

        Raises:
            TypeError: it has neither.
        """
        around_request, around_tool = _overridden(middleware, "on_request"), _overridden(middleware, "on_tool")
        if around_request is None and around_tool is None:
            raise TypeError(f"{middleware!r} has neither on_request nor on_tool\nhint: one of them does the work")
        if around_request is not None:
            self.add_around_requests((), around_request)
        if around_tool is not None:
            self.add_around_tools((), around_tool)

    def add_around_requests(self, methods: Iterable[str], layer: Layer) -> None:
        """Add a function around the requests of some methods, or of all.

        Raises:
            TypeError: the function is no `async def`.
            ValueError: there is no such method.
        """
        chosen = frozenset(methods)
        known = {row.name for row in METHODS.values() if row.sender != "server" and not row.notification}
        for method in sorted(chosen - known):
            raise ValueError(f"there is no request {method!r}\nhint: one of {', '.join(sorted(known))}")
        self._requests.append((chosen, _checked(layer)))
        self.requests = True

    def add_around_tools(self, names: Iterable[str], layer: Layer) -> None:
        """Add a function around some tools, or all.

        Raises:
            TypeError: the function is no `async def`.
        """
        self._tools.append((frozenset(names), _checked(layer)))
        self.tools = True

    def tool_names(self) -> frozenset[str]:
        """Return the names of tools that some middleware is for."""
        return frozenset().union(*(names for names, _ in self._tools))

    def around_request(self, method: str) -> list[Layer]:
        """Return the functions around a request, the outermost first."""
        return [layer for methods, layer in self._requests if not methods or method in methods]

    def around_tool(self, name: str) -> list[Layer]:
        """Return the functions around a tool, the outermost first."""
        return [layer for names, layer in self._tools if not names or name in names]

    def run_tool(self, tool: Tool, arguments: Json, context: Injected, run: RunHandler) -> Awaitable[Json]:
        """Call a tool inside of what is around it; what is raised arrives as it is."""

        def innermost(call: ToolRequest) -> Awaitable[Json]:
            return run(tool, call.arguments, lambda: call.context)

        call = ToolRequest(tool.name, arguments, tool.wire, cast("Context", context))
        return through(self.around_tool(tool.name), call, innermost)


def through(
    layers: Iterable[Layer], subject: Subject, innermost: Callable[[Subject], Awaitable[Json]]
) -> Awaitable[Json]:
    """Send a request or a call through layers to what answers it."""
    call_next: Callable[[Any], Awaitable[Json]] = innermost
    for layer in reversed(list(layers)):
        call_next = partial(_step, layer, call_next)
    return call_next(subject)


async def _step(layer: Layer, call_next: Callable[[Any], Awaitable[Json]], subject: Any) -> Json:
    """Call one layer.

    Raises:
        TypeError: it returned no result; mostly a `return` is missing.
    """
    result = await layer(subject, call_next)
    if not isinstance(result, dict):
        name = getattr(layer, "__qualname__", repr(layer))
        raise TypeError(
            f"middleware {name} returned {type(result).__name__}\nhint: return await call_next(…), or a result"
        )
    return result


def _overridden(middleware: Any, name: str) -> Layer | None:
    """Return the function of a middleware, unless it is the one of `Middleware`, which does nothing."""
    function = getattr(middleware, name, None)
    if function is None or getattr(type(middleware), name, None) is getattr(Middleware, name):
        return None
    found: Layer = function
    return found


def _checked(layer: Layer) -> Layer:
    if not iscoroutinefunction(layer) and not iscoroutinefunction(getattr(layer, "__call__", None)):  # noqa: B004 - an object that is called like an `async def`
        raise TypeError(f"{layer!r} cannot be awaited\nhint: async def {getattr(layer, '__name__', 'middleware')}(…)")
    try:
        signature(layer).bind(None, None)
    except ValueError:  # what is not written in Python may tell nothing of its parameters
        return layer
    except TypeError:
        name = getattr(layer, "__name__", "middleware")
        raise TypeError(f"middleware {name} takes two values\nhint: async def {name}(call, call_next)") from None
    return layer
