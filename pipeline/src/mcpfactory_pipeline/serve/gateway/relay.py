"""What the gateway lists: a server's tools, resources and prompts under their outer names, each of which passes its calls on."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcpfactory_pipeline.serve.gateway.names import inner_uri, outer_content, outer_name, outer_uri
from mcpfactory_runtime import Context, EmbeddedBlob, EmbeddedText, McpError
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool

__all__ = ["relayed_prompt", "relayed_resource", "relayed_template", "relayed_tool"]

Json = dict[str, Any]
Call = Callable[[str, str, Json, Context], Awaitable[Json]]
"""(server, method, params, who asks) → result."""

_NOT_FOUND: Final = {INVALID_PARAMS, -32002}  # server/resources, Error Handling: of all revisions


def relayed_tool(server: str, wire: Mapping[str, Any], call: Call) -> Tool:
    """Return a server's tool. Arguments are the server's to check; tasks are not passed on."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> Json:
        result = await call(server, "tools/call", {"name": inner, "arguments": arguments}, ctx)
        content = [outer_content(server, block) for block in result.get("content", [])]
        return {**result, "content": content}

    name = outer_name(server, inner)
    tool = Tool(name, {**{key: value for key, value in wire.items() if key != "execution"}, "name": name})
    tool.handler, tool.context, tool.bind, tool.convert = handler, "ctx", _as_arguments, _as_it_is
    return tool


def relayed_prompt(server: str, wire: Mapping[str, Any], call: Call) -> Prompt:
    """Return a server's prompt."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> list[Json]:
        result = await call(server, "prompts/get", {"name": inner, "arguments": arguments}, ctx)
        said = result.get("messages", [])
        return [{**one, "content": outer_content(server, one.get("content"))} for one in said]

    return Prompt(handler, _PromptArguments(), {**wire, "name": outer_name(server, inner)})  # type: ignore[arg-type]  # it binds as one


def relayed_resource(server: str, wire: Mapping[str, Any], call: Call) -> Resource:
    """Return a server's resource."""
    uri = outer_uri(server, str(wire["uri"]))
    reader = _ResourceReader(call, uri)
    return Resource(uri, reader, _UncheckedArguments(), {**wire, "uri": uri})  # type: ignore[arg-type]  # it binds as one


def relayed_template(server: str, wire: Mapping[str, Any], call: Call) -> Template:
    """Return a server's resource template. It takes every URI of the server: which of them there are, the server knows."""
    text = outer_uri(server, str(wire["uriTemplate"]))
    uris: Any = _ServerUris(text, server)  # it matches as a template does
    unchecked: Any = _UncheckedArguments()  # it binds as a signature does
    return Template(uris, _ResourceReader(call), unchecked, {**wire, "uriTemplate": text})


class _ResourceReader:
    """Reads one URI, or the one that it is given."""

    def __init__(self, call: Call, uri: str = "") -> None:
        self._call, self._uri = call, uri

    async def __call__(self, ctx: Context, uri: str = "") -> list[EmbeddedText | EmbeddedBlob] | None:
        found = inner_uri(uri or self._uri)
        assert found is not None, "only URIs of the gateway come here"
        server, inner = found
        try:
            result = await self._call(server, "resources/read", {"uri": inner}, ctx)
        except McpError as error:
            if error.code in _NOT_FOUND and isinstance(error.data, dict) and "uri" in error.data:
                return None
            raise
        return [_embedded(server, one) for one in result.get("contents", [])]


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


class _ServerUris:
    """In the place of a URI template: every URI of one server."""

    def __init__(self, text: str, server: str) -> None:
        self.text, self._server = text, server

    def match(self, uri: str) -> Json | None:
        """Return the URI itself, if it is one of the server's."""
        found = inner_uri(uri)
        return {"uri": uri} if found and found[0] == self._server else None

    def unsafe(self, _values: Json, _exempt: object = ()) -> bool:
        """Never: the server behind it has the variables, and judges them."""
        return False


def _embedded(server: str, one: Json) -> EmbeddedText | EmbeddedBlob:
    uri, mime = outer_uri(server, str(one.get("uri", ""))), one.get("mimeType")
    if "blob" in one:
        return EmbeddedBlob(uri, b64decode(one["blob"]), mime)
    return EmbeddedText(uri, str(one.get("text", "")), mime)


def _as_arguments(arguments: Json) -> Json:
    return {"arguments": arguments}


def _as_it_is(result: Json) -> Json:
    return result
