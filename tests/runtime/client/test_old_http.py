"""The client over HTTP and servers that know no discovery, or only the oldest transport."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, HttpError
from mcpfactory_runtime.client.http import SseChannel
from mcpfactory_runtime.revisions import R2024_11_05, R2025_06_18
from tests.runtime.client.peer import HELLO, NOTHING, Asked, event, peer, result

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("refusal", [(400, {}, b""), (400, {}, b"Bad Request"), (405, {}, b""), (500, {}, b"oops")])
async def test_a_server_that_refuses_discovery_gets_a_handshake_and_its_session(refusal: Any) -> None:
    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.method == "DELETE":
            return 204, {}, b""
        if asked.method == "GET":
            return 405, {}, b""
        if asked.json["method"] == "server/discover":
            return refusal
        if asked.json["method"] == "initialize":
            return result(asked, {**HELLO, "protocolVersion": R2025_06_18.name}, {"Mcp-Session-Id": "s-1"})
        return NOTHING if "id" not in asked.json else result(asked, {})

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        assert client.revision is R2025_06_18
        await client.ping()
    after = [
        asked
        for asked in server.asked
        if asked.json is None or asked.json["method"] in ("ping", "notifications/initialized")
    ]
    assert {asked.headers.get("mcp-session-id") for asked in after} == {"s-1"}
    ping = next(asked for asked in after if asked.json and asked.json["method"] == "ping")
    assert ping.headers["mcp-protocol-version"] == R2025_06_18.name
    assert server.asked[-1].method == "DELETE"


async def test_the_oldest_transport_is_found_by_its_endpoint_event() -> None:
    stream: asyncio.Queue[bytes] = asyncio.Queue()

    async def answer(asked: Asked, send: Any) -> Any:
        if asked.method == "GET":
            await send(b"event: endpoint\ndata: /messages?session=1\n\n")
            while True:
                await send(await stream.get())
        if asked.path == "/mcp":
            return 405, {"Allow": "GET"}, b""
        if "id" in asked.json:
            value = {**HELLO, "protocolVersion": R2024_11_05.name} if asked.json["method"] == "initialize" else {}
            stream.put_nowait(event({"jsonrpc": "2.0", "id": asked.json["id"], "result": value}))
        return 202, {}, b"Accepted"

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        assert isinstance(client.channel, SseChannel)
        assert client.revision is R2024_11_05
        await client.ping()
    assert server.asked[-1].path == "/messages?session=1"


async def test_an_endpoint_on_another_host_is_not_used() -> None:
    async def answer(asked: Asked, send: Any) -> Any:
        if asked.method == "GET":
            await send(b"event: endpoint\ndata: http://evil.example/x\n\n")
            return None
        return 404, {}, b""

    async with peer(answer) as server:
        with pytest.raises(HttpError, match="404"):
            async with Client.connect_http(server.url):
                pass
    assert {asked.path for asked in server.asked} == {"/mcp"}
