"""The streams of the client over HTTP: continued, asked on, listened to, closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, SessionEndedError
from mcpfactory_runtime.revisions import LATEST
from tests.runtime.client.peer import Asked, event, handshake, peer, result
from tests.timeouts import advance_clock

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


async def test_a_session_that_the_server_ended_is_replaced_and_its_subscriptions_are_repeated() -> None:
    known = "first"

    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.method != "POST":
            return 405, {}, b""
        if asked.json["method"] == "initialize":
            assert "mcp-session-id" not in asked.headers
            status, headers, body = handshake(asked)
            return status, {**headers, "Mcp-Session-Id": known}, body
        if asked.headers["mcp-session-id"] != known:
            return 404, {}, b"no such session"
        return handshake(asked) or result(asked, {"content": [{"type": "text", "text": known}]})

    async with (
        peer(answer) as server,
        Client.connect_http(server.url, mode="legacy") as client,
        client.listen(tools=True, uris=["memo://a"]) as changes,
    ):
        known = "second"
        answers = await asyncio.gather(*(client.call_tool("t") for _ in range(3)))
        assert {one["content"][0]["text"] for one in answers} == {"second"}
        changed = [await anext(changes), await anext(changes)]
    assert changed == [
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "memo://a"}),
    ]
    sent = [asked.json["method"] for asked in server.asked if asked.method == "POST"]
    assert sent.count("initialize") == 2
    assert sent.count("resources/subscribe") == 2


async def test_a_server_that_ends_every_session_is_not_asked_forever() -> None:
    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.method == "POST" and (known := handshake(asked)) is not None:
            return known[0], {**known[1], "Mcp-Session-Id": "lost"}, known[2]
        return 404, {}, b""

    async with peer(answer) as server, Client.connect_http(server.url, mode="legacy") as client:
        with pytest.raises(SessionEndedError, match="HTTP status 404"):
            await client.call_tool("t")
    assert sum(asked.json["method"] == "tools/call" for asked in server.asked if asked.json) == 2


async def test_a_get_stream_that_ends_without_messages_is_opened_again_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The test moves the clock, so long pauses cannot end by themselves.
    monkeypatch.setattr("mcpfactory_runtime.client.http._RECONNECT", 1000.0)
    monkeypatch.setattr("mcpfactory_runtime.client.http._LONGEST_PAUSE", 60_000.0)
    opened: asyncio.Queue[None] = asyncio.Queue()
    heard = asyncio.Event()

    async def answer(asked: Asked, send: Any) -> Any:
        if asked.method != "GET":
            return handshake(asked) or result(asked, {})
        await send(b": hello\n\n" if opened.empty() else event({"jsonrpc": "2.0", "method": "notifications/x"}))
        opened.put_nowait(None)
        return None

    async with (
        peer(answer) as server,
        Client.connect_http(server.url, mode="legacy", notified=lambda *_: heard.set()) as client,
    ):
        await opened.get()
        for pause in (1000, 2000, 4000):
            await advance_clock(pause - 500)
            await client.ping()
            assert opened.empty()
            await advance_clock(500)
            await opened.get()
        opened.put_nowait(None)  # the next stream has a message
        await advance_clock(8000)
        await heard.wait()
        assert (await opened.get(), await opened.get()) == (None, None)
        await advance_clock(1000)
        await opened.get()
