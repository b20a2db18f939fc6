"""An `HttpApp` on its own port, served by this process or by several worker processes. Loads the web server.

With several, a parent listens, forks and restarts workers, and serves nothing. It forwards SIGTERM and SIGINT, and
ends after all workers; a dead worker is replaced. Workers end when the parent does, even if it is killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol.http import LOOPBACK
from mcpfactory_runtime.transports.http.app import HttpApp
from mcpfactory_runtime.transports.http.serve import DRAIN, listen, listen_each, print_url, serve, serve_embedded, tell

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host
    from mcpfactory_runtime.store.base import SharedStore

_STARTUP_FAILURE: Final = 3  # exit status of a worker that could not start
_EARLY: Final = 1.0  # seconds; a worker that dies earlier did not do well, nor one that could not start
_MAX_EARLY_DEATHS: Final = 5  # such deaths in a row that are tolerated
_KILL_DELAY: Final = 5  # seconds beyond the drain, after which workers are killed


def run_http(server: Host, host: str, port: int, *, workers: int = 1, **options: Any) -> None:
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
        raise ValueError(f"{workers} worker processes are not possible here\nhint: leave workers= out")
    if workers > 1 and server.metrics is not None:
        raise ValueError("metrics are those of one process\nhint: --otel, or processes of their own with --store")
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


async def serve_http(server: Host, host: str, port: int, **options: Any) -> None:
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
    from mcpfactory_runtime.store.address import create_store  # noqa: PLC0415 - for those who share only

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
    parent = _Parent(name, make_app, listeners)
    try:
        failed = parent.run()
    finally:
        if parent.is_this_process:
            shutil.rmtree(folder, ignore_errors=True)
    if failed:
        sys.exit(1)


class _Parent:
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
        tell(self._name, text)
