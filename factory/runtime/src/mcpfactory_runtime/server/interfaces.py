"""Protocols of servers and channels, and checks of authors' arguments.

Modules use these protocols instead of the classes, to avoid imports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack, overload

from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.protocol.errors import McpError
    from mcpfactory_runtime.revisions import Revision
    from mcpfactory_runtime.server.lists import NotificationHub
    from mcpfactory_runtime.server.rates import ClientRateLimits, Rates
    from mcpfactory_runtime.server.registry import PromptOptions, Registry, Resource, ResourceOptions, Tool, ToolOptions
    from mcpfactory_runtime.server.request_state import RequestStateSealer
    from mcpfactory_runtime.server.routes import HttpRoutes, ReadinessChecks
    from mcpfactory_runtime.storage.base import ProcessRegistry, SharedStore

Function = TypeVar("Function", bound=Callable[..., Any])
Outcome = Json | bytes | Awaitable[Json]
"""A request's result: an object, encoded bytes, or an awaitable of the result."""


class ServerInterface(Protocol):
    """A server's interface for its sessions, transports, contexts and extensions.

    Attributes:
        version: the server's own version.
        info: the server's `Implementation` object.
        instructions: hints for the model.
        page_size: items on one page of a list, or None for all.
        max_message_size: maximum size of a message in bytes.
        cache: milliseconds that clients may cache lists, and the scope of this cache.
        question_timeout: seconds for a client to answer a question, or None for no limit.
        hub: recipients of notifications about changes.
        closing: set when the server ends.
        state: the value yielded by the lifespan.
        metrics: the metrics to serve, or None.
        readiness: the author's readiness checks.
        routes: HTTP routes in addition to MCP.
    """

    name: str
    version: str
    info: Json
    instructions: str | None
    page_size: int | None
    max_message_size: int
    cache: tuple[int, str]
    question_timeout: float | None
    registry: Registry
    hub: NotificationHub
    closing: asyncio.Event
    state: Any
    metrics: MetricsInterface | None
    readiness: ReadinessChecks
    routes: HttpRoutes

    @property
    def capabilities(self) -> Json:
        """Return the server's current capabilities."""

    @property
    def rates(self) -> Rates:
        """Return the rate limits for one client."""

    @property
    def sealer(self) -> RequestStateSealer:
        """Return the sealer of state that passes through clients."""

    @property
    def extensions(self) -> SharedStoreUser:
        """Return the server's optional features."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context manager of the server's lifespan in this process."""

    def may_have_tool(self, name: str) -> bool:
        """Return True if a tool of this name may appear once all tools are listed."""

    def record_subscription(self, uri: str) -> None:
        """Record that a client subscribed to a resource."""

    def handle(self, call: Call, channel: ReplyChannel) -> Outcome:
        """Answer one request.

        Raises:
            McpError: the error to send. The returned awaitable may also raise McpError.
        """

    def fast_path_runner(self, call: Call, channel: ReplyChannel) -> Callable[[], Json | McpError] | None:
        """Return a function that runs a tool call in any thread, or None if `handle` must run the call."""

    # -- changes by handlers at run time ---------------------------------------------------------------------------

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool."""

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Function], Function]:
        """Register a function as a resource or a resource template."""

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(self, function: None = None, /, **options: Unpack[PromptOptions]) -> Callable[[Function], Function]: ...

    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt."""

    def add_tool(self, tool: Tool) -> None:
        """Add a tool."""

    def remove_tool(self, name: str) -> None:
        """Remove a tool."""

    def add_resource(self, resource: Resource) -> None:
        """Add a resource or template."""

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or template."""

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt."""

    def notify_changed(self, what: Literal["tools", "resources", "prompts"]) -> None:
        """Notify clients that a list changed."""

    def notify_resource_updated(self, uri: str) -> None:
        """Notify subscribers that a resource changed."""


class MetricsInterface(Protocol):
    """Metrics of a server."""

    def expose(self, accept: str, sessions: int) -> tuple[str, bytes]:
        """Return a content type that `accept` permits, and the metrics in this format. This method is thread-safe."""


class SharedStoreUser(Protocol):
    """Owner of data that several processes share."""

    def share(self, store: SharedStore, processes: ProcessRegistry) -> None:
        """Keep the data in the shared store."""


class HttpRequest(Protocol):
    """The HTTP request that contained an MCP request."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers by lowercase name. The header Authorization is omitted."""

    @property
    def address(self) -> str | None:
        """Return the source address, which may be the address of a proxy."""


class ReplyChannel(Protocol):
    """Reply channel to the client of a request. Use the channel only in the event loop.

    Attributes:
        principal: the caller that the access token identifies, or "" without authorization.
        private: True if no other client can use this channel, as on stdio.
        subscriptions: the resources to which a session subscribed.
        allowance: the client's remaining rate limits.
    """

    principal: str
    private: bool
    subscriptions: set[str]
    allowance: ClientRateLimits

    @property
    def session_channel(self) -> SessionChannel | None:
        """Return the request's session, or None without a session."""

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification on the request's stream."""

    def request(self, method: str, params: Json) -> Awaitable[Json]:
        """Send a request to a client of the handshake lifecycle, and wait for the result."""

    def close_stream(self, retry: int | None) -> None:
        """End the HTTP response early. On transports other than HTTP, do nothing."""


class SessionChannel(ReplyChannel, Protocol):
    """A session of a client."""

    session_id: str | None
    session_state: Json


def check_server_info(name: str, version: str) -> tuple[str, str]:
    """Check a server's name and version, and return both."""
    for what, text in (("name", name), ("version", version)):
        if not isinstance(text, str):
            raise TypeError(
                f"the {what} of a server must be a string, not {text!r}\nhint: write Server('notes', version='1.0.0')"
            )
    if not name.strip():
        raise ValueError("a server needs a name\nhint: write Server('notes')")
    return name, version


def apply_decorator(register: Callable[[Any], Any], given: Any, options: dict[str, Any], what: str) -> Any:
    """Apply a decorator that is used without parentheses, with a name, or with keywords."""
    if callable(given):
        return register(given)
    if isinstance(given, str):
        if options.setdefault("name", given) != given:
            raise TypeError(f"the {what} has two names: {given!r} and {options['name']!r}")
    elif given is not None:
        raise TypeError(
            f'{given!r} is neither a function nor a name\nhint: write @server.{what}, or @server.{what}("name")'
        )
    return register


def lifespan_manager(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a lifespan to a function that returns a context manager."""
    if isasyncgenfunction(function):
        return asynccontextmanager(function)
    wrong = iscoroutinefunction(function) or isgeneratorfunction(function)
    if wrong or not callable(function):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(
            f"the lifespan {name} is not an async generator\nhint: write async def {name}(server): … yield state …"
        )
    return function
