"""Fast path for calls of `def` tools: one thread reads, runs and answers them while the server is otherwise idle.

Between a waiting client and an event loop, a handler thread costs two more wake-ups, each dearer than the whole call.
So while the only messages are calls of `def` tools, the thread that runs their handlers also reads the input and
writes the output. A slow handler, any other message, and the end of input return the stream to the event loop, which
continues normally: such a call is then like any other in a worker thread.

Only one side has the stream at a time, and only that side touches the session: the event loop, or the thread except
while its handler runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from mcpfactory_runtime.protocol.connection import Call
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.methods import CALL_TOOL
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Event
    from mcpfactory_runtime.protocol.jsonrpc import LineReader, Oversize
    from mcpfactory_runtime.server.session import Session

_LOOK: Final = (
    0.001  # seconds between two looks of the event loop, which takes the stream when a handler was there at both
)
_QUIET: Final = 100  # looks of the event loop without a call after which it no longer looks
_STREAK: Final = 3  # calls of tools in a row after which the thread gets the stream, if it can answer the last one
_PATIENCE: Final = 32  # calls after one that it could not answer for which that is not asked
_LONGEST_STREAK: Final = 4096  # the same where handlers were not done at once, twice as many each time
_GOOD: Final = 1000  # calls that were done at once after which a handler that is not counts as the first
# Bytes per read. A pipe holds no more, and above 128 KiB glibc maps new memory for each read if the process never
# freed such a block: three system calls and the page faults were half of the server's cost per call.
READ_SIZE: Final = 64 * 1024
_TOGETHER: Final = 32  # answers of one write, at most
_SOON: Final = 0.002  # seconds that an answer may wait for others to be written with it
_BACKLOG: Final = 0.01  # seconds after a read at which the event loop gets the unanswered rest of it


log = logging.getLogger(__name__)


class DirectWriter(Protocol):
    """Output of answers."""

    def hold(self, data: bytes) -> None:
        """Take a message that is written soon. The thread's."""

    def write_held(self) -> bool:
        """Write all that is held now; return False where the client does not read, and the event loop has to. The thread's."""


