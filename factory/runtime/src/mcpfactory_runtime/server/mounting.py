"""One server as a part of another: what it has, registered again with the whole, and kept up to date when it changes.

What is called goes through the part: its own middleware is around its tools, its own lifespan's value is `ctx.state`, and
`ctx.call` means its own tools.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcpfactory_runtime.revisions import APPS
from mcpfactory_runtime.server.completion import Argument, CompletionContext, Reference
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.execution import run_through
from mcpfactory_runtime.server.registry import Completer, Prompt, Registry, Resource, Template, Tool, key_of
from mcpfactory_runtime.server.signature import is_async
from mcpfactory_runtime.server.threads import in_thread

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host

__all__ = ["Mounted"]

Json = dict[str, Any]
Handler = Callable[..., Any]
Transform = Callable[[Tool], Tool | None]

log = logging.getLogger("mcpfactory_runtime")


class _Offered(NamedTuple):
    """What the part has, and what the whole offers in its place: None where that is not possible."""

    inner: Any
    outer: Any
    key: str


class Mounted:
    """A part in a whole.

    Args:
        registry: the whole's.
        part: the server that is mounted.
        prefix: tools and prompts are called `prefix_name`; "" leaves their names.
        transform: returns a tool of the part as the whole wants it; None where that is no longer possible.
    """

    def __init__(self, registry: Registry, part: Host, prefix: str, transform: Transform) -> None:
        self.part = part
        self.before = f"{prefix}_" if prefix else ""
        self._registry = registry
        self._transform = transform
        self._taken: dict[str, dict[str, _Offered]] = {kind: {} for kind in _MAKERS}
        self._completing = False

    def check(self) -> None:
        """See that the whole has nothing under the names that the part would have there.

        Raises:
            ValueError: it has.
        """
        for kind, inner in self._inner():
            key = _outer_key(kind, inner, self.before)
            if key in getattr(self._registry, kind):
                raise ValueError(f"{key!r} of {self.part.name} is taken\nhint: mount it with another prefix")

    def take(self) -> set[str]:
        """Offer what the part has now, and no longer what it has no more; return which lists of the whole changed.

        What the author of the whole took away, or made of it, stays so. A name that is taken meanwhile is left out, with a warning.
        """
        own, changed = self.part.registry, set()
        for kind, taken in self._taken.items():
            offered = own.offered(kind)
            for key in [key for key in taken if key not in offered]:
                self._drop(kind, taken.pop(key))
                changed.add(_LISTS[kind])
        for kind, inner in self._inner():
            key = key_of(inner)
            before = self._taken[kind].get(key)
            if before is None or before.inner is not inner:
                self._taken[kind][key] = self._offer(kind, inner, before)
                changed.add(_LISTS[kind])
        self._registry.declares_tools = self._registry.declares_tools or own.declares_tools
        if APPS in own.extensions and APPS not in self._registry.extensions:
            self._registry.extensions[APPS] = own.extensions[APPS]
            self._registry.version += 1
        if own.completion is not None and not self._completing:
            self._completing = True
            self._registry.completion = Completer(_Completions(self.part, self.before, self._registry.completion))
            self._registry.version += 1
        return changed

    def replace_tool(self, before: Tool, tool: Tool) -> bool:
        """Note that the author of the whole put a tool in the place of one of the part's; False where it was none of them."""
        for key, one in self._taken["tools"].items():
            if one.outer is before:
                self._taken["tools"][key] = _Offered(one.inner, tool, tool.name)
                return True
        return False

    def _inner(self) -> Iterator[tuple[str, Any]]:
        for kind in _MAKERS:
            for inner in tuple(self.part.registry.offered(kind).values()):
                yield kind, inner

    def _offer(self, kind: str, inner: Any, before: _Offered | None) -> _Offered:
        """Register something of the part with the whole, in the place of what it was before."""
        outer = _MAKERS[kind](self.part, inner, self.before)
        key = _outer_key(kind, inner, self.before)
        collection = getattr(self._registry, kind)
        if kind == "tools":
            outer = self._transform(outer)
            key = key if outer is None else outer.name
        if before is not None and before.outer is not None:
            if collection.get(before.key) is not before.outer:  # the author of the whole took it away
                return _Offered(inner, before.outer, before.key)
            if outer is not None and key == before.key:
                collection[key] = outer  # in its place
                self._registry.version += 1
                return _Offered(inner, outer, key)
            self._registry.remove(collection, before.key)
        if outer is None:
            return _Offered(inner, None, key)
        if key in collection:
            log.warning("%r of %s is left out: there is another one of this name", key, self.part.name)
            return _Offered(inner, None, key)
        self._registry.add(collection, key, outer)
        return _Offered(inner, outer, key)

    def _drop(self, kind: str, taken: _Offered) -> None:
        collection = getattr(self._registry, kind)
        if taken.outer is not None and collection.get(taken.key) is taken.outer:
            self._registry.remove(collection, taken.key)


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


