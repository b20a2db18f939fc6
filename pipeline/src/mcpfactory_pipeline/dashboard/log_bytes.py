"""A log as bytes: where its lines begin, what goes wrong in it and where words stand, found by reading no more than is needed.

A place in a log is a number of bytes from its beginning, for those are known without reading what stands before. Everything here reads
in pieces that have a bound, so that a log of 50 MB costs what one of 1 MB does.

A carriage return within a line ends a state of it: what follows is written over it, as by the bar of a download. Each state is read as a line.
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
_END_OF_STATE: Final = re.compile(rb"\r\n|\n|\r")
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
    """One line, state of a line or piece of a very long one, without its end: where it begins, and where the next one does.

    `over` says that it is a state over which another was written.
    """

    at: int
    data: bytes
    end: int
    over: bool = False

    @property
    def wrong(self) -> bool:
        """Whether it speaks of something that went wrong."""
        return len(self.data) <= _LONG and bool(_WRONG.search(plain_text(self.data)))

    @property
    def ended(self) -> bool:
        """Whether a line break ends it: what follows is another line, and no further piece of this one."""
        return self.end > self.at + len(self.data) and not self.over

    @property
    def blank(self) -> bool:
        """Whether it has nothing that could be seen, or cover anything."""
        return not plain_text(self.data).strip()


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
            found = _last_end(self.read(begin, end + 1), end - begin)
            if found or begin == 0 or self._cut(begin):
                return begin + found
            begin, end = begin - _PIECE, begin

    def next_start(self, at: int) -> int:
        """Return where the first line, or piece of a very long one, begins that does so at a place or after it."""
        begin = self.line_start(at)
        if begin >= min(at, self.size):
            return begin
        first = next(self._split(begin, self._whole_lines(begin)), None)  # none where the file has become shorter
        return first.end if first else begin

    def lines(self, start: int, end: int) -> Iterator[RawLine]:
        """Yield the lines that begin between two places, the first of them a beginning itself. A very long one comes in pieces."""
        while start < min(end, self.size):
            data = self._whole_lines(start)
            if not data:  # the file has become shorter
                return
            for line in self._split(start, data):
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
            if _ANYWHERE.search(plain_text(data.replace(b"\r", b"\n"))):
                for line in self._split(start, data):
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
                yield from (line for line in self._split(at, data) if folded in plain_text(line.data).casefold())
            at += len(data)
        yield at

    def _cut(self, at: int) -> bool:
        """Whether a line is cut at a place: it has so many bytes before it, and goes on."""
        if not 0 < at < self.size or at % _PIECE:
            return False
        around = self.read(at - _PIECE, at + 1)
        return b"\n" not in around and b"\r" not in around

    def _whole_lines(self, start: int) -> bytes:
        """Return the bytes from a beginning on, up to the end of a line, or of the first piece of one that is very long."""
        data = self.read(start, start + _PIECE)
        if start + len(data) >= self.size:
            return data
        whole = _last_end(
            data, len(data) - data.endswith(b"\r")
        )  # what follows the last byte says whether it ends a state
        if whole:
            return data[:whole]
        cut = start + _PIECE + -start % _PIECE
        data += self.read(start + _PIECE, cut + 2)
        first = _END_OF_STATE.search(data, 0, cut + 2 - start)
        return data[: first.end() if first and first.start() <= cut - start else cut - start]

    def _split(self, start: int, data: bytes) -> Iterator[RawLine]:
        """Yield the lines, states and pieces in bytes from a beginning on, which end where one of them does."""
        begin = 0
        for end in _END_OF_STATE.finditer(data):
            over = end.group() == b"\r" and start + end.end() < self.size
            yield RawLine(start + begin, data[begin : end.start()], start + end.end(), over)
            begin = end.end()
        if begin < len(data):
            yield RawLine(start + begin, data[begin:], start + len(data))


def _last_end(data: bytes, limit: int) -> int:
    """Return where the last line or state begins that does so up to a place in bytes; 0 for none. The byte behind the place is looked at."""
    newline = data.rfind(b"\n", 0, limit) + 1
    carriage = data.rfind(b"\r", newline, limit)
    if carriage >= 0 and data[carriage + 1 : carriage + 2] == b"\n":  # of one line end only half is before the place
        carriage = data.rfind(b"\r", newline, carriage)
    return max(newline, carriage + 1)
