"""What is read of a server's answer over HTTP ends in time, whatever the server sends."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from itertools import chain, count, repeat
from typing import Any

from mcpfactory_pipeline.checks.wire.http_probes import _body, _first_event


class Trickle:
    """A response that has more and more."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read1(self, _: int) -> bytes:
        return next(self._pieces, b"")


def clock() -> Any:
    """A clock that goes on by a second whenever somebody looks."""
    return partial(next, count())


ANSWER = b'data: {"result": 1}\n'


def test_a_stream_of_keepalives_is_left_in_time() -> None:
    assert _first_event(Trickle(repeat(b": still here\n")), clock()) == b""  # type: ignore[arg-type]
    assert _first_event(Trickle(iter([ANSWER[:-1]])), clock()) == ANSWER[5:-1]  # the end of the stream ends the line
    assert _first_event(Trickle(repeat(b":")), clock()) == b""  # type: ignore[arg-type]
    assert _first_event(Trickle(chain([b": one\nda"], [ANSWER[2:] + b"\ndata: more"])), clock()) == ANSWER[5:-1]  # type: ignore[arg-type]


def test_a_body_that_comes_a_byte_at_a_time_is_left_in_time() -> None:
    assert len(_body(Trickle(repeat(b"x")), clock())) < 10  # type: ignore[arg-type]
    whole = io.BytesIO(b'{"jsonrpc": "2.0"}')
    assert _body(whole, clock()) == b'{"jsonrpc": "2.0"}'  # type: ignore[arg-type]
