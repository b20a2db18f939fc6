"""Calls that are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest

__all__ = ["Retry"]

Json = dict[str, Any]


class Retry(Middleware):
    """Calls a tool again that raised one of some exceptions, after a wait that doubles each time.

    Generated tools retry calls of their API themselves (docs/reference/upstream.md); this is for tools of one's own.

    Args:
        attempts: calls in all.
        wait: seconds before the second one.
        on: exceptions after which to try again.
        tools: names; default: tools that say they are read-only or idempotent.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        attempts: int = 3,
        wait: float = 0.2,
        *,
        on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        tools: Iterable[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self._attempts = attempts
        self._wait = wait
        self._on = on
        self._tools = frozenset(tools)
        self._sleep = sleep

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool, again where that may help."""
        attempts = self._attempts if (call.name in self._tools if self._tools else call.idempotent) else 1
        for attempt in range(1, attempts):
            try:
                return await call_next(call)
            except self._on:
                await self._sleep(self._wait * 2 ** (attempt - 1))
        return await call_next(call)
