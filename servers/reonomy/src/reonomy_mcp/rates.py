"""How many requests Reonomy takes, and the waiting that keeps to it: who is over gets 429, and is locked out for a while."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from mcpfactory_runtime import ToolCall

__all__ = ["Pace", "keep_pace"]


class Pace:
    """Lets so many calls begin within each of some windows, in the order in which they came.

    Args:
        *windows: pairs of calls and seconds.
        clock: gives the time in seconds.
        sleep: waits.
    """

    def __init__(
        self,
        *windows: tuple[int, float],
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._windows, self._clock, self._sleep = windows, clock, sleep
        self._begun: deque[float] = deque(maxlen=max(count for count, _ in windows))
        self._turn: asyncio.Lock | None = None

    async def wait(self) -> None:
        """Return when the next call may begin."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        now = self._clock or asyncio.get_running_loop().time
        async with self._turn:
            while (left := self._left(now())) > 0:
                await self._sleep(left)
            self._begun.append(now())

    def _left(self, now: float) -> float:
        """Return the seconds until every window has room."""
        begun = list(self._begun)
        return max(
            (begun[-count] + seconds - now for count, seconds in self._windows if len(begun) >= count), default=0.0
        )


_MARGIN: Final = 1.3  # the first requests of a second may arrive late, and the next ones at once
_SEARCHES: Final = Pace((5, _MARGIN))
_SINGLE: Final = Pace((5, _MARGIN))
_MANY: Final = Pace((2, _MARGIN), (20, 60 * _MARGIN))
_OF: Final = {
    "search_properties": _SEARCHES,
    "find_address": _SEARCHES,
    "find_parcels": _SEARCHES,
    "get_property": _SINGLE,
    "get_many_properties": _MANY,
}


async def keep_pace(call: ToolCall) -> None:
    """Wait until Reonomy takes this call."""
    await _OF[call.name].wait()
