"""Rate limiting for Reonomy, which returns 429 and blocks clients above its limits for a while."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from mcpfactory_runtime import ToolCall, ToolResult

__all__ = ["Pace", "keep_pace", "note_end"]


class Pace:
    """Limiter of calls per time window, first come first served.

    A call counts from the time of its response, if known. Its request arrived before that, possibly long after it started,
    so a call that starts one window after the response is also one window after the request.

    Args:
        *windows: pairs (maximum calls, seconds).
        clock: returns the time in seconds.
        sleep: coroutine that waits for some seconds.
    """

    def __init__(
        self,
        *windows: tuple[int, float],
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._windows, self._clock, self._sleep = windows, clock, sleep
        self._calls: deque[tuple[float, object]] = deque(maxlen=max(count for count, _ in windows))
        self._answered = False
        self._turn: asyncio.Lock | None = None

    async def wait(self, call: object = None) -> None:
        """Wait until this call may start."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        now = self._now
        async with self._turn:
            while (left := self._left(now())) > 0:
                await self._sleep(left)
            self._calls.append((now(), call))

    def ended(self, call: object) -> None:
        """Count a call from now, the time of its response."""
        self._answered = True
        for number, (_, one) in enumerate(self._calls):
            if one is call:
                self._calls[number] = (self._now(), one)

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()

    def _left(self, now: float) -> float:
        """Return the seconds until every window has room."""
        cold = now - _LOADING if not self._answered else now  # before the first response, pending calls count as of now
        begun = sorted(now if call is not None and when > cold else when for when, call in self._calls)
        return max(
            (begun[-count] + seconds - now for count, seconds in self._windows if len(begun) >= count), default=0.0
        )


_LOADING: Final = 10.0  # seconds that the first requests of a process may take, including imports
_MARGIN: Final = 1.3  # factor: requests may arrive late, and the following ones at once
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

_WAITING: Final = "Waiting for Reonomy's limits: 5 requests a second; for many properties 2 a second and 20 a minute"
_EVERY: Final = 5.0  # seconds between progress reports


async def keep_pace(call: ToolCall) -> None:
    """Wait for the rate limit before a call, and report progress, so that the client does not time out."""
    telling = asyncio.create_task(_tell(call))
    try:
        await _OF[call.name].wait(call)
    finally:
        telling.cancel()


async def _tell(call: ToolCall) -> None:
    """Report progress in intervals while a call waits. The steps are tiny, because progress must grow and counts properties."""
    state = call.context.request_state
    while True:
        await asyncio.sleep(_EVERY)
        state["waited"] = state.get("waited", 0) + 1
        call.context.report_progress(state.get("read", 0) + state["waited"] / 1000, message=_WAITING)


def note_end(call: ToolCall, _: ToolResult) -> None:
    """Mark a call as answered in its limiter."""
    _OF[call.name].ended(call)
