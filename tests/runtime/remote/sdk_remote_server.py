"""A server on the official SDK, an unmodified peer, as the one elsewhere: on stdio, or `sdk_remote_server.py PORT` over HTTP."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("sdk")


class Who(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(ctx: Context) -> str:
    """Count to two, with progress."""
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return "done"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the person."""
    answer = await ctx.elicit("Who?", Who)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Grow another tool, and tell of it as the handshake revisions do."""
    server.add_tool(add, name="sprout")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
async def grow_and_publish(ctx: Context) -> str:
    """Grow another tool, and tell of it as the newest revision does."""
    server.add_tool(add, name="published")
    await ctx.notify_tools_changed()
    return "grown"


@server.resource("memo://today")
def today() -> str:
    return "a fine day"


@server.resource("memo://of/{name}")
def memo(name: str) -> str:
    return f"memo of {name}"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello {name}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
