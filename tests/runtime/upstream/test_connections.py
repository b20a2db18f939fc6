"""Connections are kept, shared and given back, whatever becomes of a call; against real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, Upstream
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

GET = Operation("GET", "/x")
POST = Operation("POST", "/x")  # never sent twice
LIMIT = 32
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


class Api:
    """An HTTP server that counts; `answer` is what it says, `held` keeps answers back, `goodbye` closes after each."""

    def __init__(self) -> None:
        self.connections = self.requests = self.now = self.most = 0
        self.answer = OK
        self.goodbye = False
        self.held = asyncio.Event()
        self.held.set()
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                self.now += 1
                self.most = max(self.most, self.now)
                self.arrived.set()
                await self.held.wait()
                self.now -= 1
                writer.write(self.answer)
                if self.goodbye:
                    break
        writer.close()
        self.gone.set()


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Api, Upstream]]:
    api = Api()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with closing(server):
        async with Upstream("", environ={"MCPFACTORY_BASE_URL": url}, retry_wait=0) as upstream:
            yield api, upstream


async def test_many_calls_at_once_open_no_more_connections_than_the_limit_and_all_are_answered() -> None:
    async with serving() as (api, upstream):
        results = await asyncio.gather(*(upstream.send(GET, {}) for _ in range(10 * LIMIT)))
        assert len(results) == api.requests == 10 * LIMIT
        assert api.most <= LIMIT
        assert api.connections <= LIMIT


async def test_a_connection_that_the_api_closed_is_not_used_again() -> None:
    async with serving() as (api, upstream):
        api.goodbye = True
        for expected in (1, 2, 3):
            api.gone.clear()
            await upstream.send(POST, {})
            await api.gone.wait()
            assert api.connections == api.requests == expected


async def test_calls_that_are_cancelled_or_fail_give_their_places_back() -> None:
    async with serving() as (api, upstream):
        api.held.clear()
        calls = [asyncio.create_task(upstream.send(GET, {})) for _ in range(2 * LIMIT)]
        await api.arrived.wait()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        api.held.set()
        api.answer = b"nonsense\r\n\r\n"
        for _ in range(2 * LIMIT // 16):
            with pytest.raises(ToolError):
                await upstream.send(GET, {})
        api.answer = OK
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(*(upstream.send(GET, {}) for _ in range(2 * LIMIT)))
