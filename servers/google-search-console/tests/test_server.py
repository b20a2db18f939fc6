"""Tests of the hand-written tools and prompts that the server lists."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime.testing import connect

from google_search_console_mcp.server import server


def test_tools_of_ours_stand_beside_those_of_the_api() -> None:
    server.offer(mode="full", profile="full")  # list all tools, whatever mcpfactory.toml selects

    async def look() -> None:
        async with connect(server) as client:
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert len(tools) == 15
            ours = (
                "compare_periods",
                "find_near_first_page",
                "find_competing_pages",
                "inspect_pages",
                "check_sitemaps",
            )
            assert all(tools[name]["annotations"]["readOnlyHint"] for name in ours)
            assert tools["remove_site"]["annotations"]["destructiveHint"]
            (guide,) = await client.list_resources()
            read = await client.read_resource(guide["uri"])
            assert "16 months" in read[0]["text"]
            assert {prompt["name"] for prompt in await client.list_prompts()} == {"weekly_report", "page_not_found"}
            asked = await client.get_prompt("weekly_report", {"site": "sc-domain:example.com"})
            assert "sc-domain:example.com" in asked["messages"][0]["content"]["text"]

    asyncio.run(look())
