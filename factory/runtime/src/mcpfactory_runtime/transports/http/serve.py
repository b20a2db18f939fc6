"""An `HttpApp` on its own port, served by uvicorn in this process or in several worker processes.

The one module that loads uvicorn.

With several workers, a parent listens, forks and restarts workers, and serves nothing. It forwards SIGTERM and SIGINT, and
ends after all workers; a dead worker is replaced. Workers end when the parent does, even if it is killed.
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
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from mcpfactory_runtime.protocol.http import LOOPBACK, check_head
from mcpfactory_runtime.server.threads import busy
from mcpfactory_runtime.transports.http.app import HttpApp

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.base import SharedStore

log = logging.getLogger(__name__)

DRAIN: Final = 10  # seconds for requests in flight when the process gets a signal to end
_BACKLOG: Final = 2048
_READ_TIME: Final = 30.0  # seconds in which a request must have arrived …
_READ_RATE: Final = 16_384  # … and bytes that give it a second more
_LAST_READ: Final = 2.0  # seconds for requests that are still arriving when the process gets a signal to end


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # - chosen by uvicorn: by httptools where that is installed
    """Connection whose requests arrive in bounded time, one at a time, with URLs and headers of bounded size.

    A request that is incomplete after `_READ_TIME` seconds, plus the time that its size needs at `_READ_RATE`, ends
    the connection. Data that follows a request before its response is not read; the connection ends with the
    response. Incomplete input is bounded here, including trailers, because httptools has no limit; `HttpApp` checks
    complete input.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._surplus = False
        self._received = 0
        self._incomplete = 0  # bytes since httptools reported a whole head, some of a body, or the end of a request
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
        """Look at a further request in the same bytes; httptools asks this and what follows."""
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
            self.loop.call_later(_LAST_READ, self._abort_reading)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _measure_incomplete(self) -> tuple[int, int]:
        """Return the bytes of the URL, and of all that arrived and that the parser has not reported as complete."""
        conn = getattr(self, "conn", None)
        if conn is None:
            return len(getattr(self, "url", b"")), self._incomplete
        held = conn.trailing_data[0]  # by h11
        in_body = self.cycle is not None and not self.cycle.response_complete
        return 0 if in_body else len(held.partition(b"\n")[0]), len(held)

    def _refuse_head(self) -> bool:
        """Refuse an incomplete request whose URL or headers are too large; return whether it was."""
        refused = None if self._surplus else check_head(*self._measure_incomplete())
        if refused is None:
            return False
        self._surplus = True
        head = f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\ncontent-type: text/plain\r\n"
        size = f"content-length: {len(refused.text)}\r\nconnection: close\r\n\r\n"
        self.transport.write(f"{head}{size}{refused.text}".encode())
        # Closing at once would reset the connection if more arrives, and the client could not read the answer.
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
    """Drains and ends with status 0 on a signal; a second Ctrl-C does not wait."""

    def __init__(self, config: uvicorn.Config, app: HttpApp, lifeline: int | None) -> None:
        super().__init__(config)
        self._app = app
        self._lifeline = lifeline

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        with suppress(RuntimeError):  # the signal came before the loop ran or after it ended
            asyncio.get_running_loop().call_soon_threadsafe(self._app.begin_shutdown)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._lifeline is not None:
            asyncio.get_running_loop().add_reader(self._lifeline, self._orphaned)
        await super().startup(sockets)

    def _orphaned(self) -> None:
        """End, because the parent process has gone."""
        assert self._lifeline is not None
        asyncio.get_running_loop().remove_reader(self._lifeline)
        self.handle_exit(signal.SIGTERM, None)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        if busy():  # a `def` handler outlived the drain: its thread cannot be stopped, and would be waited for
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(0)


class _EmbeddedServer(_WebServer):
    """One that leaves signals, and the end of the process, to the program around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await uvicorn.Server.serve(self, sockets)


async def serve_embedded(app: HttpApp, listener: socket.socket) -> None:
    """Serve until it is cancelled, then let requests in flight end, for `DRAIN` seconds at most."""
    server = _EmbeddedServer(web_config(app), app, None)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.handle_exit(signal.SIGTERM, None)
        await task
        raise


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket; port 0 takes any free one, and a `shared` port may be listened on again.

    Raises:
        OSError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Accepted sockets inherit it. Without it each response waits for the client's delayed acknowledgement (40 ms):
        # asyncio sets it only on sockets whose protocol number says TCP, which those of a given listener do not.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.listen(_BACKLOG)  # now: who reads the URL may connect at once
    except OSError:
        listener.close()
        raise
    return listener


def listening_hint(error: OSError) -> str:
    """Return a hint for an address that the server cannot listen on."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "--host takes an address of this machine, such as 127.0.0.1"
    if error.errno == errno.EACCES:
        return "a port above 1023 needs no special rights"
    return "--port 0 takes a free one"


