"""`Server`, the class for authors of servers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from mcpfactory_runtime.protocol.jsonrpc import DEFAULT_MAX_SIZE
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.revisions import APPS
from mcpfactory_runtime.server.composition import CompositionMixin
from mcpfactory_runtime.server.dispatch import Dispatcher
from mcpfactory_runtime.server.extensions import Extensions, link_tool_to_app, make_app
from mcpfactory_runtime.server.interfaces import apply_decorator, check_server_info, lifespan_manager
from mcpfactory_runtime.server.lists import KINDS, NotificationHub
from mcpfactory_runtime.server.middleware.layers import MiddlewareStack, middleware_decorator
from mcpfactory_runtime.server.observability_mixin import ObservabilityMixin
from mcpfactory_runtime.server.rates import VARIABLE, Rates
from mcpfactory_runtime.server.registry import (
    CompletionHandler,
    Registry,
    Resource,
    Template,
    Tool,
    make_prompt,
    make_resource,
)
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.protocol.errors import McpError
    from mcpfactory_runtime.server.extensions import AppOptions, TasksOption
    from mcpfactory_runtime.server.generated.manifest import Hook
    from mcpfactory_runtime.server.interfaces import Function, Outcome, ReplyChannel
    from mcpfactory_runtime.server.middleware import Middleware
    from mcpfactory_runtime.server.registry import Icons, PromptOptions, ResourceOptions, ToolOptions
    from mcpfactory_runtime.server.request_state import RequestStateSealer
    from mcpfactory_runtime.transports.http.app import HttpApp

RatesOption = Rates | Mapping[str, str | None] | None
log = logging.getLogger(__name__)
Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Server(ObservabilityMixin, CompositionMixin):
    """An MCP server with tools, resources and prompts, for every released revision of MCP.

    Args:
        name: the server's programmatic name.
        version: the server's own version.
        title: the display name.
        description: one sentence on the purpose of the server.
        instructions: hints for the model on how to use the server as a whole.
        website_url: URL of further documentation.
        icons: icons in wire format.
        lifespan: see `Server.lifespan`.
        page_size: items per page of a list, or None to list everything at once.
        max_message_size: maximum size of a received message in bytes.
        ttl_ms: milliseconds that clients of the newest revision may cache lists and resources.
        cache_scope: `public` if no list or resource depends on the caller.
        tasks: storage of tasks: the path of a database, a `TaskStore` or `TaskOptions`. The default is the database in
            MCPFACTORY_TASKS_DB, or memory if the variable is not set.
        rates: rate limits per client, such as `{"calls": "600/m"}` (docs/reference/server-api.md, Rates).
        question_timeout: seconds until a question to a client of a handshake revision is canceled, or None.
    """

    _dispatcher: Dispatcher

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Icons = None,
        lifespan: Lifespan | None = None,
        page_size: int | None = None,
        max_message_size: int = DEFAULT_MAX_SIZE,
        ttl_ms: int = 0,
        cache_scope: Literal["public", "private"] = "private",
        tasks: TasksOption = None,
        rates: RatesOption = None,
        question_timeout: float | None = 3600.0,
    ) -> None:
        if page_size is not None and page_size < 1:
            raise ValueError("page_size must be at least 1\nhint: use None to return everything on one page")
        ObservabilityMixin.__init__(self)
        CompositionMixin.__init__(self)
        self.name, self.version = check_server_info(name, version)
        self.instructions = instructions
        self.page_size = page_size
        self.max_message_size = max_message_size
        self.cache: tuple[int, str] = (ttl_ms, cache_scope)
        self.question_timeout = question_timeout
        self._given_rates = rates
        self.registry = Registry()
        self.hub = NotificationHub()
        self.closing = asyncio.Event()
        self.state: Any = None
        self.info: Json = {"name": name, "version": version}
        extras = {"title": title, "description": description, "websiteUrl": website_url}
        self.info.update({key: value for key, value in extras.items() if value is not None})
        if icons is not None:
            self.info["icons"] = [dict(icon) for icon in icons]
        self._lifespan: Lifespan | None = None
        if lifespan is not None:
            self.lifespan(lifespan)
        self._rates: Rates | None = None
        self._capabilities: tuple[int, Json] = (-1, {})
        self._sealer: RequestStateSealer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.extensions = Extensions(self, tasks)
        self._layers = MiddlewareStack()
        self._dispatcher = Dispatcher(self, self.extensions, self._layers)

    # -- registration --------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        /,
        *,
        app: str | None = None,
        visibility: Sequence[Literal["model", "app"]] = (),
        **options: Unpack[ToolOptions],
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Any = None,
        /,
        *,
        app: str | None = None,
        visibility: Sequence[Literal["model", "app"]] = (),
        **options: Any,
    ) -> Any:
        """Register a function as a tool: `@server.tool`, `@server.tool("name")` or `@server.tool(title=…)`.

        The parameters become the input schema, and the return annotation becomes the output schema. The docstring
        becomes the description, and its `Args:` section describes the arguments. An `async def` function runs on the
        event loop, and a `def` function runs in a worker thread. The decorator returns the function unchanged.

        Args:
            function: the handler, or the tool's name.
            app: URI of the page that shows results (docs/reference/extensions.md).
            visibility: permitted callers.
            options: name, title, description, annotations, icons and meta of the tool. `structured`: True requires
                structured output, and False disables structured output. `input_schema` and `output_schema` replace the
                listed schemas, but do not change the checks. `scopes`: scopes that an access token needs over HTTP
                (docs/reference/authorization.md). `task`: "optional" if calls may be tasks, "required" if calls must be
                tasks (docs/reference/tasks.md). `defer_task`: True if the handler decides when a call becomes a task.
                `inline`: True runs a `def` function on the event loop; the function must not block. `timeout`: seconds
                after which a call fails.

        Raises:
            TypeError: a parameter is unsupported, or `inline` is combined with `async def` or a timeout.
            ValueError: the name is taken, or the timeout is invalid.
        """

        def register(handler: Function) -> Function:
            tool = Tool.from_function(handler, **options)
            if app is not None or visibility:
                link_tool_to_app(tool.wire, app, visibility)
            self.add_tool(tool)
            return handler

        return apply_decorator(register, function, options, "tool")

    def add_tool(self, tool: Tool) -> None:
        """Add a `Tool` object, and notify connected clients."""
        if not isinstance(tool, Tool):
            raise TypeError(f"add_tool takes a Tool, not {tool!r}\nhint: use server.tool(function)")
        self.registry.add(self.registry.tools, tool.name, tool)
        self.notify_changed("tools")

    def remove_tool(self, name: str) -> None:
        """Remove a tool, and notify connected clients.

        Raises:
            KeyError: no tool has this name.
        """
        catalog = self.extensions.catalog
        if catalog is None or not catalog.discard(name):
            self.registry.remove(self.registry.tools, name)
        self.notify_changed("tools")

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Function], Function]:
        """Register a function as a resource, or as a resource template if the URI has variables, as in `notes://{id}`.

        The function returns text, bytes, embedded resources, or any value with a JSON form. None means that the
        resource does not exist.

        Args:
            uri: the URI, or the template (RFC 6570).
            options: name, title, description, mime_type, annotations, icons, meta and size, in wire format.
                `exempt_params` contains template variables whose values are not checked. The value of any other
                variable is refused if the value would escape a directory.

        Raises:
            TypeError: variables and parameters differ, or the URI is missing.
            ValueError: the URI is taken or malformed.
        """
        if not isinstance(uri, str):
            raise TypeError('a resource needs a URI\nhint: write @server.resource("notes://today")')

        def register(handler: Function) -> Function:
            self.add_resource(make_resource(uri, handler, **options))
            return handler

        return register

    def add_resource(self, resource: Resource) -> None:
        """Add a `Resource` or `Template` object, and notify connected clients."""
        registry = self.registry
        collection: Any = registry.templates if isinstance(resource, Template) else registry.resources
        registry.add(collection, resource.uri, resource)
        self.notify_changed("resources")

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or template, and notify connected clients.

        Raises:
            KeyError: no resource or template has this URI.
        """
        registry = self.registry
        collection: Any = registry.templates if uri in registry.templates else registry.resources
        registry.remove(collection, uri)
        self.notify_changed("resources")

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(
        self, name: str | None = None, /, **options: Unpack[PromptOptions]
    ) -> Callable[[Function], Function]: ...

    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt.

        The function returns text, a `Message`, content, or a list of such values.

        Args:
            function: the handler, or the prompt's name. The handler's parameters are the prompt's arguments.
            options: name, title, description, icons and meta, in wire format.

        Raises:
            TypeError: the signature has unsupported parameters.
            ValueError: the name is taken.
        """

        def register(handler: Function) -> Function:
            prompt = make_prompt(handler, **options)
            self.registry.add(self.registry.prompts, prompt.name, prompt)
            self.notify_changed("prompts")
            return handler

        return apply_decorator(register, function, options, "prompt")

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt, and notify connected clients.

        Raises:
            KeyError: no prompt has this name.
        """
        self.registry.remove(self.registry.prompts, name)
        self.notify_changed("prompts")

    def completion(self, function: Function) -> Function:
        """Register a function as the completion handler for all prompts and resource templates.

        The function takes up to three values, `(ref, argument, context)`, and returns strings or a `Completion`.
        """
        self.registry.completion = CompletionHandler(function)
        self.registry.version += 1
        return function

    def lifespan(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Set an async generator function that runs at startup and shutdown, once per process.

        The function takes the server, and yields the value of `ctx.state` once.
        """
        self._lifespan = lifespan_manager(function)
        return function

    # -- generated tools -----------------------------------------------------------------------------------------

    def mount_manifest(self, folder: str | PathLike[str]) -> int:
        """Register the generated tools of a `_generated` package, and return the number of tools.

        MCPFACTORY_MODE, MCPFACTORY_PROFILE and MCPFACTORY_DIALECT override the manifest. `offer` overrides the manifest
        and the variables.

        Raises:
            ManifestError: the manifest is missing or damaged.
            ValueError: a tool's name is taken.
        """
        return self.extensions.mount_manifest(folder)

    def offer(self, mode: str | None = None, profile: str | None = None, dialect: str | None = None) -> tuple[str, str]:
        """Change the list of tools, and notify connected clients. None keeps the current value.

        Args:
            mode: `full` lists each tool. `search` lists three tools that find, describe and call the other tools.
            profile: `full`, `read-only`, or a profile from `mcpfactory.toml`.
            dialect: a key of `client_limits.DIALECTS`, such as `standard`, which lists unchanged schemas.

        Returns:
            The previous mode and profile.

        Raises:
            CatalogError: the mode, profile or dialect is unknown. This error is a ValueError.
            ValueError: the server has no generated tools, which modes and profiles require.
        """
        before = self.extensions.offer(mode, profile, dialect)
        self.notify_changed("tools")
        return before

    def before(self, *tools: str) -> Callable[[Hook], Hook]:
        """Decorate a function `(ToolCall) -> None` that runs before the named generated tools.

        Without names, the function runs before all generated tools.

        Raises:
            ValueError: a name does not belong to a generated tool.
        """
        return lambda hook: self.extensions.hooks.add_before(tools, hook, self.registry.generated)

    def after(self, *tools: str) -> Callable[[Hook], Hook]:
        """Decorate a function `(ToolCall, ToolResult) -> ToolResult | None` that runs after the named generated tools.

        Without names, the function runs after all generated tools. If the function returns None, the result stays
        unchanged.

        Raises:
            ValueError: a name does not belong to a generated tool.
        """
        return lambda hook: self.extensions.hooks.add_after(tools, hook, self.registry.generated)

    # -- middleware ----------------------------------------------------------------------------------------------

    def add_middleware(self, middleware: Middleware) -> None:
        """Add a middleware inside all earlier middleware (docs/reference/middleware.md).

        Raises:
            TypeError: the middleware has neither `on_request` nor `on_tool`.
        """
        self._layers.add(middleware)
        self._surround()

    @overload
    def middleware(self, function: Function, /) -> Function: ...

    @overload
    def middleware(self, *methods: str) -> Callable[[Function], Function]: ...

    def middleware(self, *methods: Any) -> Any:
        """Decorate an `async def (Request, call_next)` that wraps requests: `@server.middleware("tools/list")`.

        Args:
            methods: methods of the requests. Without methods, the function wraps all requests.

        Raises:
            TypeError: the function is not an `async def`.
            ValueError: a method is unknown.
        """
        return middleware_decorator(self._layers.add_around_requests, methods)

    @overload
    def tool_middleware(self, function: Function, /) -> Function: ...

    @overload
    def tool_middleware(self, *tools: str) -> Callable[[Function], Function]: ...

    def tool_middleware(self, *tools: Any) -> Any:
        """Decorate an `async def (ToolRequest, call_next)` that wraps tools: `@server.tool_middleware("search")`.

        The function wraps every call, including calls through search mode, calls in a task, and calls by
        `Context.call`.

        Args:
            tools: names of tools. Without names, the function wraps all tools.

        Raises:
            TypeError: the function is not an `async def`.
        """
        return middleware_decorator(self._add_around_tools, tools)

    def _add_around_tools(self, tools: Iterable[str], function: Any) -> None:
        self._layers.add_around_tools(tools, function)
        self._surround()

    def _surround(self) -> None:
        self.registry.around = self._layers.run_tool if self._layers.tools else None

    # -- skills and apps -----------------------------------------------------------------------------------------

    def add_skill(self, folder: str | PathLike[str], *, prefix: str = "") -> str:
        """Publish a skill: a folder with a SKILL.md and related files.

        Args:
            folder: the skill's folder. The folder must have the name of the skill.
            prefix: path before the name in the skill's URI: `acme/billing` for `skill://acme/billing/refunds`.

        Returns:
            The URI of the skill's SKILL.md.

        Raises:
            SkillError: the folder cannot be published as a skill.
            ValueError: the URI is taken.
        """
        return self.extensions.skills.publish(folder, prefix)

    def add_skills(self, folder: str | PathLike[str], *, prefix: str = "") -> list[str]:
        """Publish every subfolder of `folder` that contains a SKILL.md. Return the URIs, sorted by folder name.

        Raises:
            SkillError: no skill was found, or a skill cannot be published.
        """
        return self.extensions.skills.publish_all(folder, prefix)

    def app(self, uri: str, **options: Unpack[AppOptions]) -> None:
        """Publish a page that hosts show with results of tools. A tool refers to the page by the option `app=uri`.

        Args:
            uri: `ui://…`.
            options: `html` is the complete, self-contained page. `path` is a file with the page, which is read at every
                request. Set either `html` or `path`. `name`, `title` and `description` describe the resource. `csp`
                contains the origins that the page may use, by the keys connectDomains, resourceDomains, frameDomains
                and baseUriDomains. `permissions` may contain camera, microphone, geolocation and clipboardWrite.
                `domain` is the origin that the host should give the page. `prefers_border` is True if the host should
                draw a border.

        Raises:
            TypeError: both `html` and `path` are given, or neither is given.
            ValueError: the URI is taken or does not start with `ui://`, or `csp` or `permissions` has an unknown
                member.
        """
        resource = make_app(uri, **options)
        self.registry.extensions[APPS] = {}
        self.add_resource(resource)

    # -- changes -------------------------------------------------------------------------------------------------

    def notify_changed(self, what: Literal["tools", "resources", "prompts"]) -> None:
        """Notify clients of this server and its parents that a list changed. This method is thread-safe."""
        self._publish(KINDS[f"{what}ListChanged"][0], {})
        for whole in tuple(self.wholes):
            whole.sync_mounted_part(self)

    def notify_resource_updated(self, uri: str) -> None:
        """Notify subscribers at this server and its parents that a resource changed. This method is thread-safe."""
        self._publish(UPDATED, {"uri": uri})
        for whole in tuple(self.wholes):
            whole.notify_resource_updated(uri)

    def _publish(self, method: str, params: Json) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.hub.publish, method, params)

    # -- interface of transports ---------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Json:
        """Return the server's current capabilities, which depend on the kinds of registered items."""
        registry = self.registry
        if self._capabilities[0] != registry.version:
            self._capabilities = (registry.version, registry.capabilities())
        return self._capabilities[1]

    @property
    def rates(self) -> Rates:
        """Return the rate limits for one client. MCPFACTORY_RATES overrides the author's limits.

        Raises:
            ValueError: the variable is invalid.
        """
        if self._rates is None:
            given = self._given_rates
            rates = given if isinstance(given, Rates) else Rates(given)
            rates.replace(os.environ.get(VARIABLE, ""))
            self._rates = rates
        return self._rates

    @property
    def sealer(self) -> RequestStateSealer:
        """Return the sealer of state that passes through clients."""
        if self._sealer is None:
            from mcpfactory_runtime.server.request_state import RequestStateSealer  # noqa: PLC0415 - hashing is only needed by handlers that ask

            self._sealer = RequestStateSealer.from_environment(self.name)
        return self._sealer

    def handle(self, call: Call, channel: ReplyChannel) -> Outcome:
        """Answer one request."""
        return (self._observed or self._dispatcher).handle(call, channel)

    def fast_path_runner(self, call: Call, channel: ReplyChannel) -> Callable[[], Json | McpError] | None:
        """Return a function that runs a tool call in any thread, or None if `handle` must run the call."""
        return None if self._observed else self._dispatcher.fast_path_runner(call, channel)

    @asynccontextmanager
    async def running(self, *, alone: bool = True) -> AsyncIterator[None]:
        """Run the lifespans of the server and its mounted servers in this process.

        Only the transport may enter this context, and only once.

        Args:
            alone: False for a mounted server, because the parent waits until all mounted servers have listed their
                items.
        """
        if self._loop is not None and self._loop is asyncio.get_running_loop():
            yield  # the lifespan is active already, for example in an application that contains this one
            return
        self.extensions.check_environment()
        for name in sorted(self._layers.tool_names()):
            if self.registry.tool(name) is None:
                log.warning("middleware names the tool %r, which this server does not have", name)
        self._loop = asyncio.get_running_loop()
        self.closing = asyncio.Event()
        try:
            async with AsyncExitStack() as life:
                life.push_async_callback(self._send_telemetry)
                if self._lifespan is not None:
                    self.state = await life.enter_async_context(self._lifespan(self))
                for part in self.parts:
                    await life.enter_async_context(part.running(alone=False))
                life.push_async_callback(self.extensions.close)
                if alone:
                    await self.wait_until_listed()
                yield
        finally:
            self.closing.set()
            self._loop = None

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Run the command line. Serve stdio, or serve HTTP if the arguments contain `--http`."""
        from mcpfactory_runtime.server.command_line import run  # noqa: PLC0415 - transports are chosen at run time

        run(self, arguments)

    def run_stdio(self) -> None:
        """Serve standard input and output until the input ends."""
        from mcpfactory_runtime.transports.stdio import run_stdio  # noqa: PLC0415 - transports are chosen at run time

        run_stdio(self)

    def run_http(self, host: str = "127.0.0.1", port: int = 8000, **options: Any) -> None:
        """Serve Streamable HTTP at `http://host:port/mcp` until a signal. See `http_app` for `options`."""
        from mcpfactory_runtime.transports.http.serve import run_http  # noqa: PLC0415 - loads the web server

        run_http(self, host, port, **options)

    async def run_async(self, transport: Literal["stdio", "http"] = "stdio", **options: Any) -> None:
        """Serve in the running event loop until the stdio input ends or the call is canceled. Signals are not handled.

        Args:
            transport: `stdio` or `http`.
            options: host, port and the options of `http_app`, for HTTP only.

        Raises:
            OSError: the server cannot listen on the address.
            ValueError: the transport is unknown, or an option is invalid.
        """
        if transport not in ("stdio", "http"):
            raise ValueError(f"unknown transport {transport!r}\nhint: use 'stdio' or 'http'")
        if transport == "stdio":
            from mcpfactory_runtime.transports.stdio import serve_stdio  # noqa: PLC0415 - transports are chosen at run time

            await serve_stdio(self)
        else:
            from mcpfactory_runtime.transports.http.serve import serve_http  # noqa: PLC0415 - loads the web server

            await serve_http(self, options.pop("host", "127.0.0.1"), options.pop("port", 8000), **options)

    def http_app(self, **options: Any) -> HttpApp:
        """Return the server as an ASGI application. See `transports.http.app.HttpApp` for `options`."""
        from mcpfactory_runtime.transports.http.app import HttpApp  # noqa: PLC0415 - transports are chosen at run time

        return HttpApp(self, **options)
