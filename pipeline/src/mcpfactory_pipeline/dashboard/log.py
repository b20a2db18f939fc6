"""The log of a stage, all of it: a part at a time, with the lines that say what went wrong marked, and a search. Pure but for the reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.values import Pager, shorten

__all__ = ["LogLine", "LogPage", "log_page"]

_PART: Final = 16_000  # bytes of a part: with the longest escapes still a page of less than 100 kB
_LINE: Final = 1_000  # characters of a line that are shown
_HITS: Final = 100  # lines that a search shows
_QUERY: Final = 200
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_WRONG: Final = re.compile(
    r"\b(?:error|failed|failure|fatal|traceback|exception|assert)\b|^E\s{2,}|^\S*Error:", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: its number from 1, its text without what would move a cursor, and whether it speaks of something that went wrong."""

    number: int
    text: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of a log, or what a search found in all of it. `size` is in bytes; `first_wrong` is the line to look at, 0 for none.

    `pager` counts the parts; without a wish it is the one with the first line that speaks of something wrong, or the last.
    """

    workspace: str
    server: str
    stage: str
    size: int
    query: str
    hits: int
    first_wrong: int
    pager: Pager
    lines: tuple[LogLine, ...]


def log_page(workspace: str, server: str, stage: str, file: Path, *, query: str = "", page: str = "") -> LogPage:
    """Return a part of the log of a stage, or with `query` the lines that contain it, in any case of letters.

    Raises:
        NotFoundError: it is not on this machine.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"there is no log of {stage} of {server} on this machine", hint=f"mcpfactory pipeline run {server} --force"
        ) from error
    query = query.strip()[:_QUERY]
    starts = _parts(data)
    wrong = _first_wrong(data)
    if query:
        found = list(_matching(data, query))
        lines, hits = tuple(found[:_HITS]), len(found)
        pager = Pager(1, 1, len(starts))
    else:
        number = _wanted(page, starts, wrong[1] if wrong else len(data))
        begin, end = starts[number - 1], [*starts, len(data)][number]
        lines = tuple(_lines(data[begin:end], 1 + data.count(b"\n", 0, begin)))
        hits, pager = 0, Pager(number, len(starts), len(starts))
    return LogPage(workspace, server, stage, len(data), query, hits, wrong[0] if wrong else 0, pager, lines)


def _parts(data: bytes) -> list[int]:
    """Return where the parts begin: at beginnings of lines, where those are not too long."""
    starts = [0]
    while len(data) - starts[-1] > _PART:
        end = starts[-1] + _PART
        line = data.rfind(b"\n", starts[-1], end) + 1
        starts.append(line if line > starts[-1] else end)
    return starts


def _wanted(page: str, starts: list[int], place: int) -> int:
    if page.isascii() and page.isdecimal() and len(page) < 10:
        return min(max(int(page), 1), len(starts))
    return max(number for number, start in enumerate(starts, 1) if start <= place)


def _first_wrong(data: bytes) -> tuple[int, int] | None:
    """Return the number of the first line that speaks of something wrong, and where it begins."""
    place = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if len(line) < _LINE and _WRONG.search(_plain(line)):
            return number, place
        place += len(line) + 1
    return None


def _matching(data: bytes, query: str) -> Iterator[LogLine]:
    folded = query.casefold()
    for line in _lines(data, 1):
        if folded in line.text.casefold():
            yield line


def _lines(data: bytes, number: int) -> Iterator[LogLine]:
    for line in data.removesuffix(b"\n").split(b"\n"):
        text = shorten(_plain(line), _LINE)
        yield LogLine(number, text, bool(_WRONG.search(text)))
        number += 1


def _plain(line: bytes) -> str:
    return _ESCAPES.sub("", line.decode("utf-8", errors="replace"))
