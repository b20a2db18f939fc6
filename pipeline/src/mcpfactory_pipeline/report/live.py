"""A run as a live table on a terminal; lines about what went wrong stay above it."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mcpfactory_pipeline.events import (
    LogLines,
    RunEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    StepSkipped,
    StepStarted,
    Trouble,
    Waiting,
)
from mcpfactory_pipeline.report.words import MARKS, lines_of

__all__ = ["LiveReporter"]

_ROWS = 30  # more servers than this scroll: those that are at work are shown


class LiveReporter:
    """Draws servers × stages, with what each stage found last."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._cells: dict[str, dict[str, str]] = {}
        self._notes: dict[str, str] = {}
        self._stages: tuple[str, ...] = ()
        self._live: Live | None = None

    def emit(self, event: RunEvent) -> None:
        """Takes one event into the picture."""
        match event:
            case RunStarted(servers, stages):
                self._stages = stages
                self._cells = {server: {} for server in servers}
                self._live = Live(self._table(), console=self._console, refresh_per_second=8) if servers else None
                if self._live:
                    self._live.start()
            case StepStarted(server, stage, reasons, _attempt):
                self._set(server, stage, "running", "; ".join(reasons))
            case StepFinished(server, stage, outcome, message, _seconds):
                self._set(server, stage, outcome, message)
            case StepSkipped(server, stage, verdict, reasons):
                self._set(server, stage, verdict, "; ".join(reasons) or self._notes.get(server, ""))
            case Waiting(server, _holder):
                self._notes[server] = lines_of(event)[0].partition(": ")[2]
        if isinstance(event, LogLines | Trouble) or (isinstance(event, RunStarted) and not event.servers):
            self._print(event)
        if isinstance(event, RunFinished):
            self.close()
            self._print(event)
        elif self._live:
            self._live.update(self._table())

    def close(self) -> None:
        """Leaves the last picture on the terminal."""
        if self._live:
            self._live.update(self._table(), refresh=True)
            self._live.stop()
            self._live = None

    def _set(self, server: str, stage: str, mark: str, note: str) -> None:
        self._cells[server][stage] = mark
        self._notes[server] = note

    def _print(self, event: RunEvent) -> None:
        for line in lines_of(event):
            self._console.print(Text(line))

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("SERVER", *(stage.upper() for stage in self._stages)):
            table.add_column(name, no_wrap=True)
        table.add_column("", overflow="ellipsis", no_wrap=True, style="dim")
        shown = list(self._cells)
        if len(shown) > _ROWS:
            shown = [server for server in shown if "running" in self._cells[server].values()] or shown[-_ROWS:]
        for server in shown[:_ROWS]:
            marks = [MARKS[self._cells[server].get(stage, "waiting")] for stage in self._stages]
            cells = [Text(word, style) if word != "waiting" else Text("·", "dim") for word, style in marks]
            table.add_row(Text(server), *cells, Text(self._notes.get(server, "")))
        return table
