"""Servers that are parts of another one: `server.mount(part, "shop")`, all in one process.

What a part has when it is mounted is registered again with the whole, and what is called goes through the part: its own
middleware is around its tools, its own lifespan's value is `ctx.state`, and `ctx.call` means its own tools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from mcpfactory_runtime.server.completion import Argument, CompletionContext, Reference
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.execution import call_other, run_through
from mcpfactory_runtime.server.registry import Completer, Prompt, Registry, Resource, Template, Tool
from mcpfactory_runtime.server.signature import is_async
from mcpfactory_runtime.server.threads import in_thread

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host
    from mcpfactory_runtime.server.routes import HttpRoutes
    from mcpfactory_runtime.server.transform import TransformOptions
    from mcpfactory_runtime.store.base import SharedStore

__all__ = ["Composed"]

Json = dict[str, Any]
Handler = Callable[..., Any]


class Composed:
    """A server that others may be mounted in."""

    registry: Registry
    routes: HttpRoutes

    def __init__(self) -> None:
        self.parts: list[Any] = []
        """The servers that were mounted here; their lifespans are entered with this one's."""
        self.store: SharedStore | None = None
        """What processes that serve the same clients share; None where this process is alone."""
        self.wholes: dict[Any, None] = {}
        """The servers that this one was mounted in; their clients are told when a resource of this one changes."""

    def share(self, store: SharedStore | None) -> None:
        """Let this server and its parts count in a store what all processes together may do; None ends that."""
        for one in _all_parts(self):
            one.store = store

    def mount(self, part: Any, prefix: str = "") -> None:
        """Offer everything that another server has: tools, resources, templates, prompts, and completion for them.

        Its routes over HTTP come along under their own paths.

        What the part has now is taken; what is added to it later is not. Its middleware of tools and its lifespan hold for
        its handlers; its instructions, its middleware of requests and its rates do not count.

        Args:
            part: a `Server`; it may still be served alone, or mounted elsewhere.
            prefix: tools and prompts are called `prefix_name`; "" leaves their names. URIs stay as they are.

        Raises:
            ValueError: a name, URI or path is taken, and nothing was mounted; or the part is this server, or has it as a part.
        """
        if self in _all_parts(part):
            raise ValueError(f"{part.name} cannot be a part of itself")
        registry, own = self.registry, part.registry
        before = f"{prefix}_" if prefix else ""
        found: list[tuple[dict[str, Any], str, Any]] = [
            *((registry.tools, one.name, one) for one in (_tool(part, tool, before) for tool in own.tools.values())),
            *((registry.resources, uri, _resource(part, one)) for uri, one in own.resources.items()),
            *((registry.templates, uri, _template(part, one)) for uri, one in own.templates.items()),
            *(
                (registry.prompts, one.name, one)
                for one in (_prompt(part, prompt, before) for prompt in own.prompts.values())
            ),
        ]
        for collection, key, _ in found:
            if key in collection:
                raise ValueError(f"{key!r} of {part.name} is taken\nhint: mount it with another prefix")
        self.routes.check(part.routes)
        for collection, key, item in found:
            registry.add(collection, key, item)
        for route in part.routes:
            self.routes.add(route)
        if own.completion is not None:
            others = registry.completion
            registry.completion = Completer(_Completions(part, before, others))
        self.parts.append(part)
        if self.store is not None:
            part.share(self.store)
        part.wholes[self] = None
        for kind in ("tools", "resources", "prompts"):
            self.notify_changed(kind)

    def transform_tool(self, name: str, /, **options: Unpack[TransformOptions]) -> None:
        """Put a tool that calls another one in its place: hand-written ones and those of parts.

        A generated one is transformed by `[tools.NAME]` in `mcpfactory.toml`, or by the server that it is a part of.

        Args:
            name: of the tool as it is now; middleware of tools knows it by its new name.
            options: see `transform.transformed_tool`.

        Raises:
            KeyError: there is no such tool.
            TypeError: a word that there is not.
            ValueError: a name, a default or a choice of arguments cannot be; or the tool is generated.
        """
        from mcpfactory_runtime.server.transform import transformed_tool  # noqa: PLC0415 - most servers transform none

        if name in self.registry.generated or (tool := self.registry.tools.get(name)) is None:
            if name in self.registry.generated:
                raise ValueError(f"{name} is generated\nhint: [tools.{name}] in mcpfactory.toml")
            raise KeyError(f"there is no tool {name!r}")
        if tool.resolve_target is not None:
            raise ValueError(f"{name} calls other tools by their names and arguments, and cannot be transformed")
        self.registry.replace_tool(name, transformed_tool(tool, **options))
        self.notify_changed("tools")

    def notify_changed(self, what: Any) -> None:
        """Tell clients that a list has changed."""
        raise NotImplementedError


