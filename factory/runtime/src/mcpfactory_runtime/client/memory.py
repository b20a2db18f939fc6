"""A server in the same process, over a pair of byte streams."""

from __future__ import annotations

from typing import Protocol

from mcpfactory_runtime.client.channel import Receiver
from mcpfactory_runtime.client.lines import LineChannel

__all__ = ["ByteStream", "MemoryChannel"]


class ByteStream(Protocol):
    """One end of a connection in memory."""

    async def send(self, data: bytes) -> None:
        """Give bytes to the other end."""

    async def receive(self) -> bytes:
        """Return the next bytes from the other end; b"" when it closed."""

    async def aclose(self) -> None:
        """Tell the other end that nothing more comes."""


class MemoryChannel(LineChannel):
    """Messages as lines over a `ByteStream`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._start(receiver)

    async def aclose(self) -> None:
        """Close our end."""
        await self._stream.aclose()
        await self._stop()

    async def _read(self) -> bytes:
        return await self._stream.receive()

    async def _write(self, data: bytes) -> None:
        await self._stream.send(data)
