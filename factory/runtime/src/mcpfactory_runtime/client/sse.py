"""Server-sent events: bytes in, events out (HTML §9.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["SseEvent", "SseReader"]

_DIGITS: Final = 16  # a wait of more digits is nonsense, and Python refuses to read very many


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
        self._pieces: list[bytes] = []  # of a line whose end has not come yet
        self._held = b""
        self._encoding = "utf-8-sig"  # of the first line: a mark at the beginning of the stream is no part of it
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._noted = False
        self.size = 0  # bytes since the last event was complete

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """Yield the events that `data` completes."""
        self.size += len(data)
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""  # may be half of a line end
        text = data[: len(data) - len(self._held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        for line in lines:
            event = self._line(line.decode(self._encoding, "replace"))
            self._encoding = "utf-8"
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
        elif name == "retry" and value.isascii() and value.isdecimal() and len(value) < _DIGITS:
            self._retry, self._noted = int(value), True
        return None

    def _complete(self) -> SseEvent | None:
        event = None
        if self._data or self._noted:
            event = SseEvent("\n".join(self._data), self._event or "message", self._id, self._retry)
        self._data, self._event, self._retry, self._noted, self.size = [], "", None, False, 0
        return event
