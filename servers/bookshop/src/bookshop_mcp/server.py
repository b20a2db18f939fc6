"""The MCP server bookshop. Edit this file; `_generated` is overwritten when the API document changes."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_runtime import Server

from . import __version__

server = Server(
    "bookshop",
    version=__version__,
    title="Bookshop",
    instructions="Find books, read what others thought of them, and order them. Reading is open to everybody. Changing anything needs an API key.",
)
server.mount_manifest(Path(__file__).parent / "_generated")

# Add your own tools here. A tool can combine several tools of the API:
#
# from mcpfactory_runtime import Context, ToolCall
#
# @server.tool
# async def find_and_read(words: str, ctx: Context) -> str:
#     """Find the best match for some words, and read it."""
#     found = await ctx.call("search_things", query=words)
#     return await ctx.call("get_thing", id=found["items"][0]["id"])
#
# Functions can run before and after the API's tools:
#
# @server.before("search_things")
# def limit_results(call: ToolCall) -> None:
#     call.arguments.setdefault("limit", 20)


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
