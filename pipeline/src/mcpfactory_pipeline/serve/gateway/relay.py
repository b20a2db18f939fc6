"""What the gateway lists: a server's tools, resources and prompts under their outer names, each of which passes its calls on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from mcpfactory_pipeline.serve.gateway.names import inner_uri, outer_content, outer_name, outer_uri
from mcpfactory_runtime import Context
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool
from mcpfactory_runtime.server.remote import relay

__all__ = ["relayed_prompt", "relayed_resource", "relayed_template", "relayed_tool"]

Json = dict[str, Any]
Call = Callable[[str, str, Json, Context], Awaitable[Json]]
"""(server, method, params, who asks) → result."""


def relayed_tool(server: str, wire: Mapping[str, Any], call: Call) -> Tool:
    """Return a server's tool. Arguments are the server's to check; tasks are not passed on."""
    return relay.relayed_tool(wire, partial(call, server), _OuterNames(server))


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
