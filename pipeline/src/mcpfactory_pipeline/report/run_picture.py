"""A run at one moment as lines of a terminal: who is where, what is at work since when, how much is done. Pure: events and a clock in."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mcpfactory_pipeline.base.events import (
    RunEvent,
    RunStarted,
    ServerTrouble,
    StepFinished,
    StepSkipped,
    StepStarted,
    Waiting,
)
from mcpfactory_pipeline.base.text import cell_width, pluralize, printable, truncate
from mcpfactory_pipeline.report.lines import OUTCOME_LABELS

__all__ = ["RunPicture", "Span"]

_GAP: Final = 2
_NAME: Final = 12  # columns that the name of a server has at least, else the stages are not shown one by one
_FRAME: Final = 4  # lines besides those of servers: the head, how many more, the sum, and where the cursor is
_EVERY: Final = 100  # servers up to which the last picture has every one, else those that did not pass
_BAD: Final = frozenset({"failed", "errored", "interrupted", "inconclusive", "blocked"})
_SAMPLE: Final = 10  # of so many steps of a stage one has ended, before anybody is told how long the others take
_WELL: Final = frozenset({"passed", "up-to-date", "held"})
_AT_WORK: Final = "running"


class Span(NamedTuple):
    """A part of a line with one style, by rich's names of styles."""

    text: str
    style: str = ""


_Line = list[Span]


@dataclass(slots=True)
class _Cell:
    """A stage of a server: what is known last, when it started, and what it took in all."""

    mark: str = "waiting"
    started: float = 0.0
    seconds: float = 0.0

    @property
    def open(self) -> bool:
        return self.mark in {"waiting", _AT_WORK}


