"""Servers that are parts of another one: `server.mount(part, "shop")`, all in one process."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Unpack

from mcpfactory_runtime.server.registry import Registry, Tool, check_tool_name

if TYPE_CHECKING:
    from mcpfactory_runtime.server.mounting import Mounted
    from mcpfactory_runtime.server.readiness import Readiness
    from mcpfactory_runtime.server.routes import HttpRoutes
    from mcpfactory_runtime.server.transform import TransformOptions

__all__ = ["Composed"]

log = logging.getLogger("mcpfactory_runtime")


class Composed:
    """A server that others may be mounted in."""

    registry: Registry
    routes: HttpRoutes
    readiness: Readiness

    def __init__(self) -> None:
        self.parts: list[Any] = []
        """The servers that were mounted here; their lifespans are entered with this one's."""
        self.wholes: dict[Any, None] = {}
        """The servers that this one was mounted in; their clients are told when something of this one changes."""
        self._mounted: list[Mounted] = []
        self._transforms: list[_Transform] = []

    def mount(self, part: Any, prefix: str = "") -> None:
        """Offer everything that another server has: tools, resources, templates, prompts, and completion for them.

        Its routes over HTTP come along under their own paths, and its ready checks with its prefix.

        What is added to the part later, or taken from it, is so here, too. Its middleware of tools and its lifespan hold for
        its handlers; its instructions, its middleware of requests and its rates do not count.

        Args:
            part: a `Server`, which may still be served alone, or mounted elsewhere; or a `RemoteServer`.
            prefix: tools and prompts are called `prefix_name`; "" leaves their names. URIs stay as they are.

        Raises:
            TypeError: the part is no server.
            ValueError: a name, URI or path is taken, or the prefix makes names that no tool can have, and nothing was mounted;
                or the part is this server, or has it as a part.
        """
        from mcpfactory_runtime.server.mounting import Mounted  # noqa: PLC0415 - most servers have no parts

        _refuse_other(part)
        if prefix:
            check_tool_name(f"{prefix}_")
        if self in _all_parts(part):
            raise ValueError(f"{part.name} cannot be a part of itself")
        mounted = Mounted(self.registry, part, prefix, self._transformed)
        mounted.check()
        self.routes.check(part.routes)
        mounted.take()
        for route in part.routes:
            self.routes.add(route)
        self.readiness.include(part.readiness, mounted.before)
        self._mounted.append(mounted)
        self.parts.append(part)
        part.wholes[self] = None
        for kind in ("tools", "resources", "prompts"):
            self.notify_changed(kind)

    def update_from(self, part: Any) -> None:
        """Offer what a part has now; clients are told what changed."""
        for mounted in self._mounted:
            if mounted.part is part:
                for kind in sorted(mounted.take()):
                    self.notify_changed(kind)

    def transform_tool(self, name: str, /, **options: Unpack[TransformOptions]) -> None:
        """Put a tool that calls another one in its place: hand-written ones and those of parts.

        A generated one is transformed by `[tools.NAME]` in `mcpfactory.toml`, or by the server that it is a part of. One of a
        remote part, which says what it has when it is connected, is transformed then.

        Args:
            name: of the tool as it is now; middleware of tools knows it by its new name.
            options: see `transform.transformed_tool`.

        Raises:
            KeyError: there is no such tool.
            TypeError: a word that there is not.
            ValueError: a name, a default or a choice of arguments cannot be; or the tool is generated.
        """
        from mcpfactory_runtime.server.transform import check_options, transformed_tool  # noqa: PLC0415 - most servers transform none

        change = _Transform(name, options)
        if name in self.registry.generated:
            raise ValueError(f"{name} is generated\nhint: [tools.{name}] in mcpfactory.toml")
        tool = self.registry.tools.get(name)
        if tool is None:
            if not self.may_have(name):
                known = ", ".join(self.registry.tools) or "none is registered yet, so transform it later"
                raise KeyError(f"there is no tool {name!r}; tools: {known}")
            check_options(name, **options)
            self._transforms.append(change)
            return
        if tool.resolve_target is not None:
            raise ValueError(f"{name} calls other tools by their names and arguments, and cannot be transformed")
        made = transformed_tool(tool, **options)
        self.registry.replace_tool(name, made)
        if self._replaced(tool, made):
            change.used = True
            self._transforms.append(change)
        self.notify_changed("tools")

    def add_reading_tools(self) -> None:
        """Offer resources and prompts as tools, too, for clients that know only these: list_resources, read_resource, list_prompts, get_prompt.

        They go through no middleware of requests but that of `tools/call`.

        Raises:
            ValueError: a name is taken, and none was added.
        """
        from mcpfactory_runtime.server.reading_tools import reading_tools  # noqa: PLC0415 - most servers leave that to clients

        tools = reading_tools(self.registry)
        for tool in tools:
            if tool.name in self.registry.tools:
                raise ValueError(f"tool {tool.name!r} exists already\nhint: give it another name=")
        for tool in tools:
            self.registry.add(self.registry.tools, tool.name, tool)
        self.notify_changed("tools")

    def may_have(self, name: str) -> bool:
        """Whether a part that has not said yet what it has may have a tool of this name here."""
        return any(change.options.get("rename") == name for change in self._transforms) or any(
            name.startswith(one.before) and one.part.may_have(name.removeprefix(one.before)) for one in self._mounted
        )

    async def settle(self) -> None:
        """Wait until every part has said what it has, or cannot for now; say which changes were for nothing."""
        await asyncio.gather(*(part.settle() for part in self.parts))
        for change in self._transforms:
            if not change.used and not self.may_have(change.name):
                log.warning(
                    "there is no tool %r to transform in %s", change.name, ", ".join(one.name for one in self.parts)
                )

    def follow(self, uri: str) -> None:
        """Note that a client wants to be told when a resource changes: who has it elsewhere has to ask there."""
        for part in self.parts:
            part.follow(uri)

    def notify_changed(self, what: Any) -> None:
        """Tell clients that a list has changed."""
        raise NotImplementedError

    def _replaced(self, tool: Tool, made: Tool) -> bool:
        """Note that a tool is in the place of another one; False where that is no part's, which nobody makes anew."""
        return any(mounted.replace_tool(tool, made) for mounted in self._mounted)

    def _transformed(self, tool: Tool) -> Tool | None:
        """Return a tool of a part as the author wants it; None, with the reason in the log, where that can no longer be."""
        for change in self._transforms:
            if change.name == tool.name:
                from mcpfactory_runtime.server.transform import transformed_tool  # noqa: PLC0415 - as in `transform_tool`

                change.used = True
                try:
                    tool = transformed_tool(tool, **change.options)
                except (TypeError, ValueError) as error:
                    log.error("tool %s is left out, as it cannot be transformed: %s", tool.name, error)
                    return None
        return tool


class _Transform:
    """What becomes of a tool of a part; `used` once there was that tool."""

    __slots__ = ("name", "options", "used")

    def __init__(self, name: str, options: TransformOptions) -> None:
        self.name, self.options, self.used = name, options, False


def _refuse_other(part: Any) -> None:
    if isinstance(part, Composed):
        return
    hint = f"mount(server, {part!r})" if isinstance(part, str) else "mount(Server(…)), or mount(RemoteServer(…))"
    raise TypeError(f"{part!r} is no server\nhint: {hint}")


def _all_parts(server: Any) -> list[Any]:
    return [server, *(inner for part in server.parts for inner in _all_parts(part))]
