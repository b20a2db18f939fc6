"""Results beyond a number of characters are shortened and say so; what code reads, and what a schema describes, is not cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_runtime import Context, Image, Server, Text
from mcpfactory_runtime.server.middleware import ResponseLimit
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio


def limited(**options: Any) -> Server:
    server = Server("limited")
    server.add_middleware(ResponseLimit(200, **options))

    @server.tool
    async def text(length: int):
        return "x" * length

    @server.tool
    async def rows(count: int):
        return {"rows": [{"number": number} for number in range(count)]}

    @server.tool
    async def listed(count: int):
        return list(range(count))

    @server.tool
    async def typed(count: int) -> list[int]:
        return list(range(count))

    @server.tool
    async def pictures() -> list[Image | Text]:
        return [Text("a"), Image(b"x" * 1000, "image/png"), Text("b")]

    @server.tool
    async def length(ctx: Context) -> int:
        return len(await ctx.call("text", length=1000))

    return server


async def test_texts_lose_their_end_and_lists_their_last_items() -> None:
    async with connect(limited()) as client:
        text, told = [block["text"] for block in (await client.call_tool("text", {"length": 1000}))["content"]]
        assert text == "x" * 199 + "…"
        assert told == "(shortened: 199 of 1,000 characters. Ask for less to see the rest.)"
        result = await client.call_tool("rows", {"count": 1000})
        kept = result["structuredContent"]["rows"]
        assert 5 < len(kept) < 20
        assert kept == [{"number": number} for number in range(len(kept))]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert f"{len(kept)} of 1,000 items of `rows`" in result["content"][1]["text"]
        items = json.loads((await client.call_tool("listed", {"count": 1000}))["content"][0]["text"])
        assert items == list(range(len(items)))
        assert len(items) > 20


async def test_what_a_schema_describes_becomes_a_failure_that_asks_for_less() -> None:
    async with connect(limited()) as client:
        result = await client.call_tool("typed", {"count": 1000})
        assert result["isError"]
        assert result["content"][0]["text"].endswith("at most 200 are given. Ask for less.")


async def test_code_reads_all_and_other_tools_are_not_concerned() -> None:
    async with connect(limited()) as client:
        assert (await client.call_tool("length"))["structuredContent"] == {"result": 1000}
    async with connect(limited(tools=["rows"])) as client:
        assert len((await client.call_tool("text", {"length": 1000}))["content"][0]["text"]) == 1000