def _tool(part: Host, inner: Tool, before: str) -> Tool:
    """Return a part's tool as one of the whole: the part checks the arguments and runs it inside of its own middleware."""

    async def handler(arguments: Json, ctx: Context) -> Json:
        return await run_through(part.registry, inner, arguments, _PartContext(ctx, part))

    tool = Tool.passing_on(f"{before}{inner.name}", inner.wire, handler)
    tool.scopes, tool.task, tool.defer_task, tool.resolve_target = (
        inner.scopes,
        inner.task,
        inner.defer_task,
        inner.resolve_target,
    )
    return tool


def _resource(part: Host, inner: Resource, _before: str) -> Resource:
    return Resource(inner.uri, _in_part(part, inner.handler, inner.signature.context), inner.signature, inner.wire)


def _template(part: Host, inner: Template, _before: str) -> Template:
    handler = _in_part(part, inner.handler, inner.signature.context)
    return Template(inner.template, handler, inner.signature, inner.wire, inner.exempt_params)


def _prompt(part: Host, inner: Prompt, before: str) -> Prompt:
    handler = _in_part(part, inner.handler, inner.signature.context)
    return Prompt(handler, inner.signature, {**inner.wire, "name": f"{before}{inner.name}"})


# collection of a registry → what makes one of the whole of one of the part's
_MAKERS: Final[dict[str, Callable[[Host, Any, str], Any]]] = {
    "tools": _tool,
    "resources": _resource,
    "templates": _template,
    "prompts": _prompt,
}
# collection → the list that clients are told of
_LISTS: Final = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}


def _outer_key(kind: str, inner: Any, before: str) -> str:
    return f"{before}{inner.name}" if kind in ("tools", "prompts") else key_of(inner)


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
        self._part, self._before, self._others = part, before, others

    async def __call__(self, ref: Reference, argument: Argument, context: CompletionContext, ctx: Context) -> Any:
        """Return what the handler that is concerned returns."""
        own = self._part.registry
        name = ref.name.removeprefix(self._before) if ref.name.startswith(self._before) else ""
        if (ref.type == "ref/prompt" and name in own.prompts) or (
            ref.type == "ref/resource" and ref.uri in own.templates
        ):
            inner = ref._replace(name=name) if ref.type == "ref/prompt" else ref
            if own.completion is None:
                return None
            return await _complete(own.completion, (inner, argument, context), _PartContext(ctx, self._part))
        return None if self._others is None else await _complete(self._others, (ref, argument, context), ctx)


async def _complete(completer: Completer, request: tuple[Any, ...], ctx: Context) -> Any:
    bound = dict(zip(completer.names, request, strict=False))
    if completer.context is not None:
        bound[completer.context] = ctx
    return await (completer.handler(**bound) if completer.is_async else in_thread(completer.handler, bound))
