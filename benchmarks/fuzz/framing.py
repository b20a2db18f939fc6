"""Framing: however bytes are cut, the same lines and the same events come out.

The first byte is the size allowed, the second how many bytes come at once; the rest is the stream.
"""

from __future__ import annotations

from mcpfactory_runtime.client.sse import SseEvent, SseReader
from mcpfactory_runtime.protocol.framing import OVERSIZE, LineReader, sse_comment, sse_event, sse_retry

__all__ = ["SEEDS", "WORDS", "one"]

SEEDS = (
    b'\x20\x03{"a":1}\n\n {"b":2}\r\n' + b"x" * 40 + b"\nrest",
    b"\x05\x01\n \n\t\nabcdef\nabc\nabcdefgh",
    b"\xff\x07id: 1\r\nevent: endpoint\ndata: /x\r\rretry: 50\n: c\n\ndata\ndata: y\n\n",
    b"\xff\x02\xef\xbb\xbfdata: \xc3\xa9\xff\n\nid: a\x00b\ndata:\n\n",
)
WORDS = ("data: ", "id: ", "event: ", "retry: ", "\r\n", "\n\n", "\r", ": ", "﻿")


def one(data: bytes) -> None:
    """Read the stream in pieces and by a plain account of the rules; they must agree."""
    size, step, stream = (data[0] if data else 0), (data[1] if len(data) > 1 else 0) or 1, data[2:]
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    reader = LineReader(size)
    found = [line for piece in pieces for line in reader.feed(piece)]
    *lines, rest = stream.split(b"\n")
    wanted = [OVERSIZE if len(line) > size else line for line in lines if len(line) > size or line.strip()]
    if len(rest) > size:
        wanted, rest = [*wanted, OVERSIZE], b""
    assert found == wanted, f"{found} instead of {wanted}"
    assert reader.rest() == (rest if rest.strip() else b""), "another rest"
    cut, whole = SseReader(), SseReader()
    events = [event for piece in pieces for event in cut.feed(piece)]
    assert events == list(whole.feed(stream)), "the cuts changed the events"
    _round_trip(stream.replace(b"\n", b"").replace(b"\r", b""), size)


def _round_trip(line: bytes, number: int) -> None:
    """What we write, our client reads."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return
    sent = sse_comment("c") + sse_retry(number) + sse_event(line, event_id=str(number), event="message")
    assert list(SseReader().feed(sent + b":")) == [SseEvent("", retry=number), SseEvent(text, id=str(number))]
