"""Tools that list and read the resources of a server, and list and fill in its prompts: for clients that know only tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.registry import Tool
from mcpfactory_runtime.server.results import EmbeddedBlob, Text
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.registry import Registry


_READS: Final = {"readOnlyHint": True, "openWorldHint": False}
_SHOWN: Final = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments")


def reading_tools(registry: Registry) -> list[Tool]:
    """Return the four tools; what they list is what the registry has when they are called."""

    async def list_resources() -> Json:
        """List the resources that read_resource can read, and the templates of URIs for others."""
        return {"resources": _shown(registry.resources), "templates": _shown(registry.templates)}

    async def read_resource(uri: str, ctx: Context) -> list[Text | EmbeddedBlob]:
        """Read a resource.

        Args:
            uri: its URI: one of list_resources, or a template of it filled in
            ctx: the call's
        """
        return [_block(one) for one in await ctx.read_resource(uri)]

    async def list_prompts() -> Json:
        """List the prompts that get_prompt can fill in, with their arguments."""
        return {"prompts": _shown(registry.prompts)}

    async def get_prompt(name: str, ctx: Context, arguments: dict[str, str] | None = None) -> Json:
        """Fill in a prompt: instructions that this server has for a purpose.

        Args:
            name: one of list_prompts
            ctx: the call's
            arguments: by the names that list_prompts has
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
