"""Messages as lines over a pair of byte streams: what a process's pipes and a connection in memory have in common."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from mcpfactory_runtime.client.channel import Channel, Receiver
from mcpfactory_runtime.client.errors import ConnectionLostError, ProtocolError
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.framing import LineReader
from mcpfactory_runtime.protocol.jsonrpc import decode, encode

__all__ = ["LineChannel"]


class LineChannel(Channel):
    """One JSON text per line (basic/transports, stdio)."""

    _pump_task: asyncio.Task[None] | None = None

    @abstractmethod
    async def _read(self) -> bytes:
        """Return the next bytes; b"" at the end."""

    @abstractmethod
    async def _write(self, data: bytes) -> None:
        """Write all of it. Raises ConnectionLostError."""

    async def _ended(self) -> Exception:
        """Why the server's output ended."""
        return ConnectionLostError("the server closed its output")

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Send a message as one line."""
        await self._write(encode(message) + b"\n")

    async def send_raw(self, data: bytes) -> None:
        """Send bytes as one line."""
        await self._write(data + b"\n")

    def _start(self, receiver: Receiver) -> None:
        self._pump_task = asyncio.create_task(self._pump(receiver))

    async def _stop(self) -> None:
        if self._pump_task is not None:
            self._pump_task.cancel()
            await asyncio.gather(self._pump_task, return_exceptions=True)

    async def _pump(self, receiver: Receiver) -> None:
        lines = LineReader()
        while data := await self._read():
            for line in lines.feed(data):
                _deliver(line, receiver)
        rest = lines.rest()
        if rest:
            _deliver(rest, receiver)
        receiver.lost(await self._ended())


def _deliver(line: Any, receiver: Receiver) -> None:
    """A line that is no JSON is delivered as text: stdout may carry nothing but messages, and checks want to see it."""
    if not isinstance(line, bytes):
        receiver.lost(ProtocolError("the server sent a message that is too long"))
        return
    try:
        message = decode(line)
    except McpError:
        message = line.decode("utf-8", "replace")
    receiver.received(message)
