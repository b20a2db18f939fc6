"""How long tests wait: a limit ends a hang, and never judges how fast a machine is.

`TIMEOUT` is the one limit of all waits (`tests/repository/test_limits.py` finds any other); the limit of a whole test is in `pyproject.toml`.
Where a limit is the behaviour that is tested, the clock is moved (`advance_clock`), or the peer is one that would never end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

TIMEOUT: Final = 120.0
"""Seconds; a hundred times what an idle machine needs for the slowest of what is waited for."""
_PAUSE: Final = 0.01


def wait_until(condition: Callable[[], Any], why: Callable[[], object] = lambda: "it never came about") -> None:
    """Ask until the condition holds, and leave the processor to whom it depends on in between.

    Raises:
        AssertionError: when it does not hold within `TIMEOUT`; says `why`.
    """
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(_PAUSE)


async def advance_clock(seconds: float) -> None:
    """Move the clock of the running event loop, and let everything run that is due then."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds
    for _ in range(20):
        await asyncio.sleep(0)
