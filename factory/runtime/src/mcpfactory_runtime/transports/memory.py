"""A server and its client in one process: the same bytes as on stdio, without a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcpfactory_runtime.protocol.jsonrpc import LineReader
from mcpfactory_runtime.server.session import Session

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host


class MemoryStream:
    """The client's end: what it sends is in the server at once, what the server sends waits to be received."""

    def __init__(self, server: Host) -> None:
        self._lines = LineReader(server.max_message_size)
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.session = Session(server, lambda data: self._sent.put_nowait(data + b"\n"))
        self.session.private = True

    async def send(self, data: bytes) -> None:
        """Give bytes to the server: lines, or parts of them."""
        for line in self._lines.feed(data):
            self.session.feed(line)

    async def receive(self) -> bytes:
        """Return the server's next bytes; b"" when the stream was closed."""
        return await self._sent.get()

    async def aclose(self) -> None:
        """Close the stream: handlers that still run are cancelled."""
        await self.session.close(0)
        self._sent.put_nowait(b"")


@asynccontextmanager
async def serve_memory(server: Host) -> AsyncIterator[MemoryStream]:
    """Run a server for one client in this process; the stream is closed at the end."""
    async with server.running():
        stream = MemoryStream(server)
        try:
            yield stream
        finally:
            await stream.aclose()
