"""MCP on standard input and output: one message a line (basic/transports, stdio).

Descriptor 1 is taken away from the rest of the process, so that neither a handler's `print` nor a child process can
write into the protocol: both land on stderr. The end of the input ends the server at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mcpfactory_runtime.protocol.framing import OVERSIZE, LineReader
from mcpfactory_runtime.server.session import Session
from mcpfactory_runtime.server.threads import busy

if TYPE_CHECKING:
    from mcpfactory_runtime.server.server import Server

__all__ = ["run_stdio"]

_GRACE: Final = 0.1  # seconds for handlers that are about to finish when the input ends
_CHUNK: Final = 256 * 1024


def run_stdio(server: Server) -> None:
    """Serve until the input ends, the output closes, or SIGINT or SIGTERM arrives."""
    incoming, outgoing = _take_descriptors()
    loop = asyncio.new_event_loop()
    main = loop.create_task(_serve(server, incoming, outgoing))
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, ValueError, RuntimeError):  # not on every platform, not in every thread
            loop.add_signal_handler(number, main.cancel)
    try:
        with suppress(asyncio.CancelledError, KeyboardInterrupt):
            loop.run_until_complete(main)
    finally:
        _leave()


def _leave() -> None:
    """End the process if `def` handlers still run in worker threads, which cannot be stopped and would be waited for."""
    if busy():
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(0)


def _take_descriptors() -> tuple[int, int]:
    """Private copies of descriptors 0 and 1; in their places null input and stderr."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


async def _serve(server: Server, incoming: int, outgoing: int) -> None:
    ended = asyncio.Event()
    writer = await _open_writer(outgoing, ended)
    async with server.running():
        session = Session(server, writer.send)
        reader = _Reader(session, server.max_message_size, ended)
        await _open_reader(incoming, reader)
        try:
            await ended.wait()
        finally:
            await session.close(_GRACE)
            await writer.drain(_GRACE)


class _Reader(asyncio.Protocol):
    """Takes bytes from the input and hands lines to the session."""

    def __init__(self, session: Session, max_size: int, ended: asyncio.Event) -> None:
        self._lines = LineReader(max_size)
        self._session = session
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if line is OVERSIZE:
                self._session.refuse_oversize()
            else:
                assert isinstance(line, bytes)
                self._session.feed(line)

    def connection_lost(self, exc: Exception | None) -> None:
        rest = self._lines.rest()
        if rest:
            self._session.feed(rest)
        self._ended.set()


async def _open_reader(descriptor: int, reader: _Reader) -> None:
    """Read by the event loop where it can (pipes, sockets), by a thread elsewhere (files, terminals, Windows)."""
    loop = asyncio.get_running_loop()
    mode = os.fstat(descriptor).st_mode
    if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and sys.platform != "win32":
        await loop.connect_read_pipe(lambda: reader, os.fdopen(descriptor, "rb", buffering=0))
        return

    def read() -> None:
        while True:
            try:
                data = os.read(descriptor, _CHUNK)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # the loop has ended before the input
                if data:
                    loop.call_soon_threadsafe(reader.data_received, data)
                    continue
                loop.call_soon_threadsafe(reader.connection_lost, None)
            return

    threading.Thread(target=read, name="stdin", daemon=True).start()


class _Writer:
    """Writes lines: straight to the descriptor, or through the event loop where that could block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, data: bytes) -> None:
        """Write one message and its line break."""
        line = memoryview(data + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    async def drain(self, seconds: float) -> None:
        """Wait until everything is written, at most `seconds`."""


class _PipeWriter(_Writer, asyncio.BaseProtocol):
    """A writer for pipes and sockets: never blocks the loop; what the client does not read yet is kept."""

    def __init__(self, descriptor: int, ended: asyncio.Event) -> None:
        super().__init__(descriptor)
        self._ended = ended
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ended.set()

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data + b"\n")

    async def drain(self, seconds: float) -> None:
        if self._transport is None or not self._transport.get_write_buffer_size():
            return
        closed = asyncio.Event()
        self._ended = closed
        self._transport.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(closed.wait(), seconds)


async def _open_writer(descriptor: int, ended: asyncio.Event) -> _Writer:
    mode = os.fstat(descriptor).st_mode
    if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and sys.platform != "win32":
        loop = asyncio.get_running_loop()
        _, writer = await loop.connect_write_pipe(
            lambda: _PipeWriter(descriptor, ended), os.fdopen(descriptor, "wb", buffering=0)
        )
        return writer
    return _Writer(descriptor)
