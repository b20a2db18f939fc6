"""Fast path for calls of `def` tools: the thread that runs their handlers also reads the input and writes the output.

Between a client and an event loop, a worker thread costs two more wake-ups, each dearer than a quick call. So a call
that is alone takes the input stream into its thread, which then reads, runs and answers the following calls of `def`
tools. It returns the stream when another message comes, or none for a while. The event loop takes the stream from a
slow handler, whose call is then like any other in a worker thread. Only the side that has the stream uses the session.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcpfactory_runtime.protocol.connection import Call, Event
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.methods import CALL_TOOL
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.jsonrpc import LineReader, Oversize
    from mcpfactory_runtime.server.session import Session

# Bytes per read. A pipe holds no more, and above 128 KiB glibc maps new memory for each read if the process never
# freed such a block, which costs as much as a call.
READ_SIZE: Final = 64 * 1024
_LOOK: Final = 0.001  # seconds between polls of the event loop; a handler seen in two consecutive polls counts as slow
_TOGETHER: Final = 32  # answers in one write, at most
_IDLE: Final = 20  # milliseconds without input after which the thread returns the stream


class _DirectCall(NamedTuple):
    """A call, and the function that runs it in any thread."""

    call: Call
    run: Callable[[], Json | McpError]


class DirectCalls:
    """The input stream of a session, which the event loop has, or a thread that answers calls of `def` tools.

    Args:
        session: the session.
        lines: splits the input into lines.
        fd: non-blocking file descriptor of the input.
        write: writes the answers of a thread; returns False if the client does not read, so that the loop must write.
        pause: pauses (True) or resumes (False) the event loop's reading.
    """

    def __init__(
        self, session: Session, lines: LineReader, fd: int, write: Callable[[], bool], pause: Callable[[bool], Any]
    ) -> None:
        self._session, self._lines, self._fd, self._write, self._pause = session, lines, fd, write, pause
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._pending: deque[bytes | Oversize] = deque()  # lines that were read and not handled
        self._leading: asyncio.Future[Any] | None = None  # done when the thread that has the stream returns it
        self._running: Call | None = None  # the call that this thread runs; never again once the stream was taken
        self._lock = threading.Lock()  # to end a call: the thread does, or the event loop that takes the stream
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Handle the messages in bytes that the event loop read, after those that wait."""
        self._pending.extend(self._lines.feed(data))
        while self._pending and self._leading is None:
            event = self._receive()
            if isinstance(event, _DirectCall):
                self._leading = in_thread(self._answer_calls, {"event": event})
                self._pause(True)
                self._leading.add_done_callback(self._resume)
                self._loop.call_later(_LOOK, self._look, self._leading, event.call)
            else:
                self._session.handle(event)

    async def stop(self) -> None:
        """Keep the stream on the event loop from now on; wait until a thread has returned it."""
        self._ended = True
        while self._leading is not None:  # noqa: ASYNC110 - the end of a process needs no notice
            await asyncio.sleep(_LOOK)

    def _receive(self) -> _DirectCall | Event:
        """Return the next message, for either side. A call is direct if it is alone, as all are in the thread."""
        event = self._session.receive(self._pending.popleft())
        if type(event) is not Call or event.method != CALL_TOOL or self._ended:
            return event
        if (self._leading or self._session.alone) and (run := self._session.direct(event)):
            self._running = event
            return _DirectCall(event, run)
        return event

    def _look(self, leading: asyncio.Future[Any], seen: Call | None) -> None:
        """Take the stream from a thread whose handler was running at the last poll, too: its outcome answers the call."""
        if self._leading is not leading:
            return
        with self._lock:
            call = self._running
            if call is seen:
                self._running = None
        if call is None or call is not seen:
            self._loop.call_later(_LOOK, self._look, leading, call)
        else:
            leading.remove_done_callback(self._resume)
            self._session.start_task(call, leading)
            self._resume()

    def _resume(self, returned: asyncio.Future[Event | None] | None = None) -> None:
        """Continue on the event loop, first with the message that the thread returned the stream for."""
        self._leading = None
        self._write()
        try:
            if returned is not None and (event := returned.result()) is not None:
                self._session.handle(event)
        finally:
            self.feed(b"")
            if self._leading is None:
                self._pause(False)

    def _answer_calls(self, event: Event | _DirectCall | None) -> Any:
        """Answer calls; return the message that the event loop must handle, or the outcome of a call that it took."""
        while isinstance(event, _DirectCall):
            outcome = copy_context().run(event.run)
            with self._lock:
                if self._running is not event.call:  # the event loop took the stream
                    return outcome
                self._running = None
            self._session.reply(event.call, outcome)
            if len(self._pending) % _TOGETHER == 0 and not self._write():
                return None
            event = self._next()
        return event

    def _next(self) -> _DirectCall | Event | None:
        """Return the next message; None if none came for a while, or the input ended."""
        while not self._pending:
            if self._ended or not self._poll.poll(_IDLE):
                return None
            data = b""
            with suppress(OSError):
                data = os.read(self._fd, READ_SIZE)
            if not data:
                return None
            self._pending.extend(self._lines.feed(data))
        return self._receive()