def listen_each(host: str, port: int, count: int) -> list[socket.socket]:
    """Return listening sockets for so many workers, all on one port.

    On Linux each has its own, and the kernel spreads connections over them: from one socket the first worker that wakes
    takes all connections that wait, and keeps them. Elsewhere the kernel does not spread, so all share one.

    Raises:
        OSError: the address cannot be listened on.
    """
    alone = listen(host, port)  # no other process may be listening there
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


def print_url(name: str, listener: socket.socket, host: str, path: str, more: str = "") -> None:
    """Print the URL on stderr."""
    shown = f"[{host}]" if ":" in host else host
    print_message(name, f"serving MCP{more} at http://{shown}:{listener.getsockname()[1]}{path}")


def print_message(name: str, text: str) -> None:
    """Print a message of a server on stderr, as JSON if its log is JSON."""
    if _logs_json():
        log.info("%s: %s", name, text)
    else:
        sys.stderr.write(f"{name}: {text}\n")
        sys.stderr.flush()


def _logs_json() -> bool:
    return any(getattr(handler.formatter, "one_line", False) for handler in logging.getLogger().handlers)


def serve(app: HttpApp, listener: socket.socket, lifeline: int | None = None) -> None:
    """Serve until SIGINT or SIGTERM, then let requests in flight end, for `DRAIN` seconds at most.

    `lifeline` is a descriptor whose end of file also counts as a signal.
    """
    _WebServer(web_config(app), app, lifeline).run(sockets=[listener])


def web_config(app: HttpApp) -> uvicorn.Config:
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
        timeout_graceful_shutdown=DRAIN,
        h11_max_incomplete_event_size=1 << 20,  # above our own limit and one read, so that ours chooses the status
    )


_STARTUP_FAILURE: Final = 3  # exit status of a worker that could not start
_EARLY: Final = 1.0  # seconds; a worker that dies earlier did not do well, nor one that could not start
_MAX_EARLY_DEATHS: Final = 5  # such deaths in a row that are tolerated
_KILL_DELAY: Final = 5  # seconds beyond the drain, after which workers are killed


def run_http(server: ServerInterface, host: str, port: int, *, workers: int = 1, **options: Any) -> None:
    """Serve `http://host:port/mcp` until SIGINT or SIGTERM, then let requests in flight end.

    Args:
        server: who answers.
        host: address to listen on; anything but this machine needs `allowed_hosts`, else every host name is served
            and web pages are refused unless `allowed_origins` names them.
        port: 0 takes any free one; the URL is printed on stderr.
        workers: processes that serve; more than one needs fork, so not on Windows.
        options: those of `HttpApp`; `store` may be an address, and is MCPFACTORY_STORE by default.

    Raises:
        OSError: the address cannot be listened on, or the store cannot be used (`StoreError`).
        ValueError: an option is wrong.
    """
    _complete(options, host)
    if workers < 1 or (workers > 1 and not hasattr(os, "fork")):
        raise ValueError(f"{workers} worker processes are not supported here\nhint: remove workers=")
    if workers > 1 and server.metrics is not None:
        raise ValueError(
            "metrics are not supported with several workers\nhint: use --otel, or start separate processes with --store"
        )
    app = HttpApp(server, **options)
    if options["store"] is not None:
        asyncio.run(_try(options["store"]))
    if workers == 1:
        listener = listen(host, port)
        print_url(server.name, listener, host, app.path)
        serve(app, listener)
        return
    listeners = listen_each(host, port, workers)
    print_url(server.name, listeners[0], host, app.path, f" by {workers} processes")
    folder = tempfile.mkdtemp(prefix="mcpfactory-")  # for its owner only
    options["store"] = options["store"] or _read_store(f"sqlite:///{folder}/store.db")
    _run_workers(server.name, lambda: HttpApp(server, **options), listeners, folder)


