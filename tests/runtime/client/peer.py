"""Hand-written HTTP server on a real socket, for responses that no conforming server sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import h11

from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.types import Json

HELLO: Json = {"capabilities": {}, "serverInfo": {"name": "peer", "version": "1"}}
NOTHING: tuple[int, Json, bytes] = (202, {}, b"")


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    json: Any = None


@dataclass
class Peer:
    """Hand-written HTTP server. `answer` returns (status, headers, body) or writes a stream itself by `send`."""

    answer: Callable[[Asked, Callable[[bytes], Awaitable[None]]], Awaitable[tuple[int, Json, bytes] | None]]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while await self.one(connection, reader, writer):
                connection.start_next_cycle()
        except (h11.ProtocolError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def one(self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = Asked("", "", {}, b"")
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                headers = {name.decode(): value.decode() for name, value in event.headers}
                asked = Asked(event.method.decode(), event.target.decode(), headers, b"")
            elif isinstance(event, h11.Data):
                asked.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return False
        asked.json = (
            json.loads(asked.body) if asked.body and "form" not in asked.headers.get("content-type", "") else None
        )
        self.asked.append(asked)
        streaming = False

        async def send(data: bytes) -> None:
            nonlocal streaming
            if not streaming:
                head = h11.Response(status_code=200, headers=[("Content-Type", "text/event-stream")])
                writer.write(connection.send(head) or b"")
                streaming = True
            writer.write(connection.send(h11.Data(data=data)) or b"")
            await writer.drain()

        answer = await self.answer(asked, send)
        if answer is not None and not streaming:
            status, extra, body = answer
            length = {} if status == 204 else {"Content-Length": str(len(body))}
            head = h11.Response(status_code=status, headers=list({**extra, **length}.items()))
            writer.write((connection.send(head) or b"") + (connection.send(h11.Data(data=body)) or b""))
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE


@asynccontextmanager
async def peer(answer: Any) -> AsyncIterator[Peer]:
    running = Peer(answer)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    with closing(server):  # not `async with`, which waits for open connections from Python 3.12 on
        yield running


def reply(message: Any, status: int = 200, headers: Json | None = None) -> tuple[int, Json, bytes]:
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(message).encode()


def result(asked: Asked, value: Json, headers: Json | None = None) -> tuple[int, Json, bytes]:
    return reply({"jsonrpc": "2.0", "id": asked.json["id"], "result": value}, headers=headers)


def error(asked: Asked, code: int, status: int, data: Any = None) -> tuple[int, Json, bytes]:
    return reply(
        {"jsonrpc": "2.0", "id": asked.json.get("id"), "error": {"code": code, "message": "no", "data": data}}, status
    )


def event(value: Any, event_id: str = "", retry: str = "") -> bytes:
    head = (f"id: {event_id}\n" if event_id else "") + (f"retry: {retry}\n" if retry else "")
    return f"{head}data: {json.dumps(value) if value is not None else ''}\n\n".encode()


def handshake(asked: Asked) -> Any:
    """Return the response to `initialize` and to notifications; None for other requests."""
    if asked.json["method"] == "initialize":
        return result(asked, {**HELLO, "protocolVersion": LATEST_LEGACY.name})
    return NOTHING if "id" not in asked.json else None
