"""The web server around an `HttpApp`: a listening socket, signals, and an end that lets requests finish.

The one module that loads uvicorn; `run_http` loads it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from mcpfactory_runtime.protocol.http import check_head
from mcpfactory_runtime.server.threads import busy

if TYPE_CHECKING:
    from mcpfactory_runtime.transports.http.app import HttpApp

log = logging.getLogger("mcpfactory_runtime")

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
        """Return True if a complete request was received and its response is pending."""
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
    tell(name, f"serving MCP{more} at http://{shown}:{listener.getsockname()[1]}{path}")


def tell(name: str, text: str) -> None:
    """Print a message of a server on stderr, as a line of the log where that is JSON."""
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
