"""Timeouts of tests, which end hanging tests and do not measure speed.

`TIMEOUT` is the one limit of all waits (`tests/repository/test_limits.py` finds any other); the limit of a whole test is in `pyproject.toml`.
Tests of timeouts move the clock (`advance_clock`), or use a peer that never ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

TIMEOUT: Final = 120.0
"""Seconds; a hundred times the slowest wait on an idle machine."""
_PAUSE: Final = 0.01


def wait_until(condition: Callable[[], Any], why: Callable[[], object] = lambda: "it never came about") -> None:
    """Poll until the condition holds, and yield the processor in between.

    Raises:
        AssertionError: it does not hold within `TIMEOUT`; the message is `why`.
    """
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(_PAUSE)


async def advance_clock(seconds: float) -> None:
    """Move the clock of the running event loop, and run all callbacks that are due then."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds
    for _ in range(20):
        await asyncio.sleep(0)
