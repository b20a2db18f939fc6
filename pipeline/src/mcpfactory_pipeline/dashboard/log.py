"""The log of a stage, a page at a time: the lines that say what went wrong are marked, and can be searched for."""

from __future__ import annotations

import errno
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.facts import (
    STATUSES,
    LogFacts,
    Pager,
    ShownStatus,
    outcome_status,
    page_number,
    shorten,
)
from mcpfactory_pipeline.dashboard.files import open_log, plain_text

_READ: Final = 4 * 1024 * 1024  # bytes read from the end of a log; longer logs can be downloaded
_PAGE: Final = 12_000  # characters of a page: below 100 kB with the longest escapes
_LEAST: Final = 40  # characters that a line counts for at least: its markup takes as much
_LINE: Final = 1_000  # characters of a line that are shown; a longer line is data and reports nothing
_QUERY: Final = 200  # characters
_WRONG: Final = re.compile(
    r"\b(?:error|failed|failure|fatal|traceback|exception|assert)\b|^E[ \t]{2,}|^[^\s:]*Error:", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `page` is the page of the log that has it; `wrong` marks a line about something that went wrong."""

    number: int
    page: int
    text: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of a log of `size` bytes, or of the lines that contain `query`.

    `unread` is the number of bytes at the beginning of a long log that are not shown. `wrong` is the number of the first line about
    something that went wrong, 0 for none, and `wrong_page` its page. `run` is the run that wrote the log; `going` says that it still writes.
    """

    workspace: str
    server: str
    stage: str
    status: ShownStatus
    run: str
    going: bool
    size: int
    unread: int
    wrong: int
    wrong_page: int
    query: str
    pager: Pager
    lines: tuple[LogLine, ...]


@contextmanager
def opened_log(facts: LogFacts) -> Iterator[BinaryIO]:
    """Open the log for reading.

    Raises:
        NotFoundError: it is not on this machine.
    """
    try:
        stream = open_log(facts.file)
    except OSError as error:
        again = f"mcpfactory pipeline run {facts.server} --force"
        if error.errno in {errno.EINVAL, errno.ELOOP}:
            raise NotFoundError(
                f"the log of {facts.stage} of {facts.server} is no file of its own: {error.strerror}",
                hint=f"remove what is at logs/{facts.file.name} of its artifacts, then {again}",
            ) from error
        raise NotFoundError(
            f"there is no log of {facts.stage} of {facts.server} on this machine", hint=again
        ) from error
    with stream:
        yield stream


def log_page(facts: LogFacts, stream: BinaryIO, *, query: str = "", page: str = "") -> LogPage:
    """Return a page of the log of a stage, or of its lines that contain `query` in any case of letters.

    Without `page` it is the one with the first line about something that went wrong, else the last one.
    """
    size, query = stream.seek(0, 2), query.strip()[:_QUERY]
    unread = max(0, size - _READ)
    stream.seek(unread)
    lines = plain_text(stream.read(_READ)).removesuffix("\n").split("\n") if size else []
    starts = _page_starts(lines, range(len(lines)))
    wrong = next((number for number, line in enumerate(lines) if _is_wrong(line)), -1)
    shown: Sequence[int] = range(len(lines))
    first = len(starts) if wrong < 0 else bisect_right(starts, wrong)
    if query:
        shown = [number for number, line in enumerate(lines) if query.casefold() in line.casefold()]
        first = 1
    parts = [*_page_starts(lines, shown), len(shown)]
    pages = max(1, len(parts) - 1)
    number = page_number(page, pages) if page else max(1, first)
    status = outcome_status(facts.outcome) if facts.outcome else STATUSES["never"]
    return LogPage(
        workspace=facts.workspace,
        server=facts.server,
        stage=facts.stage,
        status=STATUSES["running"] if facts.going else status,
        run=facts.run,
        going=facts.going,
        size=size,
        unread=unread,
        wrong=wrong + 1,
        wrong_page=bisect_right(starts, wrong),
        query=query,
        pager=Pager(number, pages, len(shown)),
        lines=tuple(
            LogLine(at + 1, bisect_right(starts, at), shorten(lines[at], _LINE), _is_wrong(lines[at]))
            for at in shown[parts[number - 1] : parts[min(number, len(parts) - 1)]]
        ),
    )


def _is_wrong(line: str) -> bool:
    return len(line) <= _LINE and bool(_WRONG.search(line))


def _page_starts(lines: Sequence[str], shown: Sequence[int]) -> list[int]:
    """Return the index in `shown` with which each page begins."""
    starts, room = list[int](), 0
    for index, number in enumerate(shown):
        room -= max(_LEAST, min(len(lines[number]), _LINE))
        if room < 0:
            starts.append(index)
            room = _PAGE - max(_LEAST, min(len(lines[number]), _LINE))
    return starts
