"""`Client.listen`: the same loop in every revision, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, ConnectionLostError
from mcpfactory_runtime.protocol.connection import META_SUBSCRIPTION
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import LATEST, REVISIONS
from tests.runtime.client.peer import Asked, error, event, peer, result
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

SERVER = [sys.executable, str(Path(__file__).with_name("our_server.py"))]


@asynccontextmanager
async def over_http(**options: Any) -> AsyncIterator[Client]:
    process = await asyncio.create_subprocess_exec(*SERVER, "--http", "--port", "0", stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(TIMEOUT):
            while b"http://" not in (line := await process.stderr.readline()):
                assert line, "the server ended"
        async with Client.connect_http(line.decode().split()[-1], **options) as client:
            yield client
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("revision", list(REVISIONS))
async def test_changes_that_were_asked_for_come_and_no_others(revision: str, transport: str) -> None:
    opened = over_http(revision=revision) if transport == "http" else Client.connect_stdio(SERVER, revision=revision)
    async with opened as client, client.listen(tools=True, uris=["memo://tuesday"]) as changes:
        assert changes.honoured == {"toolsListChanged": True, "resourceSubscriptions": ["memo://tuesday"]}
        await client.call_tool("change")
        heard = [await asyncio.wait_for(anext(changes), TIMEOUT) for _ in range(2)]
    assert {(method, params.get("uri")) for method, params in heard} == {
        ("notifications/tools/list_changed", None),
        ("notifications/resources/updated", "memo://tuesday"),
    }


async def test_a_server_that_ends_ends_the_loop_with_the_reason() -> None:
    async with Client.connect_stdio(SERVER) as client, client.listen(tools=True) as changes:
        client.channel._process.kill()  # type: ignore[attr-defined]
        with pytest.raises(ConnectionLostError):
            await anext(changes)
        with pytest.raises(ConnectionLostError):
            await anext(changes)


@asynccontextmanager
async def listening(*messages: Any) -> AsyncIterator[Client]:
    """A client of a server whose answer to `subscriptions/listen` is this stream; "done" is its result."""

    async def answer(asked: Asked, send: Any) -> Any:
        if asked.json["method"] == "server/discover":
            return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
        if not messages:
            return error(asked, METHOD_NOT_FOUND, 404)
        for message in messages:
            about = {"_meta": {META_SUBSCRIPTION: asked.json["id"]}}
            if message == "done":
                done = {"jsonrpc": "2.0", "id": asked.json["id"], "result": {"resultType": "complete", **about}}
                await send(event(done))
            else:
                params = {**about, "notifications": {"toolsListChanged": True}}
                await send(event({"jsonrpc": "2.0", "method": message, "params": params}))
        return None

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        yield client


async def test_a_server_without_subscriptions_says_so() -> None:
    async with listening() as client:
        with pytest.raises(McpError) as caught:
            await client.listen(tools=True).__aenter__()
    assert caught.value.code == METHOD_NOT_FOUND