async def serve_http(server: ServerInterface, host: str, port: int, **options: Any) -> None:
    """Serve `http://host:port/mcp` in the running event loop until it is cancelled; signals are left to the program.

    Args and Raises: as `run_http`, without `workers`.
    """
    _complete(options, host)
    app = HttpApp(server, **options)
    listener = listen(host, port)
    print_url(server.name, listener, host, app.path)
    await serve_embedded(app, listener)


def _complete(options: dict[str, Any], host: str) -> None:
    """Add what follows from the address and the environment."""
    if host not in LOOPBACK | {"::1"}:
        options.setdefault("allowed_hosts", ("*",))
    store = options.get("store") or os.environ.get("MCPFACTORY_STORE") or None
    options["store"] = _read_store(store) if isinstance(store, str) else store


def _read_store(address: str) -> SharedStore:
    from mcpfactory_runtime.storage import create_store  # noqa: PLC0415 - for those who share only

    return create_store(address)


async def _try(store: SharedStore) -> None:
    """Find out before anything is served whether a store can be used."""
    try:
        await store.open()
    finally:
        await store.aclose()


def _run_workers(name: str, make_app: Callable[[], HttpApp], listeners: Sequence[socket.socket], folder: str) -> None:
    """Serve by as many processes as there are listening sockets until SIGINT or SIGTERM. Workers leave by SystemExit.

    Args:
        name: of the server, for messages.
        make_app: makes the application, in each worker.
        listeners: a listening socket for each worker; they may be the same.
        folder: is removed at the end.

    Raises:
        SystemExit: with status 1 when workers cannot start, or die again and again.
    """
    parent = _WorkerSupervisor(name, make_app, listeners)
    try:
        failed = parent.run()
    finally:
        if parent.is_this_process:
            shutil.rmtree(folder, ignore_errors=True)
    if failed:
        sys.exit(1)


class _WorkerSupervisor:
    """Starts workers, replaces them, ends them."""

    def __init__(self, name: str, make_app: Callable[[], HttpApp], listeners: Sequence[socket.socket]) -> None:
        self._name = name
        self._make_app = make_app
        self._listeners = listeners
        self._pid = os.getpid()
        self._lifeline = os.pipe()  # workers read from it: its end means that the parent has gone
        self._workers: dict[int, tuple[int, float]] = {}  # pid → number, start
        self._early_deaths = 0
        self._ending = False
        self._failed = False

    @property
    def is_this_process(self) -> bool:
        """False in workers."""
        return os.getpid() == self._pid

    def run(self) -> bool:
        """Serve until a signal; return whether it ended for a failure."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._kill)
        for worker in range(len(self._listeners)):
            self._start(worker)
        while self._workers:
            pid, status = os.waitpid(-1, 0)
            if pid in self._workers:
                self._replace(*self._workers.pop(pid), pid, os.waitstatus_to_exitcode(status))
        signal.alarm(0)
        return self._failed

    def _start(self, worker: int) -> None:
        pid = os.fork()
        if not pid:
            self._work(worker)
        self._workers[pid] = (worker, time.monotonic())
        if self._ending:  # the signal came while forking
            os.kill(pid, signal.SIGTERM)

    def _work(self, worker: int) -> None:
        """Be a worker; does not return."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._lifeline[1])
        own = self._listeners[worker]
        for listener in self._listeners:
            if listener is not own:
                listener.close()
        serve(self._make_app(), own, self._lifeline[0])
        sys.exit(0)

    def _replace(self, worker: int, started: float, pid: int, status: int) -> None:
        if self._ending:
            return
        early = status == _STARTUP_FAILURE or time.monotonic() - started < _EARLY
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
        if not self.is_this_process:  # a worker that was forked a moment ago
            os._exit(0)
        self._end(number if self._ending else signal.SIGTERM)  # a second interrupt does not wait

    def _end(self, number: int) -> None:
        if not self._ending:
            self._ending = True
            for listener in self._listeners:
                listener.close()
            signal.alarm(DRAIN + _KILL_DELAY)
        for pid in self._workers:
            os.kill(pid, number)

    def _kill(self, _number: int, _frame: Any) -> None:
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)

    def _report(self, text: str) -> None:
        print_message(self._name, text)
