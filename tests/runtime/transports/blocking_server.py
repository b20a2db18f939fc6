"""The server of the transport tests: its handlers wait until a test opens a gate (a named pipe), or send a lot."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.middleware import RateLimit

server = Server("gated", version="1")
server.add_middleware(RateLimit({"scarce": "3/h"}))


@server.tool
async def scarce() -> str:
    """What may be called three times in an hour."""
    return "given"


@server.tool
async def hold(gate: str) -> str:
    """Wait for the gate; what comes through it is the answer."""
    return await asyncio.to_thread(Path(gate).read_text)


@server.tool
async def speak_and_hold(gate: str, words: list[str], ctx: Context) -> str:
    """Say the words, wait for the gate, and answer with what came through it."""
    for word in words:
        ctx.info(word)
    return await asyncio.to_thread(Path(gate).read_text)


@server.tool
def hold_in_a_thread(gate: str) -> str:
    """As hold, in a worker thread that nobody can stop."""
    return Path(gate).read_text("utf-8")


@server.tool
async def flood(count: int, size: int, gate: str, ctx: Context) -> str:
    """Send log messages, many and large; then wait for the gate."""
    for _ in range(count):
        await ctx.info("x" * size)
        await asyncio.sleep(0)
    return await asyncio.to_thread(Path(gate).read_text)


@server.tool
async def large(size: int) -> str:
    """A large result."""
    return "x" * size


@server.tool
async def who() -> int:
    """The process that answers."""
    return os.getpid()


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit("Your name?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return str(answer.content)


@server.tool
async def ask_twice(ctx: Context) -> str:
    """Ask the user again if the first question fails."""
    try:
        return await ask(ctx)
    except McpError:
        return await ask(ctx)


@server.tool
async def change(ctx: Context) -> str:
    """Announce a change of the list of tools."""
    ctx.server.notify_changed("tools")
    return "changed"


@server.resource("count://{name}")
async def count(name: str) -> dict[str, Any]:
    """A resource to subscribe to."""
    return {"name": name}


@server.tool
async def touch(name: str, times: int, ctx: Context) -> str:
    """Announce that a resource changed, again and again."""
    for _ in range(times):
        ctx.server.notify_resource_updated(f"count://{name}")
        await asyncio.sleep(0)
    return "touched"


if __name__ == "__main__":
    server.run()