class _DirectCall:
    """A call that the thread runs; `future` is set where the event loop took the stream meanwhile."""

    __slots__ = ("call", "future", "run")

    def __init__(self, call: Call, run: Callable[[], Json | McpError]) -> None:
        self.call = call
        self.run = run
        self.future: asyncio.Future[Json] | None = None

    def resolve(self, outcome: Json | McpError) -> None:
        """Hand the outcome to the event loop. Event loop only."""
        if self.future is None or self.future.done():  # done: the client cancelled the call
            return
        if isinstance(outcome, McpError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class DirectCalls:
    """Thread of direct calls, and the owner of the stream.

    Args:
        session: the session of the stream.
        lines: splits the input into lines.
        descriptor: non-blocking file descriptor of the input.
        writer: writes the output.
        give: pauses (True) or resumes (False) the event loop's reading.
    """

    def __init__(
        self, session: Session, lines: LineReader, descriptor: int, writer: DirectWriter, give: Callable[[bool], None]
    ) -> None:
        self._session = session
        self._lines = lines
        self._descriptor = descriptor
        self._writer = writer
        self._give = give
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._pending: deque[bytes | Oversize] = deque()  # lines that were read; of the side that has the stream
        self._thread: threading.Thread | None = None
        self._gate = threading.Semaphore(0)
        self._first: _DirectCall | None = (
            None  # what the thread begins with when it is let through the gate; None: it ends
        )
        self._wake = -1, -1  # a pipe that ends the thread's wait for input
        self._parked = True  # the thread waits at its gate
        self._back = asyncio.Event()  # the event loop has the stream
        self._back.set()
        self._event: Event | None = None  # what the thread read last
        self._held = 0  # answers that wait to be written together
        self._read_at = self._written_at = 0.0  # when the thread read and wrote last
        self._streak = 0  # calls of tools, one after the other
        self._needed = _STREAK
        # What follows is changed with the lock held.
        self._lock = threading.Lock()
        self._led = False  # the thread has the stream
        self._ended = False  # it never gets it again
        self._running: _DirectCall | None = None  # the running call
        self._begun = 0  # handlers, ever
        self._began = 0  # of these when it got the stream last
        self._seen = 0  # of these when the event loop looked last
        self._quiet = 0  # looks since the last one
        self._watched = False  # the event loop looks

    # -- the event loop's side -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take bytes that the event loop read."""
        self._pending.extend(self._lines.feed(data))
        self._handle_pending()

    def _handle_pending(self) -> None:
        feed, pending = self._session.feed, self._pending
        while pending and self._back.is_set():
            feed(pending.popleft(), self._handle)

    def _handle(self, event: Event) -> None:
        if type(event) is Call and event.method == CALL_TOOL:
            self._streak += 1
            if self._streak >= self._needed and self._parked and self._begin(event):
                return
        else:
            self._streak = 0
        self._session.handle(event)

    def _begin(self, call: Call) -> bool:
        """Give the stream to the thread, if it can answer this call, and nothing else is in flight."""
        session = self._session
        if not self._ended and session.alone:
            run = session.direct(call)
            if run is not None:
                self._lead(_DirectCall(call, run))
                return True
        self._streak = -_PATIENCE
        return False

    def _lead(self, first: _DirectCall) -> None:
        self._give(True)
        self._back.clear()
        self._parked = False
        self._first = first
        self._read_at = self._written_at = monotonic()
        with self._lock:
            self._led = True
            self._began = self._begun
        if self._thread is None:
            self._wake = os.pipe()
            self._thread = threading.Thread(target=self._run, name="stdio", daemon=True)
            self._thread.start()
        self._gate.release()

    def _watch(self) -> None:
        """See whether the handler that runs is the one of the last look, and take the stream if so."""
        with self._lock:
            stuck = self._running if self._led and self._begun == self._seen else None
            self._quiet = self._quiet + 1 if self._begun == self._seen else 0
            self._seen = self._begun
            if stuck is not None:
                self._led = False
                _WORKING.add(self)
            self._watched = self._led and self._quiet < _QUIET
        if stuck is not None:
            self._take(stuck)
        elif self._watched:
            self._loop.call_later(_LOOK, self._watch)

    def _take(self, stuck: _DirectCall) -> None:
        """Go on without the thread, whose handler becomes one of a worker thread."""
        good = self._begun - self._began >= _GOOD
        self._needed = 2 * _STREAK if good else min(2 * self._needed, _LONGEST_STREAK)
        stuck.future = self._session.adopt(stuck.call)
        self._resume(None)

    def _resume(self, event: Event | None) -> None:
        """Have the stream again; `event` is what the thread could not answer."""
        self._streak = -len(self._pending)
        self._back.set()
        self._writer.write_held()
        if event is not None:
            self._session.handle(event)
        self._handle_pending()
        if self._back.is_set():
            self._give(False)

    async def stop(self) -> None:
        """Take the stream for ever. The thread ends; of a handler that still runs, the session waits for the answer."""
        with self._lock:
            self._ended = True
            stuck = self._running if self._led else None
            if stuck is not None:
                self._led = False
                _WORKING.add(self)
        if stuck is not None:
            self._take(stuck)
        elif not self._back.is_set():
            os.write(self._wake[1], b"\0")
            await self._back.wait()
        self._gate.release()

    def _park(self) -> None:
        self._parked = True

    # -- the thread's side -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._wake[0], select.POLLIN)
        self._context.run(self._turns, poll)
        for descriptor in self._wake:
            os.close(descriptor)

    def _turns(self, poll: select.poll) -> None:
        while self._gate.acquire() and (current := self._first) is not None:
            self._first = None
            try:
                while current is not None:
                    current = self._next(poll) if self._answer(current) else None
            except Exception:  # a bug of ours: the event loop continues
                log.exception("a call could not be answered where it was read")
                self._leave(None)
            self._tell(self._park)

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the event loop call something."""
        with suppress(RuntimeError):  # the loop is closed, so no caller waits
            self._loop.call_soon_threadsafe(function, *arguments)

    def _answer(self, current: _DirectCall) -> bool:
        """Run a call and answer it. Returns False where the event loop took the stream meanwhile."""
        with self._lock:
            self._running = current
            self._begun += 1
            watched, self._watched = self._watched, True
        if not watched:
            self._tell(self._watch)
        outcome = copy_context().run(current.run)
        with self._lock:
            self._running = None
            led = self._led
            if not led:
                _WORKING.discard(self)
        if not led:
            self._tell(current.resolve, outcome)
            return False
        self._session.reply(current.call, outcome)
        self._held += 1
        late = False
        if self._pending:  # a later message for the event loop should not wait for all of them
            now = monotonic()
            late = now - self._read_at > _BACKLOG
            if self._held < _TOGETHER and now - self._written_at < _SOON and not late:
                return True
            self._written_at = now
        self._held = 0
        if self._writer.write_held() and not late:
            return True
        self._leave(None)
        return False

    def _next(self, poll: select.poll) -> _DirectCall | None:
        """Return the next call that the thread can answer; None: the event loop has the stream."""
        while not self._pending:
            if not self._read(poll):
                self._leave(None)
                return None
        self._session.feed(self._pending.popleft(), self._note)
        event = self._event
        if type(event) is Call and event.method == CALL_TOOL and not self._ended:
            run = self._session.direct(event)
            if run is not None:
                return _DirectCall(event, run)
        self._leave(event)
        return None

    def _note(self, event: Event) -> None:
        self._event = event

    def _read(self, poll: select.poll) -> bool:
        """Wait for input. Return False if the input ended or another reader takes over."""
        poll.poll()
        if self._ended:
            return False
        try:
            data = os.read(self._descriptor, READ_SIZE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._pending.extend(self._lines.feed(data))
        self._read_at = self._written_at = monotonic()
        return bool(data)

    def _leave(self, event: Event | None) -> None:
        """Return the stream to the event loop, with an event to answer."""
        with self._lock:
            self._led = False
        self._tell(self._resume, event)


def working() -> bool:
    """Return True if a handler is still running in a thread whose stream was taken by the event loop."""
    return bool(_WORKING)


_WORKING: Final[set[DirectCalls]] = set()
