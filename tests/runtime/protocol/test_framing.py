from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol.jsonrpc import OVERSIZE, LineReader, sse_comment, sse_event, sse_retry
from tests.runtime.requirements import requirement


def read(*pieces: bytes, max_size: int = 1000) -> list[object]:
    reader = LineReader(max_size)
    return [line for piece in pieces for line in reader.feed(piece)]


@requirement("stdio.wrong-line")
@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda line: line.replace(b"\n", b".")), max_size=8), st.data())
def test_any_cut_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*pieces) == [line for line in lines if not line.isspace()]


def test_a_line_that_is_too_long_is_reported_once_and_the_next_one_is_read() -> None:
    assert read(b"x" * 11, b"x" * 50, b"x\nok\n", max_size=10) == [OVERSIZE, b"ok"]
    assert read(b"x" * 11 + b"\nok\n", max_size=10) == [OVERSIZE, b"ok"]
    assert read(b"x" * 10 + b"\n", max_size=10) == [b"x" * 10]


def test_events_have_ids_types_and_ends() -> None:
    assert sse_event(b"{}") == b"data: {}\n\n"
    assert sse_event(b"", event_id="3-0") == b"id: 3-0\ndata: \n\n"
    assert sse_event(b"/m", event="endpoint") == b"event: endpoint\ndata: /m\n\n"
    assert sse_retry(500) == b"retry: 500\n\n"
    assert sse_comment("hi") == b": hi\n\n"
