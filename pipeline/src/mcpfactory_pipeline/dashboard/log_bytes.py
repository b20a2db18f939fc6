"""A log as bytes: where its lines begin, what goes wrong in it and where words stand, found by reading no more than is needed.

A place in a log is a number of bytes from its beginning, for those are known without reading what stands before. Everything here reads
in pieces that have a bound, so that a log of 50 MB costs what one of 1 MB does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

__all__ = ["RawLine", "RawLog", "plain_text"]

_WHOLE: Final = (
    1024 * 1024
)  # bytes of a log that are looked through from its beginning: for what is wrong, and to number lines
_END: Final = (
    512 * 1024
)  # bytes at the end of a longer one that are looked through for what is wrong, and then as many at its beginning
_PIECE: Final = (
    64 * 1024
)  # bytes of one read; a line is cut at every multiple of them that has as many of its bytes before it: no reading tells more
_SEARCHED: Final = 16 * 1024 * 1024  # bytes that one search looks through
_LONG: Final = 1_000  # bytes of a line that may speak of something wrong: what is longer is data
# Commands of a terminal that name no colour, and characters that are none.
_COMMANDS: Final = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_BYTES_OF_COMMANDS: Final = bytes({*range(9), *range(0x0B, 0x20), 0x7F, 0xC2})
_WRONG: Final = re.compile(
    r"\b(?:error|failed|failure|fatal|traceback|exception|assert)\b|^E[ \t]{2,}|^[^\s:]*Error:", re.IGNORECASE
)


_ANYWHERE: Final = re.compile(_WRONG.pattern, re.IGNORECASE | re.MULTILINE)


def plain_text(data: bytes) -> str:
    """Return bytes of a log as text, without what moves a cursor, names a colour or is no character; its lines stay as many."""
    text = data.decode("utf-8", errors="replace")
    return _COMMANDS.sub("", text) if len(data.translate(None, _BYTES_OF_COMMANDS)) < len(data) else text


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line, or piece of a very long one, without its end: where it begins, and where the next one does."""

    at: int
    data: bytes
    end: int

    @property
    def wrong(self) -> bool:
        """Whether it speaks of something that went wrong."""
        return len(self.data) <= _LONG and bool(_WRONG.search(plain_text(self.data)))

    @property
    def ended(self) -> bool:
        """Whether a line break ends it: what follows is another line, and no further piece of this one."""
        return self.end > self.at + len(self.data)


class RawLog:
    """An open log of `size` bytes: what is added to it meanwhile is not seen."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, 2)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two places."""
        self._stream.seek(start)
        return self._stream.read(max(0, min(end, self.size) - start))

    def line_start(self, at: int) -> int:
        """Return where the line begins in which a place is; of a line that is very long, the piece of it."""
        at = min(max(at, 0), self.size)
        begin, end = at - at % _PIECE, at
        while True:
            found = self.read(begin, end).rfind(b"\n") + 1
            if found or begin == 0 or self._cut(begin):
                return begin + found
            begin, end = begin - _PIECE, begin

    def next_start(self, at: int) -> int:
        """Return where the first line, or piece of a very long one, begins that does so at a place or after it."""
        begin = self.line_start(at)
        return begin if begin >= min(at, self.size) else next(_split(begin, self._whole_lines(begin))).end

    def lines(self, start: int, end: int) -> Iterator[RawLine]:
        """Yield the lines that begin between two places, the first of them a beginning itself. A very long one comes in pieces."""
        while start < min(end, self.size):
            data = self._whole_lines(start)
            if not data:  # the file has become shorter
                return
            for line in _split(start, data):
                if line.at >= end:
                    return
                yield line
            start += len(data)

    def number_at(self, at: int, known: tuple[int, int] = (0, 1)) -> int:
        """Return the number of the line that begins at a place, from 1; 0 where it takes too much reading to tell.

        `known` is an earlier place with its number.
        """
        begin, number = known
        if at > _WHOLE or not number:
            return 0
        ends = (self.read(start, min(start + _PIECE, at)).count(b"\n") for start in range(begin, at, _PIECE))
        return number + sum(ends)

    def first_wrong(self) -> int:
        """Return where the line begins that is to be looked at first, -1 for none.

        It is the first that speaks of something wrong; in a long log the first of those at its end, else of those at its beginning.
        """
        if self.size <= _WHOLE:
            return self._first_wrong_between(0, self.size)
        found = self._first_wrong_between(self.line_start(self.size - _END), self.size)
        return found if found >= 0 else self._first_wrong_between(0, _END)

    def _first_wrong_between(self, start: int, end: int) -> int:
        while start < end:
            data = self._whole_lines(start)
            if not data:
                return -1
            if _ANYWHERE.search(plain_text(data)):
                for line in _split(start, data):
                    if line.wrong:
                        return line.at
            start += len(data)
        return -1

    def find(self, words: str, start: int) -> Iterator[RawLine | int]:
        """Yield the lines from a place on that contain words, in any case of letters; and last how far it looked."""
        folded, end = words.casefold(), min(self.size, start + _SEARCHED)
        at = self.line_start(start) if start < end else end
        while at < end:
            data = self._whole_lines(at)
            if not data:
                break
            if folded in plain_text(data).casefold():
                yield from (line for line in _split(at, data) if folded in plain_text(line.data).casefold())
            at += len(data)
        yield at

    def _cut(self, at: int) -> bool:
        """Whether a line is cut at a place: it has so many bytes before it, and goes on."""
        return 0 < at < self.size and at % _PIECE == 0 and b"\n" not in self.read(at - _PIECE, at + 1)

    def _whole_lines(self, start: int) -> bytes:
        """Return the bytes from a beginning on, up to the end of a line, or of the first piece of one that is very long."""
        data = self.read(start, start + _PIECE)
        if start + len(data) >= self.size:
            return data
        whole = data.rfind(b"\n") + 1
        if whole:
            return data[:whole]
        cut = start + _PIECE + -start % _PIECE
        data += self.read(start + _PIECE, cut + 1)
        return data[: data.find(b"\n") + 1 or cut - start]


def _split(start: int, data: bytes) -> Iterator[RawLine]:
    last = start + len(data)
    for line in data.removesuffix(b"\n").split(b"\n"):
        end = min(start + len(line) + 1, last)
        yield RawLine(start, line, end)
        start = end
