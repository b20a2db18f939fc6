"""MCP over standard input and output, one message per line (basic/transports, stdio).

Descriptor 1 is redirected to stderr for the rest of the process. Neither a handler's `print` nor a child process can
then write between the protocol messages. After the end of the input, SIGTERM or SIGINT, requests in flight may finish.
The unread output is limited (docs/reference/transports.md, Bounds).
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import stat
import sys
import threading
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol.connection import Call
from mcpfactory_runtime.protocol.jsonrpc import LineReader
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.session import DROP_AT, DROPPABLE, PROGRESS_GAP, Session
from mcpfactory_runtime.server.threads import has_running_calls
from mcpfactory_runtime.transports import shutdown
from mcpfactory_runtime.transports.direct_calls import READ_SIZE, DirectCalls

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface

_GRACE: Final = 0.1  # maximum seconds for canceled handlers to end, and for the last output to be written
_STARTUP_POLL: Final = 0.1  # seconds between two checks for the end of the input while the lifespan starts
_PAUSE_AT: Final = 8 << 20  # unread bytes at which reading from the client pauses
_END_AT: Final = 64 << 20  # maximum unread bytes; above this limit, the next message closes the connection
# Maximum bytes of a message that waits for other messages, to write them together.
_MAX_DELAYED: Final = 4096


def run_stdio(server: ServerInterface) -> None:
    """Serve until the input ends, the output closes, or a signal arrives.

    A signal after the end of the input, or a second signal, stops the server at once.
    """
    incoming, outgoing = _claim_descriptors()
    loop = asyncio.new_event_loop()
    stop = _Stop()
    main = loop.create_task(_serve(server, incoming, outgoing, stop))

    def end() -> None:
        if stop.is_set():
            main.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        # Signal handlers require the main thread, and some platforms do not support them.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, end)
    try:
        with suppress(asyncio.CancelledError, KeyboardInterrupt):
            loop.run_until_complete(main)
    finally:
        _exit_if_handlers_run()


async def serve_stdio(server: ServerInterface) -> None:
    """Serve in the running event loop until the input ends or the task is canceled. Install no signal handlers.

    Afterwards, the process can use its standard input and output again.
    """
    stdout, copies = sys.stdout, (os.dup(0), os.dup(1))
    try:
        await _serve(server, *_claim_descriptors(), asyncio.Event())
    finally:
        with suppress(OSError, ValueError):
            stdout.flush()
        sys.stdout = stdout
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
            os.close(copy)
            if sys.platform != "win32":
                os.set_blocking(number, True)  # asyncio set O_NONBLOCK, which all copies share


def _exit_if_handlers_run() -> None:
    """Exit if `def` handlers still run, because the interpreter would wait for their threads."""
    if has_running_calls():
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(0)


def _claim_descriptors() -> tuple[int, int]:
    """Replace descriptor 0 by null input and descriptor 1 by stderr, and return private copies of both."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    with suppress(OSError, ValueError):
        sys.stdout.flush()  # the client must not receive text that was printed earlier
    sys.stdout = sys.stderr
    return incoming, outgoing


