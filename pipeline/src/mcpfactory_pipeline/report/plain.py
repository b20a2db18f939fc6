"""A run as plain lines, for pipes, files and CI logs."""

from __future__ import annotations

from typing import TextIO

from mcpfactory_pipeline.events import RunEvent
from mcpfactory_pipeline.report.words import lines_of

__all__ = ["PlainReporter"]


class PlainReporter:
    """Writes a line when something happened; nothing moves, nothing is coloured."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def emit(self, event: RunEvent) -> None:
        """Writes the lines of one event."""
        for line in lines_of(event):
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to end."""
