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
from mcpfactory_pipeline.dashboard.log_text import Ink, LogPiece, ink_behind, pieces_of
from mcpfactory_pipeline.dashboard.statuses import STATUSES, ShownStatus, outcome_status
from mcpfactory_pipeline.dashboard.values import shorten

__all__ = ["LogLine", "LogPage", "LogState", "log_page", "opened_log", "read_raw"]

_PART: Final = (
    14_000  # bytes of a part, what is folded counted once: with the longest escapes still a page of less than 100 kB
)
_BEFORE: Final = 5_000  # bytes before a line that is to be looked at
_LEAST: Final = 40  # bytes that a line counts for at least: it takes as much to show
_BLOCK: Final = 256 * 1024  # bytes that are read for one part
_FOLDED: Final = 4  # lines of one content that are folded into one
_LINE: Final = 1_000  # characters of a line that are shown
_STATES: Final = 10  # states of a line over which others were written that can be opened, the last
_STATE: Final = 120  # characters of one, and bytes that it counts for
_HITS: Final = 100  # lines that a search shows
_QUERY: Final = 200
_CHUNK: Final = 64 * 1024  # bytes of a log that are sent at once


@dataclass(frozen=True, slots=True)
class LogState:
    """What stood on a line before something else was written over it: the byte `at` which it begins, and what it says."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: the byte `at` which it begins, its number from 1 (0 where that is not known), and whether it speaks of something wrong.

    `text` is what it says without what would move a cursor; `pieces` are the same with colours and links, none where it has neither.
    `times` is how many lines in a row say this: they are shown as one. Of a line that was written over (a bar that grows) this is the last
    state, or one that speaks of something wrong; `replaced` is how many states stood there before, and `states` are the last of them.
    """

    at: int
    number: int
    text: str
    wrong: bool
    pieces: tuple[LogPiece, ...] = ()
    times: int = 1
    replaced: int = 0
    states: tuple[LogState, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Lines in a row that say the same, and the states over which the first of them was written."""

    lines: list[RawLine]
    before: list[RawLine]


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
        shown = log.line_start(named if named >= 0 else wrong)
        return _part(page, log, min(_back(log, shown, _BEFORE), last), shown)
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


def _folded(line: RawLine) -> bool:
    """Whether another state was written over it, and it is not worth to be seen."""
    return line.over and not line.wrong


def _back(log: RawLog, end: int, cost: int) -> int:
    """Return where to begin so that what is shown up to `end`, the beginning of a line, costs no more; at least one line before it."""
    start, states = end, 0
    while start > max(0, end - _BLOCK + _PART):
        lines = list(log.lines(log.next_start(max(0, start - _PART)), start))
        if not lines:
            break
        for line in reversed(lines):
            states = states + 1 if _folded(line) else 0
            cost -= _cost(line) if not states else _STATE if states <= _STATES else 0
            if cost < 0:
                return start if start < end else log.line_start(end - 1)
            start = line.at
    return start if start < end else log.line_start(end - 1)


def _part(page: LogPage, log: RawLog, start: int, named: int = -1) -> LogPage:
    """Return the part that begins at a place; the line `named` is shown whatever it is."""
    groups = list(_groups(log, start, named))
    end = groups[-1].lines[-1].end if groups else start
    lines, ink, number = list[LogLine](), Ink(), log.number_at(start)
    for group in groups:
        for state in group.before:
            ink = ink_behind(state.data, ink)
        made, ink = _line(group.lines[0], number, ink)
        before = [LogState(one.at, shorten(plain_text(one.data), _STATE)) for one in group.before if not one.blank]
        made = replace(made, replaced=len(before), states=tuple(before[-_STATES:]))
        if len(group.lines) >= _FOLDED:
            lines.append(replace(made, times=len(group.lines)))
        else:
            lines.append(made)
            again = replace(made, replaced=0, states=())
            lines += [
                replace(again, at=one.at, number=number and number + n) for n, one in enumerate(group.lines[1:], 1)
            ]
        number = number and number + sum(line.ended for line in group.lines)
    earlier = _back(log, start, _PART) if start else -1
    return replace(page, start=start, end=end, before=earlier, after=end if end < log.size else -1, lines=tuple(lines))


def _groups(log: RawLog, start: int, named: int) -> Iterator[_Group]:
    """Yield lines from a place on, those that say the same in a row together, as many as are shown at once."""
    shown, group, before = 0, _Group([], []), list[RawLine]()
    for line in log.lines(start, start + _BLOCK):
        if _folded(line) and line.at != named:
            shown += _STATE if len(before) < _STATES else 0
            if shown > _PART:
                break
            before.append(line)
            continue
        if line.blank and (
            left := [one for one in before if not one.blank]
        ):  # nothing was written over the last of them
            before, line = left[:-1], replace(left[-1], end=line.end, over=line.over)  # noqa: PLW2901 - it is what stands there
        same = bool(group.lines) and not before and group.lines[0].data == line.data and group.lines[-1].ended
        if same and len(group.lines) >= _FOLDED - 1:
            group.lines.append(line)  # what is folded costs nothing more
            continue
        shown += _cost(line)
        if shown > _PART:
            break
        if same:
            group.lines.append(line)
            continue
        if group.lines:
            yield group
        group, before = _Group([line], before), []
    if group.lines:
        yield group
    if before:  # the line goes on in the next part, or nobody knows yet what comes over its last state
        yield _Group(before[-1:], before[:-1])


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
