from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mcpfactory_pipeline.base import events
from mcpfactory_pipeline.base.text import pluralize, printable, terminal_width
from mcpfactory_pipeline.reporting.line_reporter import OUTCOME_LABELS, event_lines

_REFRESHES: Final = 4  # screen updates per second
_GAP: Final = 2
_NAME: Final = 12  # minimum columns for a server's name; narrower terminals show no stages
_FRAME: Final = 4  # lines without a server: header, number of hidden servers, total, cursor line
# maximum number of servers in the final table; a larger run shows only servers that did not pass
_EVERY: Final = 100
_BAD: Final = frozenset({"failed", "errored", "interrupted", "inconclusive", "blocked"})
_GOOD: Final = frozenset({"passed", "up-to-date", "held", "waiting"})
_RUNNING: Final = "running"


class LiveReporter(events.Reporter):
    """Live table of servers and stages. After the run, the final table stays on the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._table = RunTable(time.monotonic)
        self._live: Live | None = None

    def emit(self, event: events.RunEvent) -> None:
        """Add one event to the table, and print each problem as a line above the table."""
        self._table.update(event)
        if isinstance(event, events.RunStarted) and event.servers:
            self._live = Live(self._table, console=self._console, refresh_per_second=_REFRESHES, transient=True)
            self._live.start()
        elif isinstance(event, events.RunFinished):
            self.close()
            self._print(event)
        elif isinstance(event, events.FailedStageLog | events.ServerUnusable | events.RunStarted) or (
            isinstance(event, events.StageFinished) and event.outcome != "passed"
        ):
            self._print(event)

    def close(self) -> None:
        """Leave the final table on the terminal."""
        if self._live:
            self._live.stop()
            self._live = None
            self._console.print(self._table.final(self._console.width))

    def _print(self, event: events.RunEvent) -> None:
        for line in event_lines(event):
            self._console.print(Text(line))


@dataclass(slots=True)
class _Cell:
    status: str = "waiting"
    started: float = 0.0

    @property
    def open(self) -> bool:
        return self.status in {"waiting", _RUNNING}


class RunTable:
    """Progress of a run. One thread adds events while another thread draws the table."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._guard, self._began = clock, threading.Lock(), clock()
        self._stages: tuple[str, ...] = ()
        self._cells: dict[str, dict[str, _Cell]] = {}
        self._notes: dict[str, str] = {}  # server → reason why none of its stages runs
        self._newest: dict[str, int] = {}  # server → sequence number of its last event

    def update(self, event: events.RunEvent) -> None:
        """Add one event."""
        with self._guard:
            if isinstance(event, events.RunStarted):
                self._stages = event.stages
                self._cells = {server: {stage: _Cell() for stage in event.stages} for server in event.servers}
                self._began = self._clock()
                return
            server = getattr(event, "server", None)
            if server not in self._cells:
                return
            self._newest[server] = len(self._newest) + max(self._newest.values(), default=0) + 1
            self._update(event, self._cells[server])

    def _update(self, event: events.RunEvent, cells: dict[str, _Cell]) -> None:
        match event:
            case events.StageStarted(_, stage):
                cells[stage].status, cells[stage].started = _RUNNING, self._clock()
                self._notes.pop(event.server, None)
            case events.StageFinished(_, stage, outcome):
                cells[stage].status = outcome
            case events.StageSkipped(_, stage, verdict):
                cells[stage].status = verdict
                self._notes.pop(event.server, None)
            case events.RunWaiting(server):
                self._notes[server] = "waits for another mcpfactory"
            case events.ServerUnusable(server):
                self._notes[server] = "cannot be run"
                for cell in cells.values():
                    cell.status = "errored" if cell.open else cell.status

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        yield self.current(console.width, console.height)

    def current(self, width: int, height: int) -> RenderableType:
        """Return the table for a terminal.

        Running servers are first, failed servers second, and other servers last, by their latest event.
        """
        with self._guard:
            servers = sorted(self._cells, key=self._interest)
            shown = servers[: max(1, height - _FRAME)]
            hidden = len(servers) - len(shown)
            if not hidden:
                shown = list(self._cells)  # if there is room for all servers, keep their order
            more = [_line(f"… and {pluralize(hidden, 'server')} more", "dim")] if hidden else []
            return Group(self._table(shown, width), *more, _line(self._sum()))

    def final(self, width: int) -> RenderableType:
        """Return the final table of all servers; of a large run, only the servers that did not pass."""
        with self._guard:
            every = list(self._cells)
            good = {name for name in every if all(cell.status in _GOOD for cell in self._cells[name].values())}
            shown = every if len(every) <= _EVERY else [name for name in every if name not in good][:_EVERY]
            parts: list[RenderableType] = [self._table(shown, width)] if shown else []
            if len(shown) < len(every):
                rest = len(every) - len(good) - len(shown)
                more = f", and {rest} more did not" if rest else ""
                parts.append(_line(f"{pluralize(len(good), 'server')} passed{more}", "dim"))
            return Group(*parts)

    def _interest(self, server: str) -> tuple[int, int]:
        statuses = {cell.status for cell in self._cells[server].values()}
        running = _RUNNING in statuses or server in self._notes
        rank = 0 if running else 1 if statuses & _BAD else 2 if server in self._newest else 3
        return rank, -self._newest.get(server, 0)

    def _table(self, servers: Sequence[str], width: int) -> Table:
        rows = {server: [self._label(cell) for cell in self._cells[server].values()] for server in servers}
        stages = [max(len(stage), *(row[i].cell_len for row in rows.values())) for i, stage in enumerate(self._stages)]
        wanted = max(terminal_width(name) for name in ("SERVER", *map(printable, servers)))
        left = width - sum(stages) - _GAP * len(stages)
        if left < min(wanted, _NAME):
            return self._brief(servers, min(wanted, width // 2))
        table = _new_table(min(wanted, left))
        for stage, columns in zip(self._stages, stages, strict=True):
            table.add_column(Text(stage.upper()), no_wrap=True, width=columns)
        for server in servers:
            table.add_row(Text(printable(server)), *rows[server])
        return table

    def _brief(self, servers: Sequence[str], name: int) -> Table:
        table = _new_table(name)
        table.add_column("DONE", no_wrap=True, width=5)
        table.add_column("STAGE", no_wrap=True)
        for server in servers:
            cells = self._cells[server]
            done = f"{sum(not cell.open for cell in cells.values())}/{len(cells)}"
            by_rank = sorted(
                cells, key=lambda stage: (cells[stage].status != _RUNNING, cells[stage].status not in _BAD)
            )
            counts = [stage for stage in by_rank if cells[stage].status in {_RUNNING, *_BAD}][:1]
            labels = [Text(f"{stage} ").append_text(self._label(cells[stage])) for stage in counts]
            table.add_row(Text(printable(server)), done, *labels)
        return table

    def _label(self, cell: _Cell) -> Text:
        word, style = OUTCOME_LABELS.get(cell.status, (cell.status, ""))
        if cell.status == _RUNNING:
            word = f"now {_minutes(self._clock() - cell.started)}"
        return Text("·" if cell.status == "waiting" else word, style)

    def _sum(self) -> str:
        cells = [cell for row in self._cells.values() for cell in row.values()]
        statuses = Counter(cell.status for cell in cells)
        done = sum(not cell.open for cell in cells)
        parts = [f"{done} of {pluralize(len(cells), 'step')}"]
        parts += [f"{statuses[_RUNNING]} at work"] if statuses[_RUNNING] else []
        parts += [f"{statuses[status]} {status}" for status in OUTCOME_LABELS if status in _BAD and statuses[status]]
        parts += [f"{server} {why}" for server, why in self._notes.items()][:1]
        return f"{', '.join(parts)}; {_minutes(self._clock() - self._began)} so far"


def _new_table(name: int) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("SERVER", no_wrap=True, width=name)
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
