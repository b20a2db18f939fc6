"""The streams of the client over HTTP: continued, asked on, listened to, closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import LATEST
from tests.runtime.client.peer import Asked, event, handshake, peer, result

pytestmark = pytest.mark.anyio


async def test_a_stream_that_the_server_closed_early_is_continued() -> None:
    async def answer(asked: Asked, send: Any) -> Any:
        if asked.method == "GET":
            if "last-event-id" not in asked.headers:
                return 405, {}, b""
            await send(
                event({"jsonrpc": "2.0", "id": server.asked[-2].json["id"], "result": {"content": ["late"]}}, "e2")
            )
            return None
        if (known := handshake(asked)) is not None:
            return known
        await send(event(None, "e1", retry="0"))
        return None

    async with peer(answer) as server, Client.connect_http(server.url, mode="legacy") as client:
        assert await client.call_tool("slow") == {"content": ["late"]}
    assert server.asked[-1].headers["last-event-id"] == "e1"


async def test_closing_the_stream_cancels_a_modern_request() -> None:
    here, gone = asyncio.Event(), asyncio.Event()

    async def answer(asked: Asked, send: Any) -> Any:
        if asked.json["method"] == "server/discover":
            return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
        here.set()
        try:
            while True:
                await send(b": still here\n\n")
                await asyncio.sleep(0)  # lets the client take its turn
        finally:
            gone.set()

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        call = asyncio.create_task(client.call_tool("slow"))
        await here.wait()
        call.cancel()
        await gone.wait()
    assert [asked.json["method"] for asked in server.asked] == ["server/discover", "tools/call"]
