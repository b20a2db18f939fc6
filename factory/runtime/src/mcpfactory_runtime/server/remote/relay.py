"""Tools, resources and prompts of another server, from what it lists: each passes its calls on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.server.completion import Argument, Completion, CompletionContext
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool
from mcpfactory_runtime.server.results import EmbeddedText

__all__ = [
    "PassOn",
    "RelayNames",
    "relayed_completion",
    "relayed_prompt",
    "relayed_resource",
    "relayed_template",
    "relayed_tool",
]

Json = dict[str, Any]
PassOn = Callable[[str, Json, Context], Awaitable[Json]]
"""(method, params, who asks) → result."""

_NOT_FOUND: Final = {INVALID_PARAMS, -32002}  # server/resources, Error Handling: of all revisions


class RelayNames(Protocol):
    """What names and URIs of the other server are here."""

    def name(self, inner: str) -> str:
        """Return the name of a tool or prompt."""

    def uri(self, inner: str) -> str:
        """Return a URI or URI template."""

    def inner_uri(self, uri: str) -> str:
        """Return the other server's own URI."""

    def content(self, block: Any) -> Any:
        """Return a content block with the URIs that it names."""


class _OwnNames:
    """They are the same."""

    def name(self, inner: str) -> str:
        return inner

    def uri(self, inner: str) -> str:
        return inner

    def inner_uri(self, uri: str) -> str:
        return uri

    def content(self, block: Any) -> Any:
        return block


_OWN: Final[RelayNames] = _OwnNames()


def relayed_tool(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Tool:
    """Return a tool. Arguments are the other server's to check; calls are no tasks."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> Json:
        result = await pass_on("tools/call", {"name": inner, "arguments": arguments}, ctx)
        content = result.get("content", [])
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise ToolError(f"The answer of {inner} is no result of a tool: its content is no list of blocks")
        return {**result, "content": [names.content(block) for block in content]}

    shown = {key: value for key, value in wire.items() if key != "execution"}
    return Tool.passing_on(names.name(inner), shown, handler)


def relayed_prompt(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Prompt:
    """Return a prompt."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> list[Json]:
        result = await pass_on("prompts/get", {"name": inner, "arguments": arguments}, ctx)
        return [{**one, "content": names.content(one.get("content"))} for one in result.get("messages", [])]

    return Prompt(handler, _PromptArguments(), {**wire, "name": names.name(inner)})  # type: ignore[arg-type]  # it binds as one


def relayed_resource(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Resource:
    """Return a resource."""
    uri = names.uri(str(wire["uri"]))
    reader = _ResourceReader(pass_on, names, uri)
    return Resource(uri, reader, _UncheckedArguments(), {**wire, "uri": uri})  # type: ignore[arg-type]  # it binds as one


def relayed_template(
    wire: Mapping[str, Any], pass_on: PassOn, matches: Callable[[str], bool], names: RelayNames = _OWN
) -> Template:
    """Return a resource template, which takes the URIs that `matches` says. Its variables are the other server's, who judges them."""
    text = names.uri(str(wire["uriTemplate"]))
    uris: Any = _RelayedUris(text, matches)  # it matches as a template does
    unchecked: Any = _UncheckedArguments()  # it binds as a signature does
    return Template(uris, _ResourceReader(pass_on, names), unchecked, {**wire, "uriTemplate": text})


async def relayed_completion(
    pass_on: PassOn, reference: Json, argument: Argument, context: CompletionContext, ctx: Context
) -> Completion | None:
    """Return what the other server completes; None where it completes nothing. `reference` is in its own names."""
    params: Json = {"ref": reference, "argument": {"name": argument.name, "value": argument.value}}
    if context.arguments:
        params["context"] = {"arguments": context.arguments}
    try:
        result = await pass_on("completion/complete", params, ctx)
    except McpError as error:
        if error.code == METHOD_NOT_FOUND:
            return None
        raise
    values = result.get("completion", {})
    return Completion(values.get("values", []), values.get("total"), values.get("hasMore"))


class _ResourceReader:
    """Reads one URI, or the one that it is given."""

    def __init__(self, pass_on: PassOn, names: RelayNames, uri: str = "") -> None:
        self._pass_on, self._names, self._uri = pass_on, names, uri

    async def __call__(self, ctx: Context, uri: str = "") -> list[_Contents] | None:
        inner = self._names.inner_uri(uri or self._uri)
        try:
            result = await self._pass_on("resources/read", {"uri": inner}, ctx)
        except McpError as error:
            if error.code in _NOT_FOUND and isinstance(error.data, dict) and "uri" in error.data:
                return None
            raise
        return [
            _Contents({**one, "uri": self._names.uri(str(one.get("uri", "")))}) for one in result.get("contents", [])
        ]


class _Contents(EmbeddedText):
    """What another server said of a resource, text or bytes, as it is."""

    __slots__ = ("_said",)

    def __init__(self, said: Json) -> None:
        super().__init__(said["uri"], "")
        self._said = said

    def contents(self) -> Json:
        return self._said


class _UncheckedArguments:
    """In the place of a signature: arguments are somebody else's to check."""

    context = "ctx"

    def bind(self, given: Json) -> Json:
        """Keyword arguments for the handler: the URI of a template; a resource has none."""
        return dict(given)


class _PromptArguments(_UncheckedArguments):
    """The same for a prompt, whatever its arguments are called, and where it has none."""

    def bind(self, given: Json) -> Json:
        """Keyword arguments for the handler: the one with all that was given."""
        return {"arguments": given}


class _RelayedUris:
    """In the place of a URI template."""

    def __init__(self, text: str, matches: Callable[[str], bool]) -> None:
        self.text, self._matches = text, matches

    def match(self, uri: str) -> Json | None:
        """Return the URI itself, if it is one of these."""
        return {"uri": uri} if self._matches(uri) else None

    def unsafe(self, _values: Json, _exempt: object = ()) -> bool:
        """Never: the server behind it has the variables, and judges them."""
        return False
