"""A run as plain lines, for pipes, files and CI logs."""

from __future__ import annotations

import shutil
from typing import Final, TextIO

from mcpfactory_pipeline.base.events import RunEvent
from mcpfactory_pipeline.base.printable import cell_width, wrap
from mcpfactory_pipeline.report.words import event_lines

__all__ = ["PlainReporter"]

_INDENT: Final = "    "


class PlainReporter:
    """Writes a line when something happened; nothing moves, nothing is coloured. On a terminal lines are folded."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._folds = stream.isatty()

    def emit(self, event: RunEvent) -> None:
        """Write the lines of one event."""
        for line in event_lines(event):
            for part in _folded(line) if self._folds else (line,):
                self._stream.write(part + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to end."""


def _folded(line: str) -> list[str]:
    """Return a line within the terminal, what does not fit below it and indented; lines of a log keep every character."""
    width = shutil.get_terminal_size().columns
    if cell_width(line) <= width:
        return [line]
    head, bar, text = line.partition(" | ")
    if bar and line.startswith("  "):
        most = max(1, (width - cell_width(head + bar)) // max((1, *map(cell_width, text))))
        return [head + bar + text[start : start + most] for start in range(0, len(text) or 1, most)]
    first, *rest = wrap(line, width - len(_INDENT))
    return [first, *(_INDENT + part for part in rest)]
