"""A model is given so much of an answer; code that calls a tool is given all of it."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.server.middleware import Caching
from mcpfactory_runtime.server.results import READ_BY_CODE
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import Operation, Upstream
from mcpfactory_runtime.upstream.stub import StubUpstream

pytestmark = pytest.mark.anyio
ROWS = [{"number": number} for number in range(1000)]
CASE = {
    "request": {"method": "GET", "path": "/rows"},
    "response": {"status": 200, "content_type": "application/json", "body": {"rows": ROWS}},
}


async def test_an_answer_is_cut_for_a_model_and_whole_for_code() -> None:
    async with StubUpstream([CASE]) as stub:
        api = Upstream(stub.base_url, environ={"MCPFACTORY_BASE_URL": stub.base_url}, max_text=500)
        server = Server("rows", version="1")
        server.add_middleware(Caching(seconds=60))

        @server.tool(annotations={"readOnlyHint": True})
        async def list_rows() -> Any:
            return await api.send(Operation("GET", "/rows"), {})

        @server.tool
        async def count_rows(ctx: Context) -> int:
            return len((await ctx.call("list_rows"))["rows"])

        @server.tool
        async def whole() -> bool:
            return READ_BY_CODE.get()

        @server.tool
        async def whole_inside(ctx: Context) -> list[bool]:
            inside = await ctx.call("whole")
            return [inside["result"], READ_BY_CODE.get()]

        async with connect(server) as client:
            for _ in range(2):  # and from the cache
                listed = await client.call_tool("list_rows", {})
                assert len(listed["structuredContent"]["rows"]) < 100
                assert "[Cut: " in listed["content"][1]["text"]
                assert (await client.call_tool("count_rows", {}))["structuredContent"]["result"] == len(ROWS)
            assert (await client.call_tool("whole_inside", {}))["structuredContent"]["result"] == [True, False]
        await api.aclose()