class RunPicture:
    """What is known of a run. Events come from one thread, lines are asked for by another."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._guard, self._began = clock, threading.Lock(), clock()
        self._stages: tuple[str, ...] = ()
        self._cells: dict[str, dict[str, _Cell]] = {}
        self._notes: dict[str, str] = {}  # server → why it is not at work although nothing keeps it from that
        self._newest: dict[str, int] = {}  # server → when something happened to it last

    def take(self, event: RunEvent) -> None:
        """Take one event into the picture."""
        with self._guard:
            if isinstance(event, RunStarted):
                self._stages = event.stages
                self._cells = {server: {stage: _Cell() for stage in event.stages} for server in event.servers}
                self._began = self._clock()
                return
            server = getattr(event, "server", None)
            if server not in self._cells:
                return
            self._newest[server] = len(self._newest) + max(self._newest.values(), default=0) + 1
            self._take(event, self._cells[server])

    def _take(self, event: RunEvent, cells: dict[str, _Cell]) -> None:
        match event:
            case StepStarted(_, stage):
                cells[stage].mark, cells[stage].started = _AT_WORK, self._clock()
                self._notes.pop(event.server, None)
            case StepFinished(_, stage, outcome, _message, seconds):
                cells[stage].mark, cells[stage].seconds = outcome, cells[stage].seconds + seconds
            case StepSkipped(_, stage, verdict):
                cells[stage].mark = verdict
                self._notes.pop(event.server, None)
            case Waiting(server):
                self._notes[server] = "waits for another mcpfactory"
            case ServerTrouble(server):
                self._notes[server] = "cannot be run"
                for cell in cells.values():
                    cell.mark = "errored" if cell.open else cell.mark

    def lines(self, width: int, height: int) -> list[_Line]:
        """Return the picture within a terminal: those at work first, then what went wrong, then what happened last."""
        with self._guard:
            servers = sorted(self._cells, key=self._interest)
            room_for = max(1, height - _FRAME)
            shown = servers if len(servers) <= room_for else servers[:room_for]
            if len(shown) == len(self._cells):
                shown = list(self._cells)  # all fit: each stays where it is
            lines = self._table(shown, width)
            if len(shown) < len(servers):
                lines.append(
                    [Span(truncate(f"… and {pluralize(len(servers) - len(shown), 'server')} more", width), "dim")]
                )
            return [*lines, [Span(truncate(self._sum(), width))]]

    def last(self, width: int) -> list[_Line]:
        """Return the picture that stays when the run is over: every server, or of very many those that did not pass."""
        with self._guard:
            every = list(self._cells)
            well = [name for name in every if all(cell.mark in _WELL for cell in self._cells[name].values())]
            shown = every if len(every) <= _EVERY else [name for name in every if name not in set(well)][:_EVERY]
            lines = self._table(shown, width) if shown else []
            if len(shown) < len(every):
                rest = len(every) - len(well) - len(shown)
                more = f", and {rest} more did not" if rest else ""
                lines.append([Span(truncate(f"{pluralize(len(well), 'server')} passed{more}", width), "dim")])
            return lines

    def _interest(self, server: str) -> tuple[int, int]:
        marks = {cell.mark for cell in self._cells[server].values()}
        rank = (
            0
            if _AT_WORK in marks or server in self._notes
            else 1
            if marks & _BAD
            else 2
            if server in self._newest
            else 3
        )
        return rank, -self._newest.get(server, 0)

    def _table(self, servers: Sequence[str], width: int) -> list[_Line]:
        rows = {server: [self._shown(cell) for cell in self._cells[server].values()] for server in servers}
        names = [printable(server) for server in servers]
        widths = [
            max(len(stage), *(cell_width(row[i].text) for row in rows.values())) for i, stage in enumerate(self._stages)
        ]
        wanted = max(map(cell_width, ("SERVER", *names)))
        left = width - sum(widths) - _GAP * len(widths)
        if left < min(wanted, _NAME):
            return self._brief(servers, min(wanted, width // 2), width)
        first = min(wanted, left)
        head = [
            Span(_padded("SERVER", first), "dim"),
            *(_column(Span(s.upper(), "dim"), w) for s, w in zip(self._stages, widths, strict=True)),
        ]
        return [head] + [
            [Span(_padded(truncate(name, first), first)), *map(_column, rows[server], widths)]
            for server, name in zip(servers, names, strict=True)
        ]

    def _brief(self, servers: Sequence[str], first: int, width: int) -> list[_Line]:
        """Where there is no room for a column for each stage: how many are done, and the one that counts."""
        lines: list[_Line] = [[Span(truncate(_padded("SERVER", first) + "  DONE   STAGE", width), "dim")]]
        for server in servers:
            cells = self._cells[server]
            done = f"{sum(not cell.open for cell in cells.values())}/{len(cells)}"
            by_rank = sorted(cells, key=lambda name: (cells[name].mark != _AT_WORK, cells[name].mark not in _BAD))
            counts = [name for name in by_rank if cells[name].mark == _AT_WORK or cells[name].mark in _BAD][:1]
            mark = self._shown(cells[counts[0]]) if counts else Span("", "")
            text = f"  {done:<6} {counts[0]} {mark.text}" if counts else f"  {done:<6}"
            lines.append(
                [
                    Span(_padded(truncate(printable(server), first), first)),
                    Span(truncate(text, width - first), mark.style),
                ]
            )
        return lines

    def _shown(self, cell: _Cell) -> Span:
        word, style = OUTCOME_LABELS.get(cell.mark, (cell.mark, ""))
        if cell.mark == _AT_WORK:
            return Span(f"now {_clock(self._clock() - cell.started)}", style)
        return Span("·", style) if cell.mark == "waiting" else Span(word, style)

    def _sum(self) -> str:
        cells = [cell for row in self._cells.values() for cell in row.values()]
        marks = Counter(cell.mark for cell in cells)
        done = sum(not cell.open for cell in cells)
        parts = [f"{done} of {pluralize(len(cells), 'step')}"]
        parts += [f"{marks[_AT_WORK]} at work"] if marks[_AT_WORK] else []
        parts += [f"{marks[mark]} {mark}" for mark in OUTCOME_LABELS if mark in _BAD and marks[mark]]
        parts += [f"{server} {why}" for server, why in self._notes.items()][:1]
        left = self._left()
        return f"{', '.join(parts)}; {_clock(self._clock() - self._began)} so far" + (
            f", about {_clock(left)} left" if left else ""
        )

    def _left(self) -> float | None:
        """Seconds that are left, by what each stage has taken at other servers; None while that is known of too few."""
        left, now = 0.0, self._clock()
        for stage in self._stages:
            cells = [row[stage] for row in self._cells.values()]
            ended = [cell for cell in cells if not cell.open]
            if len(ended) < len(cells) and len(ended) < max(2, len(cells) // _SAMPLE):
                return None
            each = sum(cell.seconds for cell in ended) / max(1, len(ended))
            for cell in cells:
                if cell.open:
                    left += max(0.0, each - (now - cell.started if cell.mark == _AT_WORK else 0.0))
        at_work = sum(any(cell.mark == _AT_WORK for cell in row.values()) for row in self._cells.values())
        return left / max(1, at_work)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_width(text))


def _column(span: Span, width: int) -> Span:
    return Span(" " * _GAP + _padded(span.text, width), span.style)
