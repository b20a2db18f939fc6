"""Background tasks, and worker threads for `def` handlers.

The threads are daemon threads, so that a handler that never returns does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

MAX_THREADS: Final = 40  # maximum number of threads, as in AnyIO and Starlette; further calls wait


def in_thread(handler: Callable[..., Any], arguments: dict[str, Any]) -> asyncio.Future[Any]:
    """Call a handler in a worker thread, with a copy of the current context variables.

    Returns:
        The future of the handler's result. If you cancel the future before the handler has started, the handler never runs. If you cancel the future later, the handler runs to its end, and the result is dropped.
    """
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    _workers.put(_Work(loop, future, copy_context(), handler, arguments))
    return future


def in_background(tasks: set[asyncio.Task[Any]], work: Coroutine[Any, Any, Any]) -> None:
    """Start a task without awaiting it.

    `tasks` keeps the task alive, because the event loop holds only a weak reference.
    """
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


@contextmanager
def waiting() -> Iterator[None]:
    """Allow one more worker thread while the handler in this thread waits for the event loop.

    Without it, handlers that wait for other handlers could occupy all threads, and wait for ever.
    """
    _workers.change_waiting(1)
    try:
        yield
    finally:
        _workers.change_waiting(-1)


def has_running_calls() -> bool:
    """Return True while a call runs in a worker thread or waits for a thread."""
    return _workers.calls > 0


class _Work(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    context: Context
    handler: Callable[..., Any]
    arguments: dict[str, Any]

    def run(self) -> tuple[Any, BaseException | None]:
        """Call the handler, and return the result and the error."""
        if self.future.cancelled():
            return None, None
        try:
            return self.context.run(self.handler, **self.arguments), None
        except (StopIteration, GeneratorExit) as stop:  # a future cannot store StopIteration or GeneratorExit
            error = RuntimeError(f"the handler raised {type(stop).__name__}")
            error.__cause__ = stop
            return None, error
        except BaseException as error:  # noqa: BLE001 - the caller receives every error
            return None, error


class _Workers:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the state, because a forked process does not inherit its parent's threads."""
        self.calls = 0
        """Number of calls that run or wait."""
        self._threads = 0
        self._most = MAX_THREADS
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[_Work] = SimpleQueue()

    def put(self, work: _Work) -> None:
        """Queue a call, and start a thread for the call if no thread is free."""
        with self._lock:
            self._start_if_needed(self.calls + 1)
            self.calls += 1
        self._waiting.put(work)

    def change_waiting(self, by: int) -> None:
        """Change the number of threads whose handlers wait, and start a thread if a call waits for a thread."""
        with self._lock:
            self._most += by
            self._start_if_needed(self.calls)

    def _start_if_needed(self, calls: int) -> None:
        if calls > self._threads and self._threads < self._most:
            try:
                threading.Thread(target=self._run, name="handler", daemon=True).start()
                self._threads += 1
            except RuntimeError:  # the operating system refuses to start another thread
                if not self._threads:
                    raise

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._threads > self._most:
                    self._threads -= 1
                    return
            work = self._waiting.get()
            value, error = work.run()
            with self._lock:
                self.calls -= 1
            with suppress(RuntimeError):  # if the loop is closed, no caller waits for the result
                work.loop.call_soon_threadsafe(_resolve, work.future, value, error)
            del work, value, error  # a waiting thread must not keep the call's objects alive


def _resolve(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():  # the caller was canceled in the meantime
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


_workers = _Workers()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_workers.forget)
