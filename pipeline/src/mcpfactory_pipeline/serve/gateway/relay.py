"""What the gateway lists: a server's tools, resources and prompts under their outer names, each of which passes its calls on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from mcpfactory_pipeline.serve.gateway.child import Child
from mcpfactory_pipeline.serve.gateway.names import inner_uri, outer_content, outer_name, outer_uri
from mcpfactory_runtime import Context
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.prepared import PreparedRequest
from mcpfactory_runtime.client.trace_context import is_loaded
from mcpfactory_runtime.protocol.connection import Call as ToolCall
from mcpfactory_runtime.protocol.peer import Peer
from mcpfactory_runtime.server.forwarding import Forward
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool
from mcpfactory_runtime.server.remote import relay

__all__ = ["relayed_prompt", "relayed_resource", "relayed_template", "relayed_tool"]

Json = dict[str, Any]
Call = Callable[[str, str, Json, Context], Awaitable[Json]]
"""(server, method, params, who asks) → result."""


def relayed_tool(server: str, wire: Mapping[str, Any], call: Call, child: Child) -> Tool:
    """Return a server's tool. Arguments are the server's to check; tasks are not passed on."""
    tool = relay.relayed_tool(wire, partial(call, server), _OuterNames(server))
    tool.forwarder = _ToolForwarder(str(wire["name"]), child, partial(_outer_result, server))
    return tool


class _ToolForwarder:
    """Sends calls of a tool on while its server is awake, unless it shall tell how far it is."""

    def __init__(self, inner: str, child: Child, outer: Callable[[Json], Json]) -> None:
        self._inner, self._child, self._outer = inner, child, outer
        self._known: tuple[Client, Peer, PreparedRequest] | None = None  # of the last call

    def ready(self, call: ToolCall) -> bool:
        meta = call.params.get("_meta")
        return self._child.awake is not None and (type(meta) is not dict or "progressToken" not in meta)

    def send(self, forward: Forward) -> None:
        self._child.post(self._request(forward), forward, self._outer)

    def _request(self, forward: Forward) -> PreparedRequest:
        """Return the request to the server: that of the last call, where nothing of what it tells the server can differ."""
        call, client, known = forward.call, self._child.awake, self._known
        alike = "_meta" not in call.params and forward.http is None and not is_loaded()
        if alike and known is not None and known[0] is client and known[1] is call.peer:
            return known[2]
        request = self._child.prepare("tools/call", {"name": self._inner}, forward)
        self._known = (client, call.peer, request) if alike and client is not None else None
        return request


def relayed_prompt(server: str, wire: Mapping[str, Any], call: Call) -> Prompt:
    """Return a server's prompt."""
    return relay.relayed_prompt(wire, partial(call, server), _OuterNames(server))


def relayed_resource(server: str, wire: Mapping[str, Any], call: Call) -> Resource:
    """Return a server's resource."""
    return relay.relayed_resource(wire, partial(call, server), _OuterNames(server))


def relayed_template(server: str, wire: Mapping[str, Any], call: Call) -> Template:
    """Return a server's resource template. It takes every URI of the server: which of them there are, the server knows."""

    def matches(uri: str) -> bool:
        found = inner_uri(uri)
        return found is not None and found[0] == server

    return relay.relayed_template(wire, partial(call, server), matches, _OuterNames(server))


class _OuterNames:
    """What names and URIs of a server are behind the gateway."""

    def __init__(self, server: str) -> None:
        self._server = server

    def name(self, inner: str) -> str:
        return outer_name(self._server, inner)

    def uri(self, inner: str) -> str:
        return outer_uri(self._server, inner)

    def inner_uri(self, uri: str) -> str:
        found = inner_uri(uri)
        assert found is not None, "only URIs of the gateway come here"
        return found[1]

    def content(self, block: Any) -> Any:
        return outer_content(self._server, block)


def _outer_result(server: str, result: Json) -> Json:
    return {**result, "content": [outer_content(server, block) for block in result.get("content", [])]}
