"""How long requests and tools take."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from mcpfactory_runtime.server.middleware.protocol import Middleware, NextRequest, NextTool, Request, ToolRequest

__all__ = ["Timing"]

Json = dict[str, Any]
Report = Callable[[str, float], None]

log = logging.getLogger("mcpfactory_runtime.timing")


class Timing(Middleware):
    """Reports the duration of each request, and of each tool's call.

    Args:
        report: is given what it was (`tools/list`, `tool search`) and seconds; default: a line in the log.
        clock: seconds.
    """

    def __init__(self, report: Report | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._report = report or _log
        self._clock = clock

    async def on_request(self, request: Request, call_next: NextRequest) -> Json:
        """Time a request."""
        begun = self._clock()
        try:
            return await call_next(request)
        finally:
            self._report(request.method, self._clock() - begun)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Time a tool."""
        begun = self._clock()
        try:
            return await call_next(call)
        finally:
            self._report(f"tool {call.name}", self._clock() - begun)


def _log(what: str, seconds: float) -> None:
    log.info("%s took %.1f ms", what, seconds * 1000)
