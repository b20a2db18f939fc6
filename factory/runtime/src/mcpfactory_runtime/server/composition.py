"""Composition of servers by `parent.mount(part, prefix)`, and tools that read resources and prompts.

A part is a server that is mounted in another server, its parent. A part's handlers run inside the part's tool
middleware. In a part's handlers, `ctx.state` is the part's state, and `ctx.call` calls the part's tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from mcpfactory_runtime.revisions import APPS
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.execution import run_in_middleware
from mcpfactory_runtime.server.inputs import Argument, CompletionContext, Reference
from mcpfactory_runtime.server.registry import (
    CompletionHandler,
    Prompt,
    Registry,
    Tool,
    check_tool_name,
    registry_key,
)
from mcpfactory_runtime.server.results import EmbeddedBlob, Text
from mcpfactory_runtime.server.signature import is_async
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.server.routes import HttpRoutes, ReadinessChecks
    from mcpfactory_runtime.server.transform import TransformOptions

log = logging.getLogger(__name__)


class CompositionMixin:
    """Methods of `Server` that combine servers and transform tools."""

    registry: Registry
    routes: HttpRoutes
    readiness: ReadinessChecks

    def __init__(self) -> None:
        self.parts: list[Any] = []
        """Servers that are mounted in this server."""
        self.wholes: dict[Any, None] = {}
        """Servers in which this server is mounted."""
        self._mounted: list[MountedServer] = []
        self._transforms: list[_Transform] = []

    def mount(self, part: Any, prefix: str = "") -> None:
        """Add the tools, resources, templates, prompts and completions of another server.

        The part's HTTP routes keep their paths. The prefix is added to the names of the part's readiness checks.

        If the part's items change later, this server's items also change. The part's handlers run with the part's tool
        middleware and lifespan. The part's instructions, request middleware and rate limits have no effect in this
        server.

        Args:
            part: a `Server` or a `RemoteServer`. A mounted server can also be served alone, or be mounted in further
                servers.
            prefix: renames tools and prompts to `prefix_name`. "" keeps the names. URIs stay unchanged.

        Raises:
            TypeError: the part is not a server.
            ValueError: a name, URI or path is taken, a prefixed tool name is invalid, or the part contains this server.
                After an error, nothing is mounted.
        """
        _refuse_other(part)
        if prefix:
            check_tool_name(f"{prefix}_")
        if self in _all_parts(part):
            raise ValueError(f"{part.name} cannot be a part of itself")
        mounted = MountedServer(self.registry, part, prefix, self._transformed)
        mounted.check()
        self.routes.check(part.routes)
        mounted.sync_items()
        for route in part.routes:
            self.routes.add(route)
        self.readiness.include(part.readiness, mounted.name_prefix)
        self._mounted.append(mounted)
        self.parts.append(part)
        part.wholes[self] = None
        for kind in ("tools", "resources", "prompts"):
            self.notify_changed(kind)

    def sync_mounted_part(self, part: Any) -> None:
        """Register the current items of a part, and notify clients of changes."""
        for mounted in self._mounted:
            if mounted.part is part:
                for kind in sorted(mounted.sync_items()):
                    self.notify_changed(kind)

    def transform_tool(self, name: str, /, **options: Unpack[TransformOptions]) -> None:
        """Replace a tool with a transformed tool that calls the original tool.

        The original tool is hand-written or belongs to a part. To transform a generated tool, use `[tools.NAME]` in
        `mcpfactory.toml`, or mount the generated server and call `transform_tool` on the parent. A remote part's tools
        are transformed once the remote server has listed them.

        Args:
            name: the tool's current name. Tool middleware gets the new name.
            options: see `transform.transformed_tool`.

        Raises:
            KeyError: the tool does not exist.
            TypeError: an option is unknown.
            ValueError: a name, default or combination of arguments is invalid, or the tool is generated.
        """
        from mcpfactory_runtime.server.transform import check_options, transformed_tool  # noqa: PLC0415 - most servers transform none

        change = _Transform(name, options)
        if name in self.registry.generated:
            raise ValueError(f"{name} is a generated tool\nhint: change the tool in [tools.{name}] in mcpfactory.toml")
        tool = self.registry.tools.get(name)
        if tool is None:
            if not self.may_have_tool(name):
                known = ", ".join(self.registry.tools) or "none registered yet (register the tool first)"
                raise KeyError(f"unknown tool {name!r}; tools: {known}")
            check_options(name, **options)
            self._transforms.append(change)
            return
        if tool.resolve_target is not None:
            raise ValueError(f"{name} cannot be transformed, because this tool calls other tools by name")
        made = transformed_tool(tool, **options)
        self.registry.replace_tool(name, made)
        if self._replaced(tool, made):
            change.used = True
            self._transforms.append(change)
        self.notify_changed("tools")

    def add_reading_tools(self) -> None:
        """Add tools that read resources and prompts, for clients that support only tools.

        The tools are list_resources, read_resource, list_prompts and get_prompt. Request middleware gets calls of the
        four tools as `tools/call`, not as `resources/read` or `prompts/get`.

        Raises:
            ValueError: a tool name is taken. After an error, no tool is added.
        """
        tools = reading_tools(self.registry)
        for tool in tools:
            if tool.name in self.registry.tools:
                raise ValueError(f"tool {tool.name!r} already exists\nhint: set another name=")
        for tool in tools:
            self.registry.add(self.registry.tools, tool.name, tool)
        self.notify_changed("tools")

    def may_have_tool(self, name: str) -> bool:
        """Return True if a tool of this name may appear once the parts have listed their tools."""
        return any(change.options.get("rename") == name for change in self._transforms) or any(
            name.startswith(one.name_prefix) and one.part.may_have_tool(name.removeprefix(one.name_prefix))
            for one in self._mounted
        )

    async def wait_until_listed(self) -> None:
        """Wait until every part has listed its items or failed. Log transformations of missing tools."""
        await asyncio.gather(*(part.wait_until_listed() for part in self.parts))
        for change in self._transforms:
            if not change.used and not self.may_have_tool(change.name):
                log.warning(
                    "there is no tool %r to transform in %s", change.name, ", ".join(one.name for one in self.parts)
                )

    def record_subscription(self, uri: str) -> None:
        """Record a client's subscription to a resource. Remote parts forward the subscription to the remote server."""
        for part in self.parts:
            part.record_subscription(uri)

    def notify_changed(self, what: Any) -> None:
        """Notify clients that a list changed."""
        raise NotImplementedError

    def _replaced(self, tool: Tool, made: Tool) -> bool:
        return any(mounted.replace_tool(tool, made) for mounted in self._mounted)

    def _transformed(self, tool: Tool) -> Tool | None:
        for change in self._transforms:
            if change.name == tool.name:
                from mcpfactory_runtime.server.transform import transformed_tool  # noqa: PLC0415 - as in `transform_tool`

                change.used = True
                try:
                    tool = transformed_tool(tool, **change.options)
                except (TypeError, ValueError) as error:
                    log.error("tool %s is left out: it cannot be transformed: %s", tool.name, error)
                    return None
        return tool


