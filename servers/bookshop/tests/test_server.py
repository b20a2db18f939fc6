"""Tests of your own tools; `_generated/` tests every operation of the API."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime.testing import connect

from bookshop_mcp.server import server


def test_the_tools_of_the_api_are_listed() -> None:
    server.offer(mode="full", profile="full")  # list all tools, whatever mcpfactory.toml selects

    async def names() -> list[str]:
        async with connect(server) as client:
            return [tool["name"] for tool in await client.list_tools()]

    listed = asyncio.run(names())
    assert len(listed) == len(set(listed))
    assert len(listed) >= 11
