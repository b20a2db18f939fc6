"""Serving of an `HttpApp` on its own port by uvicorn, in this process or in several workers.

With several workers, the parent process listens, forks workers and replaces dead workers, but serves no requests. The
parent forwards SIGTERM and SIGINT, and ends after all workers. Workers also end if the parent is killed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from mcpfactory_runtime.protocol.http import LOOPBACK, check_header_size
from mcpfactory_runtime.server.threads import has_running_calls
from mcpfactory_runtime.transports import shutdown
from mcpfactory_runtime.transports.http.app import HttpApp

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.base import SharedStore

log = logging.getLogger(__name__)

_BACKLOG: Final = 2048  # maximum number of connections that wait to be accepted
# Seconds for the arrival of a request. A large request gets more time, according to `_READ_RATE`.
_READ_TIME: Final = 30.0
_READ_RATE: Final = 16_384  # minimum speed of a large request in bytes per second
_SHUTDOWN_READ_TIME: Final = 2.0  # maximum seconds for the rest of a request after a shutdown signal


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # - httptools if installed, else h11
    """Connection that bounds the time and size of requests, and accepts one request at a time.

    An incomplete request ends the connection after `_READ_TIME` seconds, plus the time that its size needs at
    `_READ_RATE`. Data between a request and its response is discarded, and ends the connection after the response. This
    class bounds the size of incomplete heads and trailers, because httptools has no limit.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._surplus = False
        self._received = 0
        # Bytes since httptools last reported a complete head, body data, or the end of a request.
        self._incomplete = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._answering():
            self._refuse_more()
        if self._surplus:
            return
        self._received += len(data)
        self._incomplete += len(data)
        super().data_received(data)
        if self._answering():
            self._end_reading()
            return
        self._refuse_head()
        if self._timer is None:
            self._begin_reading()

    def on_message_begin(self) -> None:
        """Discard a second request in the same data. Only httptools calls this callback and the following callbacks."""
        if self._answering():
            self._refuse_more()
        if not self._surplus:
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._surplus:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._surplus:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self._surplus:
            super().on_headers_complete()
        self._incomplete = 0

    def on_body(self, body: bytes) -> None:
        self._incomplete = 0
        if not self._surplus:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._incomplete = 0
        if not self._surplus:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._answering():
            self._refuse_more()
        elif not self._refuse_head():
            super().send_400_response(msg)

    def shutdown(self) -> None:
        super().shutdown()
        if self._timer is not None and self.cycle is not None and not self.cycle.response_complete:
            self.loop.call_later(_SHUTDOWN_READ_TIME, self._abort_reading)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _measure_incomplete(self) -> tuple[int, int]:
        """Return the number of bytes of the URL, and the number of bytes of all incomplete input."""
        conn = getattr(self, "conn", None)
        if conn is None:
            return len(getattr(self, "url", b"")), self._incomplete
        held = conn.trailing_data[0]  # bytes that h11 has not parsed yet
        in_body = self.cycle is not None and not self.cycle.response_complete
        return 0 if in_body else len(held.partition(b"\n")[0]), len(held)

    def _refuse_head(self) -> bool:
        """Refuse an incomplete request with a too large URL or headers, and then return True."""
        refused = None if self._surplus else check_header_size(*self._measure_incomplete())
        if refused is None:
            return False
        self._surplus = True
        head = f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\ncontent-type: text/plain\r\n"
        size = f"content-length: {len(refused.text)}\r\nconnection: close\r\n\r\n"
        self.transport.write(f"{head}{size}{refused.text}".encode())
        # If the connection were closed while more data arrives, a reset could reach the client before the response.
        self.transport.write_eof()
        return True

    def _refuse_more(self) -> None:
        self._surplus = True
        self.cycle.keep_alive = False

    def _begin_reading(self) -> None:
        self._received = 0
        self._timer = self.loop.call_later(_READ_TIME, self._check_reading, _READ_TIME)

    def _end_reading(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_reading(self, elapsed: float) -> None:
        left = _READ_TIME + self._received / _READ_RATE - elapsed
        if left > 0:
            self._timer = self.loop.call_later(left, self._check_reading, elapsed + left)
        else:
            self._abort_reading()

    def _abort_reading(self) -> None:
        if self._timer is not None:
            self._end_reading()
            self.transport.abort()


class _WebServer(uvicorn.Server):
    """Server that drains after a signal and exits with status 0, and ends at once after a second Ctrl-C."""

    def __init__(
        self, config: uvicorn.Config, app: HttpApp, lifeline: int | None, announce: Callable[[], None] | None = None
    ) -> None:
        super().__init__(config)
        self._app = app
        self._lifeline = lifeline
        self._announce = announce
        self._startup = asyncio.Timeout(None)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        shutdown.limit_exit()
        with suppress(RuntimeError):  # there is no event loop before the start and after the end
            asyncio.get_running_loop().call_soon_threadsafe(self.begin_shutdown)
        self.should_exit = True

    def begin_shutdown(self) -> None:
        """Refuse new requests, and limit the time for the startup. Call this method in the event loop."""
        self.should_exit = True
        self._app.begin_shutdown()
        if not self.started:
            seconds = 0 if self.force_exit else shutdown.DRAIN
            with suppress(RuntimeError):  # the startup has failed
                self._startup.reschedule(asyncio.get_running_loop().time() + seconds)
        elif self.force_exit:
            self.lifespan.shutdown_failed = True
            self.lifespan.shutdown_event.set()  # do not wait for the lifespan

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._lifeline is not None:
            asyncio.get_running_loop().add_reader(self._lifeline, self._orphaned)
        try:
            async with self._startup:
                await super().startup(sockets)
        except TimeoutError:
            if not self._startup.expired():
                raise
            self.lifespan.startup_failed = True
            if not self.force_exit:
                log.error("the lifespan did not start within %d s after the shutdown began", shutdown.DRAIN)
        if self.started and self._announce is not None:
            self._announce()  # before this point, a signal would have killed the process

    def _orphaned(self) -> None:
        assert self._lifeline is not None
        asyncio.get_running_loop().remove_reader(self._lifeline)
        self.handle_exit(signal.SIGTERM, None)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        # Neither the thread of a `def` handler, which cannot be stopped, nor a lifespan may delay the exit now.
        if self.force_exit or has_running_calls():
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(0)


class _EmbeddedServer(_WebServer):
    """Server that neither handles signals nor exits the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await uvicorn.Server.serve(self, sockets)


async def serve_embedded(app: HttpApp, listener: socket.socket, announce: Callable[[], None] | None = None) -> None:
    """Serve until canceled, and then wait at most `DRAIN` seconds for requests in flight."""
    server = _EmbeddedServer(make_uvicorn_config(app), app, None, announce)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.begin_shutdown()
        await task
        raise


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket, on any free port for port 0. Several sockets can listen on a `shared` port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Accepted sockets inherit TCP_NODELAY, which asyncio does not set on these sockets.
        # Without the option, each response waits for the client's delayed acknowledgment (40 ms).
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.listen(_BACKLOG)  # a client may connect as soon as the URL is printed
    except OSError:
        listener.close()
        raise
    return listener


def listening_hint(error: OSError) -> str:
    """Return a hint after the server failed to listen on an address."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "set --host to an address of this machine, such as 127.0.0.1"
    if error.errno == errno.EACCES:
        return "use a port above 1023"
    return "use --port 0 for any free port"


def listen_for_workers(host: str, port: int, count: int) -> list[socket.socket]:
    """Return `count` listening sockets on one port, or raise OSError.

    On Linux, each worker has its own socket, and the kernel distributes connections over the sockets. On a shared
    socket, the first worker that wakes up would take all waiting connections. On other systems, all workers share one
    socket, because the kernel does not distribute connections.
    """
    alone = listen(host, port)  # raises OSError if another process uses the address
    if sys.platform != "linux":
        return [alone] * count
    port = alone.getsockname()[1]
    alone.close()
    listeners: list[socket.socket] = []
    try:
        for _ in range(count):
            listeners.append(listen(host, port, shared=True))  # noqa: PERF401 - those before a failure are closed below
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def announcement(name: str, listener: socket.socket, host: str, path: str, more: str = "") -> Callable[[], None]:
    """Return a function that prints the URL on stderr."""
    shown = f"[{host}]" if ":" in host else host
    text = f"serving MCP{more} at http://{shown}:{listener.getsockname()[1]}{path}"
    return partial(print_server_message, name, text)


def print_server_message(name: str, text: str) -> None:
    """Print a message of a server on stderr, as JSON if the server logs JSON."""
    if _logs_json():
        log.info("%s: %s", name, text)
    else:
        sys.stderr.write(f"{name}: {text}\n")
        sys.stderr.flush()


def _logs_json() -> bool:
    return any(getattr(handler.formatter, "one_line", False) for handler in logging.getLogger().handlers)


def serve(
    app: HttpApp, listener: socket.socket, lifeline: int | None = None, announce: Callable[[], None] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM, and then wait at most `DRAIN` seconds for requests in flight.

    `lifeline` is a file descriptor, whose end of file acts like SIGTERM.
    """
    _WebServer(make_uvicorn_config(app), app, lifeline, announce).run(sockets=[listener])


def make_uvicorn_config(app: HttpApp) -> uvicorn.Config:
    """Return the uvicorn configuration of an application."""
    return uvicorn.Config(
        app,
        http=_BoundedProtocol,
        log_level="warning",
        log_config=None if _logs_json() else uvicorn.config.LOGGING_CONFIG,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=shutdown.DRAIN,
        # The value exceeds mcpfactory's own limit plus one read, so that mcpfactory's limit applies first.
        h11_max_incomplete_event_size=1 << 20,
    )


_STARTUP_FAILURE: Final = 3  # exit status of a worker that could not start
_EARLY_DEATH: Final = 1.0  # seconds after the start; an earlier death of a worker counts as a failed start
_MAX_EARLY_DEATHS: Final = 5  # maximum number of consecutive failed starts
_KILL_DELAY: Final = 10  # seconds between the time limits of the workers and the killing of workers


def run_http(server: ServerInterface, host: str, port: int, *, workers: int = 1, **options: Any) -> None:
    """Serve `http://host:port/mcp` until SIGINT or SIGTERM, and then wait for requests in flight.

    The URL is printed on stderr.

    Args:
        server: handles the requests.
        host: address to listen on. For an address that is not loopback, `allowed_hosts` defaults to `*`. Web pages are
            refused unless `allowed_origins` contains their origin.
        port: port to listen on; 0 takes any free port.
        workers: number of processes. Several processes require fork, which Windows does not have.
        options: options of `HttpApp`. `store` may also be a URL, and defaults to MCPFACTORY_STORE.

    Raises:
        OSError: the server cannot listen on the address, or cannot use the store (`StoreError`).
        ValueError: an option is invalid.
    """
    _fill_defaults(options, host)
    if workers < 1 or (workers > 1 and not hasattr(os, "fork")):
        raise ValueError(f"{workers} worker processes are not supported here\nhint: remove workers=")
    if workers > 1 and server.metrics is not None:
        raise ValueError(
            "metrics are not supported with several workers\nhint: use --otel, or start separate processes with --store"
        )
    app = HttpApp(server, **options)
    if options["store"] is not None:
        asyncio.run(_check_store(options["store"]))
    if workers == 1:
        listener = listen(host, port)
        serve(app, listener, announce=announcement(server.name, listener, host, app.path))
        return
    listeners = listen_for_workers(host, port, workers)
    announce = announcement(server.name, listeners[0], host, app.path, f" by {workers} processes")
    folder = tempfile.mkdtemp(prefix="mcpfactory-")  # mkdtemp lets only the owner read the folder
    options["store"] = options["store"] or _read_store(f"sqlite:///{folder}/store.db")
    _run_workers(server.name, lambda: HttpApp(server, **options), listeners, folder, announce)


async def serve_http(server: ServerInterface, host: str, port: int, **options: Any) -> None:
    """Serve `http://host:port/mcp` in the running event loop until canceled. Install no signal handlers.

    Arguments and errors are those of `run_http`, without `workers`.
    """
    _fill_defaults(options, host)
    app = HttpApp(server, **options)
    listener = listen(host, port)
    await serve_embedded(app, listener, announcement(server.name, listener, host, app.path))


def _fill_defaults(options: dict[str, Any], host: str) -> None:
    if host not in LOOPBACK | {"::1"}:
        options.setdefault("allowed_hosts", ("*",))
    store = options.get("store") or os.environ.get("MCPFACTORY_STORE") or None
    options["store"] = _read_store(store) if isinstance(store, str) else store


def _read_store(address: str) -> SharedStore:
    from mcpfactory_runtime.storage import create_store  # noqa: PLC0415 - rarely needed

    return create_store(address)


async def _check_store(store: SharedStore) -> None:
    try:
        await store.open()
    finally:
        await store.aclose()


def _run_workers(
    name: str,
    make_app: Callable[[], HttpApp],
    listeners: Sequence[socket.socket],
    folder: str,
    announce: Callable[[], None],
) -> None:
    """Serve with one worker process per listening socket, until SIGINT or SIGTERM.

    Workers end with SystemExit. If workers cannot start or die repeatedly, the parent exits with status 1.
    """
    parent = _WorkerSupervisor(name, make_app, listeners, announce)
    try:
        failed = parent.run()
    finally:
        if parent.is_this_process:
            shutil.rmtree(folder, ignore_errors=True)
    if failed:
        sys.exit(1)


class _WorkerSupervisor:
    def __init__(
        self,
        name: str,
        make_app: Callable[[], HttpApp],
        listeners: Sequence[socket.socket],
        announce: Callable[[], None],
    ) -> None:
        self._name = name
        self._make_app = make_app
        self._listeners = listeners
        self._pid = os.getpid()
        self._lifeline = os.pipe()  # workers read from this pipe until the parent process dies
        self._workers: dict[int, tuple[int, float]] = {}  # pid → (worker number, start time)
        self._announce = announce
        # The first worker that serves takes the byte out of this pipe, and prints the URL.
        self._unannounced, writing = os.pipe()
        os.write(writing, b"1")
        os.close(writing)
        self._early_deaths = 0
        self._ending = False
        self._failed = False

    @property
    def is_this_process(self) -> bool:
        return os.getpid() == self._pid

    def run(self) -> bool:
        """Supervise workers until all have ended, and return True after a failure."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._kill)
        for worker in range(len(self._listeners)):
            self._start(worker)
        while self._workers:
            pid, status = os.waitpid(-1, 0)
            if pid in self._workers:
                self._replace(*self._workers.pop(pid), pid, os.waitstatus_to_exitcode(status))
        signal.setitimer(signal.ITIMER_REAL, 0)
        return self._failed

    def _start(self, worker: int) -> None:
        pid = os.fork()
        if not pid:
            self._work(worker)
        self._workers[pid] = (worker, time.monotonic())
        if self._ending:  # a signal arrived during the fork
            os.kill(pid, signal.SIGTERM)

    def _work(self, worker: int) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._lifeline[1])
        own = self._listeners[worker]
        for listener in self._listeners:
            if listener is not own:
                listener.close()
        serve(self._make_app(), own, self._lifeline[0], self._announce_once)
        sys.exit(0)

    def _announce_once(self) -> None:
        if os.read(self._unannounced, 1):
            self._announce()

    def _replace(self, worker: int, started: float, pid: int, status: int) -> None:
        if self._ending:
            return
        early = status == _STARTUP_FAILURE or time.monotonic() - started < _EARLY_DEATH
        self._early_deaths = self._early_deaths + 1 if early else 0
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        if self._early_deaths > _MAX_EARLY_DEATHS:
            self._report(f"worker {worker} (process {pid}) {how}; giving up")
            self._failed = True
            self._end(signal.SIGTERM)
        else:
            self._report(f"worker {worker} (process {pid}) {how}; another takes its place")
            self._start(worker)

    def _on_signal(self, number: int, _frame: Any) -> None:
        if not self.is_this_process:  # a new worker still has the parent's signal handlers
            os._exit(0)
        self._end(number if self._ending else signal.SIGTERM)  # a second Ctrl-C ends workers at once

    def _end(self, number: int) -> None:
        if not self._ending:
            self._ending = True
            for listener in self._listeners:
                listener.close()
            signal.setitimer(signal.ITIMER_REAL, shutdown.DRAIN + shutdown.LIFESPAN_END + _KILL_DELAY)
        for pid in self._workers:
            os.kill(pid, number)

    def _kill(self, _number: int, _frame: Any) -> None:
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)

    def _report(self, text: str) -> None:
        print_server_message(self._name, text)