class _Transform:
    __slots__ = ("name", "options", "used")

    def __init__(self, name: str, options: TransformOptions) -> None:
        self.name, self.options, self.used = name, options, False


def _refuse_other(part: Any) -> None:
    if not isinstance(part, CompositionMixin):
        hint = f"mount(server, {part!r})" if isinstance(part, str) else "mount(Server(…)), or mount(RemoteServer(…))"
        raise TypeError(f"{part!r} is not a server\nhint: {hint}")


def _all_parts(server: Any) -> list[Any]:
    return [server, *(inner for part in server.parts for inner in _all_parts(part))]


Handler = Callable[..., Any]
Transform = Callable[[Tool], Tool | None]


class _Offered(NamedTuple):
    """A part's item, and the corresponding item of the parent. `outer` is None if the parent has no such item."""

    inner: Any
    outer: Any
    key: str


class MountedServer:
    """A part mounted in its parent."""

    def __init__(self, registry: Registry, part: ServerInterface, prefix: str, transform: Transform) -> None:
        self.part = part
        self.name_prefix = f"{prefix}_" if prefix else ""
        self._registry = registry
        self._transform = transform
        self._taken: dict[str, dict[str, _Offered]] = {kind: {} for kind in _LISTS}
        self._completing = False

    def check(self) -> None:
        """Raise ValueError if the parent already has a name or URI of the part."""
        for kind, inner in self._inner():
            key = registry_key(_outer(self.part, inner, self.name_prefix))
            if key in getattr(self._registry, kind):
                raise ValueError(
                    f"{key!r} of {self.part.name} is already taken\nhint: mount the server with another prefix"
                )

    def sync_items(self) -> set[str]:
        """Update the parent's items from the part, and return the names of the changed lists.

        Keep removals and replacements that the parent's author made. Log a warning and omit an item if the parent
        already uses the item's name.
        """
        own, changed = self.part.registry, set()
        for kind, taken in self._taken.items():
            offered = own.offered(kind)
            for key in [key for key in taken if key not in offered]:
                self._drop(kind, taken.pop(key))
                changed.add(_LISTS[kind])
        for kind, inner in self._inner():
            key = registry_key(inner)
            previous = self._taken[kind].get(key)
            if previous is None or previous.inner is not inner:
                self._taken[kind][key] = self._offer(kind, inner, previous)
                changed.add(_LISTS[kind])
        self._registry.declares_tools = self._registry.declares_tools or own.declares_tools
        if APPS in own.extensions and APPS not in self._registry.extensions:
            self._registry.extensions[APPS] = own.extensions[APPS]
            self._registry.version += 1
        if own.completion is not None and not self._completing:
            self._completing = True
            self._registry.completion = CompletionHandler(
                _Completions(self.part, self.name_prefix, self._registry.completion)
            )
            self._registry.version += 1
        return changed

    def replace_tool(self, old: Tool, new: Tool) -> bool:
        """Record that the parent's author replaced a tool. Return False if `old` does not belong to the part."""
        for key, one in self._taken["tools"].items():
            if one.outer is old:
                self._taken["tools"][key] = _Offered(one.inner, new, new.name)
                return True
        return False

    def _inner(self) -> Iterator[tuple[str, Any]]:
        for kind in _LISTS:
            for inner in tuple(self.part.registry.offered(kind).values()):
                yield kind, inner

    def _offer(self, kind: str, inner: Any, previous: _Offered | None) -> _Offered:
        outer = _outer(self.part, inner, self.name_prefix)
        key = registry_key(outer)
        collection = getattr(self._registry, kind)
        if kind == "tools":
            outer = self._transform(outer)
            key = key if outer is None else outer.name
        if previous is not None and previous.outer is not None:
            if collection.get(previous.key) is not previous.outer:  # the parent's author removed or replaced the item
                return _Offered(inner, previous.outer, previous.key)
            if outer is not None and key == previous.key:
                collection[key] = outer  # an assignment keeps the item's position in the list
                self._registry.version += 1
                return _Offered(inner, outer, key)
            self._registry.remove(collection, previous.key)
        if outer is None:
            return _Offered(inner, None, key)
        if key in collection:
            log.warning("%r of %s is left out: the name is already taken", key, self.part.name)
            return _Offered(inner, None, key)
        self._registry.add(collection, key, outer)
        return _Offered(inner, outer, key)

    def _drop(self, kind: str, taken: _Offered) -> None:
        collection = getattr(self._registry, kind)
        if taken.outer is not None and collection.get(taken.key) is taken.outer:
            self._registry.remove(collection, taken.key)