class _PartContext(Context):
    """The context of the whole's request, as a handler of a part sees it: all of its own state is the whole's."""

    __slots__ = ("_part",)

    def __init__(self, context: Context, part: Host) -> None:
        self.__dict__ = context.__dict__
        self._part = part

    @property
    def server(self) -> Host:
        """The part."""
        return self._part

    @property
    def state(self) -> Any:
        """What the part's lifespan yielded; None without one."""
        return self._part.state

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call another tool of the part."""
        return await call_other(self._part.registry, tool, arguments, self)


def _all_parts(server: Any) -> list[Any]:
    return [server, *(inner for part in server.parts for inner in _all_parts(part))]


def _tool(part: Host, inner: Tool, before: str) -> Tool:
    """Return a part's tool as one of the whole: the part checks the arguments and runs it inside of its own middleware."""

    async def handler(arguments: Json, ctx: Context) -> Json:
        return await run_through(part.registry, inner, arguments, _PartContext(ctx, part))

    name = f"{before}{inner.name}"
    tool = Tool(name, {**inner.wire, "name": name})
    tool.handler, tool.context, tool.bind, tool.convert = handler, "ctx", _as_arguments, _as_it_is
    tool.scopes, tool.task, tool.defer_task, tool.resolve_target = (
        inner.scopes,
        inner.task,
        inner.defer_task,
        inner.resolve_target,
    )
    return tool


def _resource(part: Host, inner: Resource) -> Resource:
    return Resource(inner.uri, _in_part(part, inner.handler, inner.signature.context), inner.signature, inner.wire)


def _template(part: Host, inner: Template) -> Template:
    handler = _in_part(part, inner.handler, inner.signature.context)
    return Template(inner.template, handler, inner.signature, inner.wire, inner.exempt_params)


def _prompt(part: Host, inner: Prompt, before: str) -> Prompt:
    handler = _in_part(part, inner.handler, inner.signature.context)
    return Prompt(handler, inner.signature, {**inner.wire, "name": f"{before}{inner.name}"})


def _in_part(part: Host, handler: Handler, context_name: str | None) -> Handler:
    """Return the handler of a resource or prompt, which is given the part's context if it takes one."""
    if context_name is None:
        return handler

    async def run(**arguments: Any) -> Any:
        arguments[context_name] = _PartContext(arguments[context_name], part)
        return await (handler(**arguments) if is_async(handler) else in_thread(handler, arguments))

    return run


class _Completions:
    """The completion handler of a server with parts: asks the part that what is completed belongs to, else the one before."""

    def __init__(self, part: Host, before: str, others: Completer | None) -> None:
        self._part, self._others = part, others
        self._prompts = {f"{before}{name}": name for name in part.registry.prompts}
        self._uris = frozenset(part.registry.templates)

    async def __call__(self, ref: Reference, argument: Argument, context: CompletionContext, ctx: Context) -> Any:
        """Return what the handler that is concerned returns."""
        if ref.type == "ref/prompt" and ref.name in self._prompts:
            return await self._ask(
                ref._replace(name=self._prompts[ref.name]), argument, context, _PartContext(ctx, self._part)
            )
        if ref.type == "ref/resource" and ref.uri in self._uris:
            return await self._ask(ref, argument, context, _PartContext(ctx, self._part))
        return None if self._others is None else await _complete(self._others, (ref, argument, context), ctx)

    async def _ask(self, ref: Reference, argument: Argument, context: CompletionContext, ctx: Context) -> Any:
        completer = self._part.registry.completion
        return None if completer is None else await _complete(completer, (ref, argument, context), ctx)


async def _complete(completer: Completer, request: tuple[Any, ...], ctx: Context) -> Any:
    bound = dict(zip(completer.names, request, strict=False))
    if completer.context is not None:
        bound[completer.context] = ctx
    return await (completer.handler(**bound) if completer.is_async else in_thread(completer.handler, bound))


def _as_arguments(arguments: Json) -> Json:
    return {"arguments": arguments}


def _as_it_is(result: Json) -> Json:
    return result
