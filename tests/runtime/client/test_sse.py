"""Server-sent events as HTML §9.2.6 parses them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.client.http_messages import SseEvent, SseReader
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "text, expected",
    [
        ("data: a\n\n", [SseEvent("a")]),
        ("data:a\r\ndata:  b\r\n\r\n", [SseEvent("a\n b")]),
        ("data: a\r\r", [SseEvent("a")]),
        (": comment\n\ndata: a\n\n", [SseEvent("a")]),
        ("event: endpoint\ndata: /x\n\ndata: b\n\n", [SseEvent("/x", "endpoint"), SseEvent("b")]),
        ("id: 1\nretry: 50\ndata:\n\ndata: x\n\n", [SseEvent("", id="1", retry=50), SseEvent("x", id="1")]),
        ("id: a\0b\nretry: soon\nunknown: 1\ndata\n\n", [SseEvent("")]),
        ("data: cut off", []),
        ("\ufeffdata: a\n\n\ufeffdata: b\n\n", [SseEvent("a")]),
        (f"retry: {'1' * 5000}\ndata: a\n\n", [SseEvent("a")]),
    ],
)
def test_events_are_read(text: str, expected: list[SseEvent]) -> None:
    # The last line end may still be half of one when it is a carriage return: a byte more settles it.
    assert list(SseReader().feed(text.encode() + b":")) == expected


@given(st.lists(st.integers(0, 60)))
def test_it_does_not_matter_how_the_bytes_are_cut(cuts: list[int]) -> None:
    data = "id: 1\r\ndata: é\r\n\r\nevent: x\ndata: 1\ndata: 2\n\n: c\n\ndata: end\r\n\r\n:".encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = SseReader()
    pieces = [data[one:other] for one, other in pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == list(SseReader().feed(data))
