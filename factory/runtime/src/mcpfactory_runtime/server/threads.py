"""Worker threads for `def` handlers, so that a blocking handler does not delay other calls.

`asyncio.to_thread` is not used: its future, callback chain and wake-up per call cost several times as much as a quick
handler. Here one thread takes the calls; others join, twice as many each time, if none of them has progressed for a
millisecond. Results are returned in batches: a thread wakes the event loop when it runs out of work, and the loop
polls every millisecond while calls wait.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

MOST: Final = 40  # handlers that run at a time; the next ones wait, as in AnyIO and Starlette
_STUCK: Final = 0.001  # seconds without a handler begun after which another thread joins
_REST: Final = 30.0  # seconds without work after which a thread ends


def in_thread(handler: Callable[..., Any], arguments: dict[str, Any]) -> asyncio.Future[Any]:
    """Call a handler in a worker thread, with a copy of the current context variables.

    Returns:
        The future of its result. If it is canceled, a handler that has not started never runs; one that has started
            runs to its end, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    arrivals = _arrivals.get(loop)
    if arrivals is None:
        arrivals = _arrivals[loop] = _Arrivals(loop)
    if _workers.put(_Work(future, copy_context(), handler, arguments, arrivals)) and not arrivals.watched:
        arrivals.watched = True
        loop.call_later(_STUCK, _watch, loop, arrivals)
    return future


def busy() -> bool:
    """Return True while a handler is running in a worker thread."""
    return _workers.running > 0


class _Work:
    """A call of a handler."""

    __slots__ = ("arguments", "arrivals", "context", "future", "handler")

    def __init__(
        self,
        future: asyncio.Future[Any],
        context: Context,
        handler: Callable[..., Any],
        arguments: dict[str, Any],
        arrivals: _Arrivals,
    ) -> None:
        self.future = future
        self.context = context
        self.handler = handler
        self.arguments = arguments
        self.arrivals = arrivals

    def run(self) -> None:
        """Call the handler and deliver its outcome. Worker threads only."""
        value: Any = None
        error: BaseException | None = None
        try:
            value = self.context.run(self.handler, **self.arguments)
        except (StopIteration, GeneratorExit) as stop:  # which no future can hold, and no coroutine wait for
            error = RuntimeError(f"the handler raised {type(stop).__name__}")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - all of it belongs to whoever waits
            error = raised
        self.arrivals.add((self.future, value, error))


class _Arrivals:
    """Finished calls of worker threads on their way to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.watched = False
        """Flag: the loop will poll soon (`_watch`)."""
        self._loop = ref(loop)  # the dictionary of arrivals does not keep the loop alive
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._called = False

    def add(self, outcome: tuple[asyncio.Future[Any], Any, BaseException | None]) -> None:
        """Leave an outcome for the event loop. Any thread."""
        self._done.append(outcome)
        if not self.watched:  # asked after the line above: the loop takes everything after it has reset this
            self.call()

    def call(self) -> None:
        """Wake the event loop if there is something for it. Any thread."""
        if self._done and not self._called:
            self._called = True
            loop = self._loop()
            if loop is not None:
                with suppress(RuntimeError):  # the loop is closed, so no caller waits
                    loop.call_soon_threadsafe(self.take)

    def take(self) -> None:
        """Resolve the futures. Event loop only."""
        self._called = False
        while self._done:
            future, value, error = self._done.popleft()
            if future.done():  # cancelled meanwhile
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


class _Workers:
    """The threads, and the calls that wait for one."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the state, because a forked process does not inherit its parent's threads."""
        self.running = 0
        """Threads that are not waiting for work."""
        self._lock = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._idle: list[threading.Lock] = []  # one gate for each idle thread; releasing it wakes the thread
        self._begun = 0  # handlers, ever
        self._seen = 0  # of these when somebody last looked

    def put(self, work: _Work) -> bool:
        """Queue a call for the threads. Return True if the caller must check their progress soon (`join`).

        Raises:
            RuntimeError: no thread exists or can be started; the call is not made.
        """
        with self._lock:
            if not self.running:
                self._wake()
                self._waiting.append(work)
                return False
            self._waiting.append(work)
            if len(self._waiting) == 1:
                self._seen = self._begun
            return True

    def join(self) -> bool:
        """Let twice as many threads run if no handler has begun since the last look. Returns whether calls still wait."""
        with self._lock:
            if self._waiting and self._begun == self._seen:
                for _ in range(min(len(self._waiting), self.running)):
                    self._wake()
            self._seen = self._begun
            return bool(self._waiting)

    def _wake(self) -> None:
        """Let one more thread run, unless as many do as may, or can. The lock is held."""
        if self.running >= MOST:
            return
        if self._idle:
            self._idle.pop().release()
        else:
            try:
                threading.Thread(target=self._run, name="handler", daemon=True).start()
            except RuntimeError:  # the machine gives no more
                if not self.running:
                    raise
                return  # running threads take the queued calls
        self.running += 1

    def _run(self) -> None:
        """Take calls until none came for a while."""
        gate = threading.Lock()
        gate.acquire()
        while True:
            arrivals = None
            while (work := self._next(gate)) is not None:
                if arrivals is not None and arrivals is not work.arrivals:
                    arrivals.call()
                arrivals = work.arrivals
                work.run()
                del work  # and with it everything that the call held
            if arrivals is not None:
                arrivals.call()
            if not gate.acquire(timeout=_REST):
                if self._leave(gate):
                    return
                gate.acquire()

    def _next(self, gate: threading.Lock) -> _Work | None:
        """Return the next call, or None if the queue is empty; the thread then waits at its gate."""
        with self._lock:
            while self._waiting:
                work = self._waiting.popleft()
                if not work.future.cancelled():
                    self._begun += 1
                    return work
            self.running -= 1
            self._idle.append(gate)
            return None

    def _leave(self, gate: threading.Lock) -> bool:
        """Return True if a thread may end, because it will never be woken again."""
        with self._lock:
            if gate not in self._idle:
                return False
            self._idle.remove(gate)
            return True


def _watch(loop: asyncio.AbstractEventLoop, arrivals: _Arrivals) -> None:
    """Collect finished calls and start threads for queued ones; repeat while calls are queued."""
    arrivals.watched = _workers.join()
    arrivals.take()
    if arrivals.watched:
        loop.call_later(_STUCK, _watch, loop, arrivals)


_workers = _Workers()
_arrivals: WeakKeyDictionary[asyncio.AbstractEventLoop, _Arrivals] = WeakKeyDictionary()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_workers.forget)
