"""The MCP server meta-ads. This file is yours; `_generated` is rewritten whenever the API document changes."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_runtime import Server

from . import __version__

server = Server(
    "meta-ads",
    version=__version__,
    title="Meta Ads",
    instructions="Read and run advertising on Facebook, Instagram, Messenger and Audience Network through Meta's Marketing API. A campaign holds ad sets, an ad set holds ads, an ad shows a creative. Budgets are on the campaign or on its ad sets, never on both. Ad account ids have the form act_1234567890; all other ids are digits in a text. …",
)
server.mount_manifest(Path(__file__).parent / "_generated")

# Tools of your own go here. One may be made of several of the API's:
#
# from mcpfactory_runtime import Context, ToolCall
#
# @server.tool
# async def find_and_read(words: str, ctx: Context) -> str:
#     """Find what fits the words best, and read it."""
#     found = await ctx.call("search_things", query=words)
#     return await ctx.call("get_thing", id=found["items"][0]["id"])
#
# and functions that run before and after the API's tools:
#
# @server.before("search_things")
# def few_at_a_time(call: ToolCall) -> None:
#     call.arguments.setdefault("limit", 20)


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
