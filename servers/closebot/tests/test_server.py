"""Tests of the hand-written tools and prompts that the server lists."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime.testing import connect

from closebot_mcp.server import server


def test_tools_of_ours_stand_beside_those_of_the_api() -> None:
    server.offer(mode="full", profile="full")  # list all tools, whatever mcpfactory.toml selects

    async def look() -> None:
        async with connect(server) as client:
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert len(tools) == 51
            assert tools["search_leads"]["annotations"]["readOnlyHint"]
            assert tools["switch_bot"]["annotations"]["destructiveHint"]
            asked = await client.get_prompt("customer_report", {"source": "Yoga Centre"})
            assert "Yoga Centre" in asked["messages"][0]["content"]["text"]

    asyncio.run(look())
