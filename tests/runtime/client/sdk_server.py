"""A server on the official SDK, an unmodified peer: `sdk_server.py` on stdio, `sdk_server.py PORT` over HTTP."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk", instructions="Be kind.")


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


@server.resource("memo://today")
def today() -> str:
    return "a fine day"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello {name}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
