"""The client over a pair of byte streams in one process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, ConnectionLostError
from mcpfactory_runtime.revisions import LATEST_LEGACY

pytestmark = pytest.mark.anyio


class End:
    """One end of a pair; what is sent here is received there."""

    def __init__(self, outgoing: asyncio.Queue[bytes], incoming: asyncio.Queue[bytes]) -> None:
        self.outgoing, self.incoming = outgoing, incoming

    async def send(self, data: bytes) -> None:
        self.outgoing.put_nowait(data)

    async def receive(self) -> bytes:
        return await self.incoming.get()

    async def aclose(self) -> None:
        self.outgoing.put_nowait(b"")


def pair() -> tuple[End, End]:
    one: asyncio.Queue[bytes] = asyncio.Queue()
    other: asyncio.Queue[bytes] = asyncio.Queue()
    return End(one, other), End(other, one)


async def serve(end: End, batch: bool) -> None:
    """Answers initialize and ping; notifies before an answer, in one array when `batch`."""
    while line := await end.receive():
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {}
        if message["method"] == "initialize":
            result = {
                "protocolVersion": LATEST_LEGACY.name,
                "capabilities": {},
                "serverInfo": {"name": "m", "version": "1"},
            }
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if message["method"] == "leave":
            await end.aclose()
            return
        texts = [json.dumps([note, answer])] if batch else [json.dumps(note), json.dumps(answer)]
        data = "".join(f"{text}\n" for text in texts).encode()
        await end.send(data[:10])  # messages need not come in one piece
        await end.send(data[10:])


@pytest.mark.parametrize("batch", [False, True])
async def test_messages_travel_in_memory_alone_or_in_arrays(batch: bool) -> None:
    heard: list[tuple[str, Any]] = []
    ours, theirs = pair()
    server = asyncio.create_task(serve(theirs, batch))
    notified = lambda method, params: heard.append((method, params["data"]))  # noqa: E731 - reads best here
    async with Client.connect_memory(ours, mode="legacy", notified=notified) as client:
        await client.ping()
        await client.ping()
    await server
    assert heard[:2] == [("notifications/message", 1)] * 2


async def test_the_other_ends_leaving_is_told() -> None:
    ours, theirs = pair()
    server = asyncio.create_task(serve(theirs, batch=False))
    async with Client.connect_memory(ours, mode="legacy") as client:
        with pytest.raises(ConnectionLostError):
            await client.request("leave")
    await server
