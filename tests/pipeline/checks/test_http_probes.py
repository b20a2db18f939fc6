"""What is read of a server's answer over HTTP ends in time, whatever the server sends."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from urllib.parse import urlsplit

import pytest

from mcpfactory_pipeline.checks.evidence import Evidence, HttpAnswer
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.transport import http_probes
from mcpfactory_pipeline.checks.transport.http import connected
from mcpfactory_pipeline.checks.transport.http_probes import _body, _events, probe_http
from tests.subtest_table import parametrize_subtests


class Trickle:
    """A response that has more and more."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read1(self, _: int) -> bytes:
        return next(self._pieces, b"")


ANSWER = b'data: {"result": 1}\n'


def test_of_a_stream_of_keepalives_a_bounded_part_is_read() -> None:
    assert _events(Trickle(repeat(b": still here\n" * 10_000)))[0] == b""  # type: ignore[arg-type]
    assert _events(Trickle(iter([ANSWER[:-1]])))[0] == ANSWER[5:-1]  # type: ignore[arg-type]  # the end of the stream ends the line
    assert _events(Trickle(chain([b": one\nda"], [ANSWER[2:] + b"\ndata: more"])))[0] == ANSWER[5:-1]  # type: ignore[arg-type]


def test_the_data_of_an_event_may_have_several_lines() -> None:
    event = b': hello\r\n\r\nretry: 3000\r\n\r\nid: 1\r\ndata:{\r\ndata: "result": 1\r\ndata:}\r\n\r\n'
    text, stream = _events(Trickle(iter([event[:40], event[40:]])))  # type: ignore[arg-type]
    assert json.loads(text) == {"result": 1}
    assert stream.ids


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server that sends a byte now and then behind `head`, without end: each byte starts the limit of a socket anew."""
    left = threading.Event()

    def drip(peer: socket.socket) -> None:
        with peer:
            try:
                peer.sendall(head)
                while not left.wait(0.01):
                    peer.sendall(b"x")
            except OSError:
                pass

    def serve(listener: socket.socket) -> None:
        while not left.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            left.set()


LINE = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("head", [b"", LINE + b"X-Zoo: ", LINE + b"Content-Length: 1000000\r\n\r\n"])
def test_a_server_that_drips_is_left_in_time_before_and_in_its_headers_and_in_its_body(head: bytes) -> None:
    with dripping(head) as url, connected(urlsplit(url), 0.1) as connection:
        connection.request("GET", "/mcp")
        with suppress(OSError, http.client.HTTPException):
            _body(connection.getresponse())


def test_of_a_server_that_never_answers_three_questions_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def refuse(url: object, seconds: float) -> object:
        asked.append((url, seconds))
        raise TimeoutError

    monkeypatch.setattr(http_probes, "connected", refuse)
    assert probe_http("http://127.0.0.1:1/mcp", frozenset({"modern"}), "9999-12-31") == {}
    assert len(asked) == 3


def answer(probe: str, status: int) -> HttpAnswer:
    return HttpAnswer(probe, "a request", "POST", {}, {}, status, {"content-type": "application/json"}, {})


@parametrize_subtests(
    "origin, rebound, found",
    [
        (403, 403, []),
        (421, 421, [(1, False)]),  # refused with another status
        (200, 200, [(5, True)]),  # any page may call it
        (200, None, [(5, True)]),
        (200, 421, [(3, False)]),  # Host is looked at: DNS rebinding does not get there
    ],
)
def test_a_foreign_origin_weighs_less_where_a_foreign_host_is_refused(
    origin: int, rebound: int | None, found: list[tuple[int, bool]]
) -> None:
    seen = {"origin": answer("origin", origin)}
    seen |= {} if rebound is None else {"dns-rebinding": answer("dns-rebinding", rebound)}
    evidence = Evidence(transport="http", lifecycles=frozenset({"legacy"}), http=seen)  # type: ignore[arg-type]
    check: Callable[..., object] = next(rule.check for rule in RULES if rule.id == "http.origin")
    outcome = check(evidence)
    assert [(fault.lesser or 5, fault.lesser is None) for fault in outcome.faults] == found  # type: ignore[attr-defined]
