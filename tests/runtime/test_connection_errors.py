"""Why a connection failed is told in the system's words, and never as the bare name of a library's error."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mcpfactory_runtime.client import ConnectionLostError, connect_http


def reset(taken: socket.socket) -> None:
    taken.recv(65_536)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the close is then a reset


def hang_up(taken: socket.socket) -> None:
    while not taken.recv(65_536).endswith(b"}"):  # a body that is left unread would reset the connection
        pass


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
