"""Middleware that logs requests, timings and errors."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.layers import Middleware, NextRequest, NextTool, Request, ToolRequest
from mcpfactory_runtime.server.signature import ArgumentsError
from mcpfactory_runtime.types import Json

log = logging.getLogger("mcpfactory_runtime.requests")


class Logging(Middleware):
    """Middleware that logs caller, request, outcome and duration as a JSON line at level INFO of `logger`.

    Args:
        logger: default: `mcpfactory_runtime.requests`.
        arguments: also log the arguments of tools. They may contain private data.
        clock: returns seconds.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        arguments: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._logger = logger or log
        self._arguments = arguments
        self._clock = clock

    async def on_request(self, request: Request, call_next: NextRequest) -> Json:
        """Log a request."""
        return await self._logged({"method": request.method}, request.context, lambda: call_next(request))

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Log a tool."""
        line: Json = {"tool": call.name}
        if self._arguments:
            line["arguments"] = dict(call.arguments)
        return await self._logged(line, call.context, lambda: call_next(call))

    async def _logged(self, line: Json, context: Context, answer: Callable[[], Any]) -> Json:
        begun = self._clock()
        line["id"] = context.request_id
        principal = context.principal
        client = {
            "principal": principal.subject if principal is not None else None,
            "session": context.session_id,
            "address": context.client_address,
            "client": context.client_info.get("name"),
        }
        line.update({name: value for name, value in client.items() if value is not None})
        outcome = "cancelled"
        try:
            result: Json = await answer()
            outcome = "failed" if result.get("isError") else result.get("resultType", "ok")
        except McpError as error:
            outcome = f"error {error.code}"
            raise
        except Exception as error:
            outcome = type(error).__name__
            raise
        else:
            return result
        finally:
            line["outcome"] = "ok" if outcome == "complete" else outcome
            line["ms"] = round((self._clock() - begun) * 1000, 3)
            self._logger.info("%s", json.dumps(line, default=str))


Words = str | Callable[[Exception], str]


class ErrorShaping(Middleware):
    """Turns exceptions into words for the model: `ErrorShaping({KeyError: "There is no such note.", OSError: str})`.

    Without it the model reads that the tool failed, and the log has the rest: the text of an exception may hold secrets.

    Args:
        words: exception → the text, or what makes one of it. The first entry that fits is used.
    """

    def __init__(self, words: Mapping[type[Exception], Words]) -> None:
        self._words = dict(words)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool.

        Raises:
            ToolError: with the words for what the tool raised.
        """
        try:
            return await call_next(call)
        except (ToolError, McpError, ArgumentsError):
            raise
        except tuple(self._words) as error:
            words = next(words for kind, words in self._words.items() if isinstance(error, kind))
            raise ToolError(words if isinstance(words, str) else words(error)) from error
