"""Tests of the hand-written tools and prompts that the server lists."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime.testing import connect

from twilio_mcp.server import server


def test_tools_of_ours_stand_beside_those_of_the_apis() -> None:
    server.offer(mode="full", profile="full")  # list all tools, whatever mcpfactory.toml selects

    async def look() -> None:
        async with connect(server) as client:
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert len(tools) == 21
            assert tools["send_to_many"]["annotations"]["destructiveHint"]
            assert "AccountSid" not in tools["send_message"]["inputSchema"]["required"]
            asked = await client.get_prompt("undelivered", {"days": "3"})
            assert "last 3 days" in asked["messages"][0]["content"]["text"]

    asyncio.run(look())
