"""Server-sent events: bytes in, events out (HTML §9.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SseEvent", "SseReader"]


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. `id` is the last one seen; `retry` is in milliseconds, None when the event does not say."""

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


class SseReader:
    """Feed it bytes as they come. Events without data that have an id or a retry are reported, with data ""."""

    def __init__(self) -> None:
        self._buffer = b""
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._noted = False

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """The events that `data` completes."""
        self._buffer += data
        # A carriage return at the end may be half of a line end.
        held = b"\r" if self._buffer.endswith(b"\r") else b""
        text = self._buffer[: len(self._buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._buffer = rest + held
        for line in lines:
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id, self._noted = value, True
        elif name == "retry" and value.isascii() and value.isdecimal():
            self._retry, self._noted = int(value), True
        return None

    def _complete(self) -> SseEvent | None:
        event = None
        if self._data or self._noted:
            event = SseEvent("\n".join(self._data), self._event or "message", self._id, self._retry)
        self._data, self._event, self._retry, self._noted = [], "", None, False
        return event
