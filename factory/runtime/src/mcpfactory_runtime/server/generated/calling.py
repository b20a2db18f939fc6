"""One tool made of others: `await ctx.call("get_book", bookId=7)` in a handler.

The other tool is one of the same server, generated or not, listed or not: what only serves a workflow need not be shown to
a model (leave it out of the profile). Its schema checks the arguments, its hooks run, its defaults hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.execution import run_tool

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context

__all__ = ["call"]


async def call(context: Context, name: str, arguments: dict[str, Any]) -> Any:
    """Return the structured content of the tool's answer, or its text when it has none.

    Raises:
        ToolError: the tool failed, with its own words; or there is no such tool.
        McpError, InputRequired: what the tool itself raises.
    """
    tool = context.server.registry.tool(name)
    if tool is None:
        raise ToolError(f"There is no tool {name!r} in this server.")
    result = await run_tool(tool, arguments, lambda: context)
    texts = [block["text"] for block in result.get("content", ()) if block.get("type") == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts))
    return result["structuredContent"] if result.get("structuredContent") is not None else "\n".join(texts)
