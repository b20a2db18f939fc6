"""A limit of time for one tool: what is over it has failed, is cancelled, and hurts no other call."""

from __future__ import annotations

import asyncio

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.testing import connect
from tests.timeouts import TIMEOUT, advance_clock

pytestmark = pytest.mark.anyio
OVER = "Tool slow timed out after 30 s."


async def test_a_tool_that_takes_too_long_is_cancelled_and_the_model_is_told() -> None:
    server, began, ended = Server("timed"), asyncio.Event(), asyncio.Event()

    @server.tool(timeout=30)
    async def slow() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    @server.tool(timeout=30)
    async def quick() -> str:
        return "done"

    async with connect(server, timeout=None) as client:
        call = asyncio.create_task(client.call_tool("slow"))
        await began.wait()
        assert not call.done()
        await advance_clock(31)
        assert (await asyncio.wait_for(call, TIMEOUT))["content"][0]["text"] == OVER
        assert ended.is_set()
        assert (await client.call_tool("quick"))["structuredContent"] == {"result": "done"}


async def nothing() -> None: ...


def test_what_is_no_limit_is_refused() -> None:
    server = Server("timed")
    for seconds in (0, -1):
        with pytest.raises(
            ValueError, match=f"timeout cannot be {seconds}\nhint: set a number of seconds greater than 0"
        ):
            server.tool(timeout=seconds)(nothing)
    with pytest.raises(TypeError, match="hint: remove inline=True"):

        @server.tool(inline=True, timeout=1)
        def inline() -> None: ...
