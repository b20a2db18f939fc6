"""Why a connection failed is told in the system's words, and never as the bare name of a library's error."""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mcpfactory_runtime.client import ConnectionLostError, connect_http
from mcpfactory_runtime.unreachable import system_error, why_unreachable
from tests.rows import rows


def reset(taken: socket.socket) -> None:
    taken.recv(65_536)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the close is then a reset


def hang_up(taken: socket.socket) -> None:
    taken.recv(65_536)


def speak_plainly(taken: socket.socket) -> None:
    taken.recv(65_536)
    taken.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@contextmanager
def server(meet: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port on loopback where everyone who comes is met so, and then left; with that port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    taken, _ = listening.accept()
                except OSError:
                    return
                with taken:
                    meet(taken)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def told(url: str) -> str:
    with pytest.raises(ConnectionLostError) as failed:
        async with connect_http(url, timeout=10):
            pass
    return str(failed.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("scheme", "meet", "why"),
    [
        ("http", reset, "connection reset by peer"),
        ("http", hang_up, "Server disconnected without sending a response."),
        ("https", speak_plainly, "the TLS handshake failed"),
    ],
)
async def test_a_client_is_told_what_happened_to_its_connection(
    scheme: str, meet: Callable[[socket.socket], None], why: str
) -> None:
    with server(meet) as port:
        assert await told(f"{scheme}://127.0.0.1:{port}/mcp") == f"no connection to 127.0.0.1:{port}: {why}"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/mcp", "127.0.0.1:9: connection refused"),
        ("http://localhost:9/mcp", "localhost:9: connection refused"),  # where both of its addresses are tried
        ("http://nothing.invalid:1/mcp", "nothing.invalid:1: the name is unknown"),
    ],
)
async def test_a_client_is_told_why_there_is_no_connection(url: str, why: str) -> None:
    assert await told(url) == f"no connection to {why}"


def wrapped(error: BaseException) -> RuntimeError:
    """An error of a library, without words, that the error led to."""
    outer = RuntimeError()
    outer.__cause__ = error
    return outer


@rows("error, why", [
        (wrapped(ConnectionResetError(errno.ECONNRESET, "gone")), "connection reset by peer"),
        (wrapped(wrapped(OSError(errno.EMFILE, "too many"))), "too many open files"),
        (wrapped(ExceptionGroup("all", [OSError(errno.ECONNREFUSED, "no"), OSError(errno.ENETUNREACH, "no")])), "connection refused"),
        (wrapped(ssl.SSLEOFError(8, "eof")), "the TLS handshake failed"),
        (wrapped(ValueError("told")), "RuntimeError"),
        (ValueError("no such header"), "no such header"),
        (TimeoutError(), "TimeoutError"),
    ])  # fmt: skip
def test_the_system_says_why_else_the_error_does_else_its_name(error: BaseException, why: str) -> None:
    assert why_unreachable(error) == why


def test_an_error_that_no_system_made_has_none_behind_it() -> None:
    assert system_error(wrapped(ValueError("told"))) is None
