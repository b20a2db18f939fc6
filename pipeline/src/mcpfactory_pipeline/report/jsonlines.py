"""A run as JSON lines, one event each."""

from __future__ import annotations

import json
from typing import TextIO

from mcpfactory_pipeline.base.events import RunEvent

__all__ = ["JsonReporter"]


class JsonReporter:
    """Writes each event as one line of JSON; the last is `run.finished`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def emit(self, event: RunEvent) -> None:
        """Write one line."""
        self._stream.write(json.dumps(event.to_json(), ensure_ascii=False) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to end."""
