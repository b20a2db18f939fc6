"""Request lines and headers have a bound, whichever parser reads them; bodies and earlier requests do not count."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.transports.blocking_http_server import Web, serving
from tests.timeouts import TIMEOUT

PARSERS = {
    "httptools": "from tests.runtime.transports.blocking_server import server; server.run()",
    "h11": "import sys; sys.modules['httptools'] = None; from tests.runtime.transports.blocking_server import server; server.run()",
}
HOST = b"Host: 127.0.0.1\r\n"
HEAD = b"GET /health HTTP/1.1\r\n" + HOST
LONG = b"x" * 70_000
CHUNKED = b"POST /mcp HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=PARSERS)
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, command=[sys.executable, "-c", PARSERS[request.param]]) as running:
        yield running


def statuses(web: Web, *parts: bytes) -> list[int]:
    """The statuses of all answers on one connection; each part is sent when the one before it was answered."""
    found: list[int] = []
    with socket.create_connection(("127.0.0.1", web.port or 0), TIMEOUT) as connection, connection.makefile("rb") as f:
        for part in parts:
            connection.sendall(part)
            found.append(int(f.readline().split()[1]))
            head = b"".join(iter(f.readline, b"\r\n"))
            size = re.search(rb"content-length: (\d+)", head)
            f.read(int(size[1]) if size else 0)
        if b"connection: close" in head:
            assert f.read() == b""
            found.append(0)
    return found


def test_heads_beyond_the_bound_are_refused_and_the_connection_closed(web: Web) -> None:
    many = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(70))
    for sent, status in (
        (b"GET /" + LONG, 414),
        (b"GET /" + LONG + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (HEAD + b"X: " + LONG, 431),
        (HEAD + b"X: " + LONG + b"\r\n\r\n", 431),
        (HEAD + many, 431),
        (HEAD + b"a:b\r\n" * 100 + b"\r\n", 431),
        (CHUNKED + b"1\r\n{\r\n0\r\nX: " + LONG * 6, 431),  # more than is read at once
    ):
        assert statuses(web, sent) == [status, 0], sent[:40]
        assert statuses(web, HEAD + b"\r\n", sent) == [200, status, 0], sent[:40]
