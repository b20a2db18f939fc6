"""What servers offer, call by call: tools, resources, prompts, completion."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.client.channel import Channel
from mcpfactory_runtime.client.errors import ProtocolError
from mcpfactory_runtime.client.headers import annotation_fault, header_parameters
from mcpfactory_runtime.client.session import Progress
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, McpError
from mcpfactory_runtime.revisions import Revision

__all__ = ["Features"]

Json = dict[str, Any]

_MAX_PAGES: Final = 1_000
_LOG: Final = logging.getLogger(__name__)


class Features(ABC):
    """The calls, on top of `request` and `call`."""

    revision: Revision

    def __init__(self) -> None:
        self.header_parameters: dict[str, dict[tuple[str, ...], str]] = {}

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """What carries the messages."""

    @abstractmethod
    async def request(self, method: str, params: Json | None = None) -> Json:
        """Send one request and return its result as it came."""

    @abstractmethod
    async def call(
        self,
        method: str,
        params: Json,
        *,
        timeout: float | None = -1,  # noqa: ASYNC109 - the server is told when nobody waits any more
        progress: Progress | None = None,
    ) -> Json:
        """Send a request, answer what the server wants to know, and return the complete result."""

    async def list_tools(self, *, keep_invalid: bool = False) -> list[Json]:
        """All tools, from all pages.

        Over HTTP in the per-request lifecycle those whose `x-mcp-header` is invalid are left out, as the specification
        demands (Custom Headers), with a warning in the log; `keep_invalid` is for those who want to see them.
        """
        tools = await self._pages("tools/list", "tools")
        if self.channel.http and self.revision.method_header and not keep_invalid:
            tools = [tool for tool in tools if _usable(tool)]
        self.header_parameters = {str(tool.get("name")): header_parameters(tool) for tool in tools}
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Json | None = None,
        *,
        progress: Progress | None = None,
        timeout: float | None = -1,  # noqa: ASYNC109 - as `request`
    ) -> Json:
        """Call a tool; a tool's own failure is a result with `isError`."""
        params = {"name": name, "arguments": arguments or {}}
        try:
            return await self.call("tools/call", params, timeout=timeout, progress=progress)
        except McpError as error:
            if error.code != HEADER_MISMATCH or not self.channel.http:
                raise
            known = self.header_parameters.get(name)
            await self.list_tools()  # the tool wants some arguments as headers, and says which in its schema
            if self.header_parameters.get(name) == known:
                raise
        return await self.call("tools/call", params, timeout=timeout, progress=progress)

    async def list_resources(self) -> list[Json]:
        """All resources, from all pages."""
        return await self._pages("resources/list", "resources")

    async def list_resource_templates(self) -> list[Json]:
        """All resource templates, from all pages."""
        return await self._pages("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str) -> list[Json]:
        """Return the contents of a resource."""
        contents: list[Json] = (await self.call("resources/read", {"uri": uri})).get("contents", [])
        return contents

    async def list_prompts(self) -> list[Json]:
        """All prompts, from all pages."""
        return await self._pages("prompts/list", "prompts")

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        """Return a prompt, filled in."""
        return await self.call("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def complete(self, ref: Json, argument: str, value: str, context: Mapping[str, str] | None = None) -> Json:
        """Completions for an argument of a prompt or template: `values`, and perhaps `total` and `hasMore`."""
        params: Json = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        completion: Json = (await self.request("completion/complete", params)).get("completion", {})
        return completion

    async def _pages(self, method: str, member: str) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            result = await self.request(method, {} if cursor is None else {"cursor": cursor})
            page = result.get(member)
            if not isinstance(page, list):
                raise ProtocolError(f"the answer to {method} has no list {member!r}")
            if not all(isinstance(one, dict) for one in page):
                raise ProtocolError(f"the answer to {method} lists something that is no object")
            found += page
            cursor = result.get("nextCursor")
            if cursor is None:
                return found
            if cursor in seen:
                raise ProtocolError(f"{method} gave the same nextCursor twice")
            seen.add(cursor)
        raise ProtocolError(f"{method} has more than {_MAX_PAGES} pages")


def _usable(tool: Json) -> bool:
    fault = annotation_fault(tool)
    if fault:
        _LOG.warning("tool %r is left out: %s", tool.get("name"), fault)
    return not fault
