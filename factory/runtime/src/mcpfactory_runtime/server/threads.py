"""`def` handlers run in worker threads; here it is known whether one still runs, for threads cannot be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import Any

__all__ = ["busy", "in_thread"]

_running: set[int] = set()


async def in_thread(handler: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a handler in a worker thread, with this task's context variables."""

    def call() -> Any:
        _running.add(get_ident())
        try:
            return handler(**arguments)
        finally:
            _running.discard(get_ident())

    return await asyncio.to_thread(call)


def busy() -> bool:
    """Whether a handler is running in a worker thread now."""
    return bool(_running)
