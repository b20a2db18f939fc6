"""Tests of the hand-written tools and prompts that the server lists."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime.testing import connect

from n8n_mcp.server import server


def test_tools_of_ours_stand_beside_those_of_the_api() -> None:
    server.offer(mode="full", profile="full")  # list all tools, whatever mcpfactory.toml selects

    async def look() -> None:
        async with connect(server) as client:
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert len(tools) == 28
            assert tools["explain_failures"]["annotations"]["readOnlyHint"]
            assert tools["change_node"]["annotations"]["destructiveHint"]
            asked = await client.get_prompt("what_went_wrong", {"workflow": "Order import"})
            assert "Order import" in asked["messages"][0]["content"]["text"]

    asyncio.run(look())
