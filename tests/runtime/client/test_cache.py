"""A client that keeps lists and resources: as long as the server says, and not longer than they are true."""

from __future__ import annotations

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.results import ResultCache
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio


def notes(ttl_ms: int = 60_000) -> Server:
    server = Server("notes", ttl_ms=ttl_ms)

    @server.tool
    async def first() -> None: ...

    @server.resource("notes://today")
    def today() -> str:
        return "Buy milk."

    return server


def asked(client: Client) -> list[str]:
    """The methods of the requests that were sent."""
    return [
        entry.message["method"] for entry in client.transcript if entry.direction == "sent" and "id" in entry.message
    ]


async def test_what_the_server_lets_be_kept_is_asked_for_once() -> None:
    async with connect(notes(), cache=True) as client:
        for _ in range(3):
            (tool,) = await client.list_tools()
            tool["name"] = "changed by who got it"
            assert (await client.read_resource("notes://today"))[0]["text"] == "Buy milk."
            assert [one["name"] for one in await client.list_tools()] == ["first"]
        assert asked(client).count("tools/list") == asked(client).count("resources/read") == 1


async def test_a_change_that_is_told_is_seen_at_once() -> None:
    server = notes()
    async with connect(server, cache=True) as client, client.listen(tools=True, uris=["notes://today"]) as changes:
        await client.list_tools()
        await client.read_resource("notes://today")
        server.tool(name="second")(nothing)
        server.notify_resource_updated("notes://today")
        for method in ("notifications/tools/list_changed", "notifications/resources/updated"):
            assert (await anext(changes))[0] == method
        assert [tool["name"] for tool in await client.list_tools()] == ["first", "second"]
        await client.read_resource("notes://today")
        assert asked(client).count("resources/read") == 2


async def nothing() -> None: ...


def test_a_result_counts_for_its_time_and_by_its_parameters() -> None:
    now = 0.0
    cache = ResultCache(lambda: now)
    result = {"resultType": "complete", "tools": [], "ttlMs": 2000}
    cache.keep("tools/list", {"cursor": "a", "_meta": {"x": 1}}, result)
    cache.keep("tools/list", {"cursor": "b"}, {**result, "ttlMs": 0})
    cache.keep("tools/list", {"cursor": "c"}, {**result, "resultType": "input_required"})
    cache.keep("tools/list", {"cursor": "d"}, {"tools": [], "resultType": "complete"})
    assert [cache.find("tools/list", {"cursor": cursor, "_meta": {"x": 2}}) for cursor in "abcd"] == [
        result,
        *[None] * 3,
    ]
    now = 1.9
    assert cache.find("tools/list", {"cursor": "a"}) == result
    now = 2.0
    assert cache.find("tools/list", {"cursor": "a"}) is None
