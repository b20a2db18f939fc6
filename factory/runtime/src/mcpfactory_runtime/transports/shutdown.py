"""Time limits for the shutdown of a server and its process."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

log = logging.getLogger(__name__)

DRAIN: Final = 10
"""Maximum seconds for requests in flight, or for a startup that has not ended, after the server begins to shut down."""

LIFESPAN_END: Final = 10
"""Maximum seconds for the code after `yield` in the lifespan."""

_REST: Final = 5  # maximum seconds for everything else


class LimitedEnd(AbstractAsyncContextManager[None]):
    """Context manager that cancels the exit of another context manager after `LIFESPAN_END` seconds."""

    def __init__(self, inner: AbstractAsyncContextManager[None]) -> None:
        self._inner = inner

    async def __aenter__(self) -> None:
        await self._inner.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        try:
            async with asyncio.timeout(LIFESPAN_END) as limit:
                return await self._inner.__aexit__(*error)
        except TimeoutError:
            if not limit.expired():
                raise
            log.error("the lifespan was canceled, because it did not end within %g s", LIFESPAN_END)
            return None


def limit_exit() -> None:
    """End this process after the time limits, even if a thread or blocking code never returns."""
    timer = threading.Timer(DRAIN + LIFESPAN_END + _REST, _exit)
    timer.daemon = True
    timer.start()


def _exit() -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write("error: the process ends now, although some code still runs\n")
        sys.stderr.flush()
    os._exit(0)