async def _serve(server: ServerInterface, incoming: int, outgoing: int, stop: asyncio.Event) -> None:
    output_closed = asyncio.Event()
    writer = await _open_writer(outgoing, output_closed)
    async with AsyncExitStack() as life:
        if not await _start(life, server, stop, incoming):
            return
        session = _StdioSession(server, writer)
        reader = _StdinReader(session, server.max_message_size, stop)
        source = await _open_reader(incoming, reader)
        writer.throttles(source)
        if source is not None and isinstance(writer, _PipeWriter):
            pause = partial(source.hold, "direct")
            reader.direct = DirectCalls(session, reader.lines, incoming, writer.write_held, pause)
        closed, stopping = asyncio.ensure_future(output_closed.wait()), asyncio.ensure_future(stop.wait())
        idle: asyncio.Task[None] | None = None
        try:
            await asyncio.wait((closed, stopping), return_when=asyncio.FIRST_COMPLETED)
            if reader.direct is not None:
                await reader.direct.stop()
            if not closed.done():
                session.refuse_requests(questions=True)
                server.closing.set()
                idle = asyncio.ensure_future(session.wait_idle())
                await asyncio.wait((closed, idle), timeout=shutdown.DRAIN, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (closed, stopping, idle):
                if waiting is not None:
                    waiting.cancel()
            if reader.direct is not None:
                await reader.direct.stop()
            await session.close(_GRACE)
            await writer.close(_GRACE)
            if source is not None:
                source.close()


class _Stop(asyncio.Event):
    """Event that begins the shutdown of this process, and limits the time of the shutdown."""

    def set(self) -> None:
        super().set()
        shutdown.limit_exit()


async def _start(life: AsyncExitStack, server: ServerInterface, stop: asyncio.Event, incoming: int) -> bool:
    """Start the lifespan, or return False if a shutdown begins and the lifespan does not start in time."""
    try:
        async with asyncio.timeout(None) as limit:
            watching = asyncio.create_task(_limit_startup(limit, stop, incoming))
            try:
                await life.enter_async_context(shutdown.LimitedEnd(server.running()))
            finally:
                watching.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        sys.stderr.write(f"error: the lifespan did not start within {shutdown.DRAIN} s after the shutdown began\n")
        return False
    return True


async def _limit_startup(limit: asyncio.Timeout, stop: asyncio.Event, incoming: int) -> None:
    """Wait for a signal or the end of the input, and limit the startup."""
    while not (stop.is_set() or _is_closed(incoming)):  # noqa: ASYNC110 - nothing reports the end of an unread input
        await asyncio.sleep(_STARTUP_POLL)
    limit.reschedule(asyncio.get_running_loop().time() + shutdown.DRAIN)


def _is_closed(incoming: int) -> bool:
    """Return True if the client has closed its end of a pipe or socket. Do not read the input."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(incoming, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


class _StdioSession(Session):
    """The session of the process. Optional notifications are dropped while the client does not read."""

    private = True
    progress_gap = PROGRESS_GAP

    def __init__(self, server: ServerInterface, writer: _StdoutWriter) -> None:
        super().__init__(server, writer.send)
        self._writer = writer
        self._thread = threading.get_ident()

    def deliver(self, call: Call, data: bytes) -> None:
        if threading.get_ident() != self._thread:  # a thread of DirectCalls reads the input
            self._writer.hold(data)
        elif self.connection.in_flight:
            self._writer.send_soon(data)
        else:
            self._writer.send(data)

    def notify(self, method: str, params: dict[str, Any], revision: Revision | None = None) -> None:
        if method not in DROPPABLE or self._writer.unread <= DROP_AT:
            super().notify(method, params, revision)


class _StdinReader(asyncio.Protocol):
    direct: DirectCalls | None = None
    """Runs calls of `def` tools directly, if a thread can read the input."""

    def __init__(self, session: Session, max_size: int, stop: asyncio.Event) -> None:
        self.lines = LineReader(max_size)
        self._session = session
        self._stop = stop

    def data_received(self, data: bytes) -> None:
        if self.direct is not None:
            self.direct.feed(data)
            return
        for line in self.lines.feed(data):
            self._session.feed(line)

    def connection_lost(self, exc: Exception | None) -> None:
        rest = self.lines.rest()
        if rest:
            self._session.feed(rest)
        self._session.refuse_requests()
        self._stop.set()


class _Source:
    """Input of the event loop, which is paused while at least one component requests a pause."""

    def __init__(self, transport: asyncio.ReadTransport) -> None:
        self._transport = transport
        self._holders: set[str] = set()

    def hold(self, who: str, held: bool) -> None:
        """Pause reading on behalf of `who`, or end the pause if `held` is False."""
        if held:
            self._holders.add(who)
            self._transport.pause_reading()
        else:
            self._holders.discard(who)
            if not self._holders:
                self._transport.resume_reading()

    def close(self) -> None:
        """Stop reading."""
        self._transport.close()


async def _open_reader(descriptor: int, reader: _StdinReader) -> _Source | None:
    """Start to read, in the event loop for pipes and sockets, or in a thread for other inputs and on Windows."""
    loop = asyncio.get_running_loop()
    mode = os.fstat(descriptor).st_mode
    if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and sys.platform != "win32":
        transport, _ = await loop.connect_read_pipe(lambda: reader, os.fdopen(descriptor, "rb", buffering=0))
        if hasattr(transport, "max_size"):  # asyncio has no other way to set the size of a read
            transport.max_size = READ_SIZE
        return _Source(transport)

    def read() -> None:
        while True:
            try:
                data = os.read(descriptor, READ_SIZE)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # the event loop was closed before the input ended
                if data:
                    loop.call_soon_threadsafe(reader.data_received, data)
                    continue
                loop.call_soon_threadsafe(reader.connection_lost, None)
            return

    threading.Thread(target=read, name="stdin", daemon=True).start()
    return None


class _StdoutWriter:
    """Writes lines directly to the descriptor, and blocks."""

    unread = 0
    """Number of bytes that the client has not read yet."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def throttles(self, source: _Source | None) -> None:
        """Pause reading from `source` while the client does not read."""

    def send(self, data: bytes) -> None:
        line = memoryview(data + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def send_soon(self, data: bytes) -> None:
        self.send(data)

    def hold(self, data: bytes) -> None:
        self.send(data)

    async def close(self, seconds: float) -> None:
        """Wait at most `seconds` until everything is written, and stop writing."""


class _PipeWriter(_StdoutWriter, asyncio.BaseProtocol):
    """Non-blocking writer for pipes and sockets, with bounded unread output."""

    def __init__(self, descriptor: int, ended: asyncio.Event) -> None:
        super().__init__(descriptor)
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._source: _Source | None = None
        self._lock = threading.Lock()  # guards `_held` and the order of writes
        # Messages to write together.
        self._held: list[bytes] = []

    @property
    def unread(self) -> int:  # type: ignore[override] # - a plain attribute of the base class
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def throttles(self, source: _Source | None) -> None:
        self._source = source

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(_PAUSE_AT)
        self._transport = transport

    def pause_writing(self) -> None:
        if self._source is not None:
            self._source.hold("writer", True)

    def resume_writing(self) -> None:
        if self._source is not None:
            self._source.hold("writer", False)

    def connection_lost(self, exc: Exception | None) -> None:
        with self._lock:
            self._transport = None
        self._ended.set()

    def send(self, data: bytes) -> None:
        self.hold(data)
        self._flush()

    def send_soon(self, data: bytes) -> None:
        if len(data) > _MAX_DELAYED:
            self.send(data)
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self.hold(data)

    def hold(self, data: bytes) -> None:
        """Queue a message for the next write, from any thread."""
        with self._lock:
            self._held.append(data)

    def write_held(self) -> bool:
        """Write the queued output from any thread, or return False if the event loop must write, for a slow client."""
        with self._lock:
            if self._transport is None:
                self._held = []
                return False
            if not self._held:
                return True
            data = b"\n".join([*self._held, b""])
            written = 0
            if not self._transport.get_write_buffer_size():
                with suppress(OSError):  # the transport will also detect the error
                    written = os.write(self._descriptor, data)
            self._held = [data[written:-1]] if written < len(data) else []
            if not self._held:
                return True
        with suppress(RuntimeError):  # after the loop is closed, no caller waits for the write
            self._loop.call_soon_threadsafe(self._flush)
        return False

    def _flush(self) -> None:
        with self._lock:
            held, self._held = self._held, []
            if self._transport is None or not held:
                return
            if self._transport.get_write_buffer_size() <= _END_AT:
                held.append(b"")
                self._transport.write(b"\n".join(held))
                return
            sys.stderr.write(f"error: connection closed: the client has not read {_END_AT} bytes of output\n")
            self._transport.abort()
            self._transport = None
        self._ended.set()

    async def close(self, seconds: float) -> None:
        self._flush()
        if self._transport is None:
            return
        closed = asyncio.Event()
        self._ended = closed
        self._transport.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(closed.wait(), seconds)


async def _open_writer(descriptor: int, ended: asyncio.Event) -> _StdoutWriter:
    mode = os.fstat(descriptor).st_mode
    if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and sys.platform != "win32":
        loop = asyncio.get_running_loop()
        _, writer = await loop.connect_write_pipe(
            lambda: _PipeWriter(descriptor, ended), os.fdopen(descriptor, "wb", buffering=0)
        )
        return writer
    return _StdoutWriter(descriptor)