class _PartContext(Context):
    """Context of a call in a mounted server. It shares all attributes with the parent's context."""

    __slots__ = ("_part",)
    _part: ServerInterface

    @classmethod
    def of(cls, context: Context, part: ServerInterface) -> _PartContext:
        """Return a context that keeps the methods of the given one, such as those of a task."""
        kind = type(context)
        if not issubclass(kind, _PartContext):
            kind = _part_class(kind)  # type: ignore[arg-type] # mypy takes the hash of instances
        made = object.__new__(kind)
        made.__dict__ = context.__dict__
        made._part = part
        return made

    @property
    def server(self) -> ServerInterface:
        return self._part

    @property
    def state(self) -> Any:
        """Return the value yielded by the part's lifespan, or None if the part has no lifespan."""
        return self._part.state


@cache
def _part_class(kind: type[Context]) -> type[_PartContext]:
    return type(f"Part{kind.__name__}", (_PartContext, kind), {"__slots__": ()})


def _tool(part: ServerInterface, inner: Tool, prefix: str) -> Tool:
    async def handler(arguments: Json, ctx: Context) -> Json:
        return await run_in_middleware(part.registry, inner, arguments, _PartContext.of(ctx, part))

    tool = Tool.from_raw_handler(f"{prefix}{inner.name}", inner.wire, handler)
    tool.scopes, tool.task, tool.defer_task = inner.scopes, inner.task, inner.defer_task
    tool.resolve_target = inner.resolve_target
    return tool


