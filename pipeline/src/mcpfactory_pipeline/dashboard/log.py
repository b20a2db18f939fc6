"""The log of a stage, all of it: a part at a time, with the lines that say what went wrong marked, and a search.

Pure but for the reading, of which there is as little as can be (`log_bytes`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.facts import LogFacts
from mcpfactory_pipeline.dashboard.files import open_log
from mcpfactory_pipeline.dashboard.log_bytes import RawLine, RawLog, plain_text
from mcpfactory_pipeline.dashboard.log_text import Ink, LogPiece, pieces_of
from mcpfactory_pipeline.dashboard.statuses import STATUSES, ShownStatus, outcome_status
from mcpfactory_pipeline.dashboard.values import shorten

__all__ = ["LogLine", "LogPage", "log_page", "opened_log", "read_raw"]

_PART: Final = (
    14_000  # bytes of a part, what is folded counted once: with the longest escapes still a page of less than 100 kB
)
_BEFORE: Final = 5_000  # bytes before a line that is to be looked at
_LEAST: Final = 40  # bytes that a line counts for at least: it takes as much to show
_BLOCK: Final = 256 * 1024  # bytes that are read for one part
_FOLDED: Final = 4  # lines of one content that are folded into one
_LINE: Final = 1_000  # characters of a line that are shown
_HITS: Final = 100  # lines that a search shows
_QUERY: Final = 200
_CHUNK: Final = 64 * 1024  # bytes of a log that are sent at once


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: the byte `at` which it begins, its number from 1 (0 where that is not known), and whether it speaks of something wrong.

    `text` is what it says without what would move a cursor; `pieces` are the same with colours and links, none where it has neither.
    `times` is how many lines in a row say this: they are shown as one.
    """

    at: int
    number: int
    text: str
    wrong: bool
    pieces: tuple[LogPiece, ...] = ()
    times: int = 1


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of a log, from the byte `start` to the byte `end` of `size`, or what a search found in it up to `end`.

    `before` and `after` are where the parts around it begin, or where the search goes on; -1 for none. `wrong` is where the line
    begins to look at, -1 for none. `status` is how the stage stands, and `run` the run that wrote the log; `going` says that it is
    still at work.
    """

    workspace: str
    server: str
    stage: str
    status: ShownStatus
    run: str
    going: bool
    size: int
    start: int
    end: int
    before: int
    after: int
    wrong: int
    query: str
    lines: tuple[LogLine, ...]


@contextmanager
def opened_log(facts: LogFacts) -> Iterator[BinaryIO]:
    """Open the log, for reading at any place.

    Raises:
        NotFoundError: it is not on this machine.
    """
    try:
        stream = open_log(facts.file, buffered=False)
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


def log_page(facts: LogFacts, stream: BinaryIO, *, query: str = "", start: str = "", place: str = "") -> LogPage:
    """Return a part of the log of a stage, or with `query` the lines that contain it, in any case of letters.

    `start` is the byte with whose line the part begins, or from which on is searched; `place` that of a line to be shown with what stands before
    it. By default that is the line that speaks of something wrong; where there is none, or `start` is `end`, it is the last part.
    """
    log, query = RawLog(stream), query.strip()[:_QUERY]
    wrong = -1 if query else log.first_wrong()
    page = LogPage(
        workspace=facts.workspace,
        server=facts.server,
        stage=facts.stage,
        status=STATUSES["running"]
        if facts.going
        else outcome_status(facts.outcome)
        if facts.outcome
        else STATUSES["never"],
        run=facts.run,
        going=facts.going,
        size=log.size,
        start=0,
        end=0,
        before=-1,
        after=-1,
        wrong=wrong,
        query=query,
        lines=(),
    )
    given, named = _place(start), _place(place)
    if query:
        return _found(page, log, max(given, 0))
    last = _back(log, log.size, _PART)
    if 0 <= given < log.size:
        return _part(page, log, log.line_start(given))
    if start != "end" and (named >= 0 or wrong >= 0):
        return _part(page, log, min(_back(log, log.line_start(named if named >= 0 else wrong), _BEFORE), last))
    return _part(page, log, last)


def read_raw(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a log as it is now, a little at a time."""
    log = RawLog(stream)
    for start in range(0, log.size, _CHUNK):
        yield log.read(start, start + _CHUNK)


def _place(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1


def _cost(line: RawLine) -> int:
    return max(min(len(line.data), _LINE), _LEAST)


def _back(log: RawLog, end: int, cost: int) -> int:
    """Return where to begin so that what is shown up to `end`, the beginning of a line, costs no more; at least one line before it."""
    start = end
    for line in reversed(list(log.lines(log.next_start(end - cost), end))):
        cost -= _cost(line)
        if cost < 0:
            break
        start = line.at
    return start if start < end else log.line_start(end - 1)


def _part(page: LogPage, log: RawLog, start: int) -> LogPage:
    groups = list(_groups(log, start))
    end = groups[-1][-1].end if groups else start
    lines, ink, number = list[LogLine](), Ink(), log.number_at(start)
    for group in groups:
        made, ink = _line(group[0], number, ink)
        if len(group) >= _FOLDED:
            lines.append(replace(made, times=len(group)))
        else:
            lines += [replace(made, at=one.at, number=number and number + more) for more, one in enumerate(group)]
        number = number and number + sum(line.ended for line in group)
    before = _back(log, start, _PART) if start else -1
    return replace(page, start=start, end=end, before=before, after=end if end < log.size else -1, lines=tuple(lines))


def _groups(log: RawLog, start: int) -> Iterator[list[RawLine]]:
    """Yield lines from a place on, those that say the same in a row together, as many as are shown at once."""
    shown, group = 0, list[RawLine]()
    for line in log.lines(start, start + _BLOCK):
        same = bool(group) and group[0].data == line.data and group[-1].ended
        if same and len(group) >= _FOLDED - 1:
            group.append(line)  # what is folded costs nothing more
            continue
        shown += _cost(line)
        if shown > _PART:
            break
        if same:
            group.append(line)
            continue
        if group:
            yield group
        group = [line]
    if group:
        yield group


def _line(line: RawLine, number: int, ink: Ink) -> tuple[LogLine, Ink]:
    pieces, after = pieces_of(line.data, ink)
    plain = len(pieces) < 2 and not any(piece.style or piece.rule or piece.test for piece in pieces)
    text = shorten(plain_text(line.data), _LINE)
    return LogLine(line.at, number, text, line.wrong, () if plain else pieces), after


def _found(page: LogPage, log: RawLog, start: int) -> LogPage:
    """Return what a search finds from a place on: a hundred lines at most, and where it goes on."""
    lines, end, known = list[LogLine](), start, (0, 1)
    for found in log.find(page.query, start):
        if isinstance(found, int):
            end = found
            break
        if len(lines) == _HITS:
            end = found.at
            break
        known = (found.at, log.number_at(found.at, known))
        lines.append(_line(found, known[1], Ink())[0])
    return replace(page, start=start, end=end, after=end if end < log.size else -1, lines=tuple(lines))
