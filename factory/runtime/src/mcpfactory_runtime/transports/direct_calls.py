"""Fast path for calls of `def` tools. One thread runs the handlers, reads the input and writes the output.

A worker thread needs two wake-ups per call, and each wake-up takes longer than a quick handler. If no other request is
in flight, the thread of a call therefore takes over the input stream, and also answers the next calls of `def` tools.
The thread returns the stream after a pause, or when another kind of message arrives. If a handler is slow, the event
loop takes the stream back, and the call continues in its worker thread.
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
    from mcpfactory_runtime.protocol.jsonrpc import LineReader, OversizeMessage
    from mcpfactory_runtime.server.session import Session

# Bytes per read, equal to the capacity of a pipe. Above 128 KiB, each read may be slow, because glibc maps new memory.
READ_SIZE: Final = 64 * 1024
_POLL_INTERVAL: Final = 0.001  # seconds; a handler seen in two consecutive polls counts as slow
_MAX_BATCH: Final = 32  # maximum number of responses in one write
_IDLE_TIMEOUT: Final = 20  # milliseconds without input after which the thread returns the stream


class _DirectCall(NamedTuple):
    call: Call
    run: Callable[[], Json | McpError]


class DirectCalls:
    """The input stream of a session.

    `write` writes the responses of a thread, or returns False if the client does not read.
    """

    def __init__(
        self, session: Session, lines: LineReader, fd: int, write: Callable[[], bool], pause: Callable[[bool], Any]
    ) -> None:
        self._session, self._lines, self._fd, self._write, self._pause = session, lines, fd, write, pause
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._pending: deque[bytes | OversizeMessage] = deque()  # lines that are not handled yet
        # Future of the thread that reads the stream. None means that the event loop reads the stream.
        self._leading: asyncio.Future[Any] | None = None
        self._running: Call | None = None  # the call in the thread, unless the event loop took the stream
        self._lock = threading.Lock()  # guards `_running`, because the thread or the event loop ends a call
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Handle pending lines, and then the bytes that the event loop read."""
        self._pending.extend(self._lines.feed(data))
        while self._pending and self._leading is None:
            event = self._receive()
            if isinstance(event, _DirectCall):
                self._leading = in_thread(self._answer_calls, {"event": event})
                self._pause(True)
                self._leading.add_done_callback(self._resume)
                self._loop.call_later(_POLL_INTERVAL, self._poll_handler, self._leading, event.call)
            else:
                self._session.handle(event)

    async def stop(self) -> None:
        """Wait until the event loop has the stream, and keep the stream there."""
        self._ended = True
        while self._leading is not None:  # noqa: ASYNC110 - polling is fast enough at the end
            await asyncio.sleep(_POLL_INTERVAL)

    def _receive(self) -> _DirectCall | Event:
        """Return the next message. In the event loop, a call is direct only if no other request is in flight."""
        event = self._session.receive(self._pending.popleft())
        if type(event) is not Call or event.method != CALL_TOOL or self._ended:
            return event
        if (self._leading or self._session.has_one_request) and (run := self._session.fast_path_runner(event)):
            self._running = event
            return _DirectCall(event, run)
        return event

    def _poll_handler(self, leading: asyncio.Future[Any], seen: Call | None) -> None:
        """Take back the stream if the handler of the last poll still runs."""
        if self._leading is not leading:
            return
        with self._lock:
            call = self._running
            if call is seen:
                self._running = None
        if call is None or call is not seen:
            self._loop.call_later(_POLL_INTERVAL, self._poll_handler, leading, call)
        else:
            leading.remove_done_callback(self._resume)
            self._session.start_task(call, leading)
            self._resume()

    def _resume(self, returned: asyncio.Future[Event | None] | None = None) -> None:
        """Continue on the event loop with the message that the thread did not handle."""
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
        """Answer direct calls, until another message arrives, or until the event loop takes the stream."""
        while isinstance(event, _DirectCall):
            outcome = copy_context().run(event.run)
            with self._lock:
                if self._running is not event.call:  # the event loop took the stream
                    return outcome
                self._running = None
            self._session.reply(event.call, outcome)
            if len(self._pending) % _MAX_BATCH == 0 and not self._write():
                return None
            event = self._next()
        return event

    def _next(self) -> _DirectCall | Event | None:
        """Return the next message, or None after a pause or at the end of the input."""
        while not self._pending:
            if self._ended or not self._poll.poll(_IDLE_TIMEOUT):
                return None
            with suppress(OSError):
                if data := os.read(self._fd, READ_SIZE):
                    self._pending.extend(self._lines.feed(data))
                    continue
            return None
        return self._receive()