def _outer(part: ServerInterface, inner: Any, prefix: str) -> Any:
    if isinstance(inner, Tool):
        return _tool(part, inner, prefix)
    outer = copy(inner)
    outer.handler = _in_part(part, inner.handler, inner.signature.context)
    outer.is_async = is_async(outer.handler)
    if isinstance(inner, Prompt):
        outer.name = f"{prefix}{inner.name}"
        outer.wire = {**inner.wire, "name": outer.name}
    return outer


# collection of the registry → name of the list in change notifications
_LISTS: Final = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}


def _in_part(part: ServerInterface, handler: Handler, context_name: str | None) -> Handler:
    if context_name is None:
        return handler

    async def run(**arguments: Any) -> Any:
        arguments[context_name] = _PartContext.of(arguments[context_name], part)
        return await (handler(**arguments) if is_async(handler) else in_thread(handler, arguments))

    return run


class _Completions:
    """Completion handler that calls the part's handler for the part's items, and `others` for all other items."""

    def __init__(self, part: ServerInterface, prefix: str, others: CompletionHandler | None) -> None:
        self._part, self._prefix, self._others = part, prefix, others

    async def __call__(self, ref: Reference, argument: Argument, context: CompletionContext, ctx: Context) -> Any:
        own = self._part.registry
        name = ref.name.removeprefix(self._prefix) if ref.name.startswith(self._prefix) else ""
        if (ref.type == "ref/prompt" and name in own.prompts) or (
            ref.type == "ref/resource" and ref.uri in own.templates
        ):
            inner = ref._replace(name=name) if ref.type == "ref/prompt" else ref
            if own.completion is None:
                return None
            return await _complete(own.completion, (inner, argument, context), _PartContext.of(ctx, self._part))
        return None if self._others is None else await _complete(self._others, (ref, argument, context), ctx)


async def _complete(completer: CompletionHandler, request: tuple[Any, ...], ctx: Context) -> Any:
    bound = dict(zip(completer.names, request, strict=False))
    if completer.context is not None:
        bound[completer.context] = ctx
    return await (completer.handler(**bound) if completer.is_async else in_thread(completer.handler, bound))


_READS: Final = {"readOnlyHint": True, "openWorldHint": False}
_SHOWN: Final = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments")


def reading_tools(registry: Registry) -> list[Tool]:
    """Return the four tools of `Server.add_reading_tools`."""

    async def list_resources() -> Json:
        """List the resources and URI templates that read_resource can read."""
        return {"resources": _shown(registry.resources), "templates": _shown(registry.templates)}

    async def read_resource(uri: str, ctx: Context) -> list[Text | EmbeddedBlob]:
        """Read a resource.

        Args:
            uri: a URI from list_resources, or a URI that matches one of the URI templates
            ctx: the call's context
        """
        return [_block(one) for one in await ctx.read_resource(uri)]

    async def list_prompts() -> Json:
        """List the prompts for get_prompt, with their arguments."""
        return {"prompts": _shown(registry.prompts)}

    async def get_prompt(name: str, ctx: Context, arguments: dict[str, str] | None = None) -> Json:
        """Get a prompt: this server's instructions for a purpose.

        Args:
            name: name from list_prompts
            ctx: the call's context
            arguments: values of the prompt's arguments, by name
        """
        return {"messages": await ctx.get_prompt(name, **(arguments or {}))}

    functions = (list_resources, read_resource, list_prompts, get_prompt)
    return [Tool.from_function(function, annotations=_READS) for function in functions]


def _shown(records: dict[str, Any]) -> list[Json]:
    return [{key: one.wire[key] for key in _SHOWN if key in one.wire} for one in records.values()]


def _block(contents: Json) -> Text | EmbeddedBlob:
    if "blob" in contents:
        return EmbeddedBlob(contents["uri"], contents["blob"], contents.get("mimeType"))
    return Text(contents.get("text", ""))
