"""A run as a picture that follows it, on a terminal; lines about what went wrong stay above it."""

from __future__ import annotations

import time
from typing import Final, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from mcpfactory_pipeline.base.events import LogLines, RunEvent, RunFinished, RunStarted, ServerTrouble, StepFinished
from mcpfactory_pipeline.report.lines import event_lines
from mcpfactory_pipeline.report.run_picture import RunPicture, Span

__all__ = ["LiveReporter"]

_A_SECOND: Final = 4  # times that the picture is drawn


class LiveReporter:
    """Draws servers × stages while the run goes on, and leaves the last picture with every server on the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._picture = RunPicture(time.monotonic)
        self._live: Live | None = None

    def emit(self, event: RunEvent) -> None:
        """Take one event into the picture."""
        self._picture.take(event)
        if isinstance(event, RunStarted) and event.servers:
            self._live = Live(
                _Drawn(self._picture), console=self._console, refresh_per_second=_A_SECOND, transient=True
            )
            self._live.start()
        elif isinstance(event, RunFinished):
            self.close()
            self._print(event)
        elif isinstance(event, LogLines | ServerTrouble | RunStarted) or (
            isinstance(event, StepFinished) and event.outcome != "passed"
        ):
            self._print(event)

    def close(self) -> None:
        """Leave the last picture on the terminal."""
        if self._live:
            self._live.stop()
            self._live = None
            for line in self._picture.last(self._console.width):
                self._console.print(_text(line), no_wrap=True)

    def _print(self, event: RunEvent) -> None:
        for line in event_lines(event):
            self._console.print(Text(line))


class _Drawn:
    """The picture as rich draws it: anew each time, in the size that the terminal has then."""

    def __init__(self, picture: RunPicture) -> None:
        self._picture = picture

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        for line in self._picture.lines(console.width, console.height):
            yield _text(line)


def _text(line: list[Span]) -> Text:
    return Text.assemble(*((span.text, span.style) for span in line), no_wrap=True, overflow="crop", end="\n")
