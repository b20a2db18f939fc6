"""How messages are laid into a byte stream: one per line, or as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["DEFAULT_MAX_SIZE", "OVERSIZE", "LineReader", "Oversize", "sse_comment", "sse_event", "sse_retry"]

DEFAULT_MAX_SIZE: Final = 64 * 1024 * 1024
"""Bytes of one message; larger ones are refused without being kept."""


class Oversize:
    """A message that was longer than allowed; its bytes are gone."""

    def __repr__(self) -> str:
        return "OVERSIZE"


OVERSIZE: Final = Oversize()


class LineReader:
    """Bytes in, lines out (basic/transports, stdio: one message a line, no line breaks inside).

    A line above `max_size` bytes is reported as OVERSIZE once, as soon as that is known, and skipped to its end.
    Blank lines are dropped. A carriage return before the line break is white space to JSON and stays.
    """

    __slots__ = ("_buffer", "_held", "_max_size", "_skipping")

    def __init__(self, max_size: int = DEFAULT_MAX_SIZE) -> None:
        self._buffer: list[bytes] = []
        self._held = 0
        self._max_size = max_size
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | Oversize]:
        """Yield the lines that `data` completes, in order. Consume all of them before feeding again."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            line = self._take(piece)
            if self._skipping:
                self._skipping = False
            elif len(line) > self._max_size:
                yield OVERSIZE
            elif line and not line.isspace():
                yield line
        if rest and not self._skipping:
            self._buffer.append(rest)
            self._held += len(rest)
            if self._held > self._max_size:
                self._take(b"")
                self._skipping = True
                yield OVERSIZE

    def rest(self) -> bytes:
        """Return what came after the last line break; at the end of the stream it is a message like the others."""
        line = self._take(b"")
        return b"" if self._skipping or line.isspace() else line

    def _take(self, piece: bytes) -> bytes:
        if not self._buffer:
            return piece
        self._buffer.append(piece)
        line = b"".join(self._buffer)
        self._buffer.clear()
        self._held = 0
        return line


def sse_event(data: bytes, *, event_id: str | None = None, event: str | None = None) -> bytes:
    """One server-sent event (HTML §9.2). `data` has no line breaks, which encoded JSON never has.

    Args:
        data: the message; b"" makes the priming event that only carries an id.
        event_id: what a client gives as `Last-Event-ID` to continue after this event.
        event: the event's type; without one it is `message`.
    """
    head = "" if event is None else f"event: {event}\n"
    if event_id is not None:
        head += f"id: {event_id}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def sse_retry(milliseconds: int) -> bytes:
    """Tell the client how long to wait before it reconnects."""
    return b"retry: %d\n\n" % milliseconds


def sse_comment(text: str = "") -> bytes:
    """Return a line that clients ignore: keeps proxies from closing a quiet stream."""
    return f": {text}\n\n".encode()
