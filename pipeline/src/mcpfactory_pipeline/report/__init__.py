"""Showing a run: a live table on a terminal, plain lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import sys
from typing import TextIO

from mcpfactory_pipeline.base.events import Reporter
from mcpfactory_pipeline.report.lines import JsonReporter, PlainReporter
from mcpfactory_pipeline.report.table import status_table

__all__ = ["JsonReporter", "PlainReporter", "make_reporter", "status_table"]


def make_reporter(kind: str, stream: TextIO | None = None) -> Reporter:
    """Return the reporter of that kind (`live`, `plain` or `json`) on a stream, stdout by default."""
    stream = stream or sys.stdout
    if kind == "live":
        from mcpfactory_pipeline.report.live import LiveReporter  # noqa: PLC0415 - loads rich, which the others do without

        return LiveReporter(stream)
    return JsonReporter(stream) if kind == "json" else PlainReporter(stream)
