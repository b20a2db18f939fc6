from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol.jsonrpc import MISSING, LineReader, OversizeMessage, sse_comment, sse_event, sse_retry
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
    for pieces in ((b"x" * 11, b"x" * 50, b"x\nok\n"), (b"x" * 11 + b"\nok\n",)):
        long, short = read(*pieces, max_size=10)
        assert isinstance(long, OversizeMessage)
        assert long.request_id is MISSING
        assert short == b"ok"
    assert read(b"x" * 10 + b"\n", max_size=10) == [b"x" * 10]


X = "x" * 5000


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (f'{{"jsonrpc":"2.0","id":7,"method":"a","params":{{"x":"{X}","id":8}}}}', 7),
        (f'{{ "id": "a,\\"b", "jsonrpc": "2.0", "method": "a", "params": "{X}"}}', 'a,"b'),
        (f'{{"method":"a","params":{{"x":"{X}"}},"jsonrpc":"2.0","id":-7}}', -7),
        (f'{{"method":"a","params":{{"x":"{X}"}},"id":"b","jsonrpc":"2.0"}}', "b"),
        (f'{{"method":"a","jsonrpc":"2.0","params":{{"x":"{X}","id":7}}}}', MISSING),
        (f'{{"method":"a","jsonrpc":"2.0","params":"{X}\\"id\\":7}}"}}', MISSING),
        (f'{{"jsonrpc":"2.0","id":7,"result":{{"x":"{X}","method":"a"}}}}', MISSING),
        (f'{{"jsonrpc":"2.0","id":007,"method":"a","params":"{X}"}}', MISSING),
        (f'{{"result":{{"x":"{X}"}},"jsonrpc":"2.0","id":7}}', MISSING),
        (f'{{"jsonrpc":"2.0","method":"a","params":{{"x":"{X}"}}}}', MISSING),
    ],
)
@pytest.mark.parametrize("size", [1, 700, 10_000])
def test_the_id_of_a_request_that_is_too_long_is_read(line: str, request_id: object, size: int) -> None:
    data = line.encode() + b"\n"
    (found,) = read(*(data[start : start + size] for start in range(0, len(data), size)), max_size=2000)
    assert isinstance(found, OversizeMessage)
    assert found.request_id == request_id


def test_events_have_ids_types_and_ends() -> None:
    assert sse_event(b"{}") == b"data: {}\n\n"
    assert sse_event(b"", event_id="3-0") == b"id: 3-0\ndata: \n\n"
    assert sse_event(b"/m", event="endpoint") == b"event: endpoint\ndata: /m\n\n"
    assert sse_retry(500) == b"retry: 500\n\n"
    assert sse_comment("hi") == b": hi\n\n"
