"""How many requests Reonomy takes, and the waiting that keeps to it: who is over gets 429, and is locked out for a while."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from mcpfactory_runtime import ToolCall, ToolResult

__all__ = ["Pace", "keep_pace", "note_end"]


class Pace:
    """Lets so many calls begin within each of some windows, in the order in which they came.

    A call counts from when it was answered, if that is known: its request arrived at some time between, late where the first one loads
    what it needs, and what begins a window after the answer comes a window after the request, too.

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
        self._calls: deque[tuple[float, object]] = deque(maxlen=max(count for count, _ in windows))
        self._answered = False
        self._turn: asyncio.Lock | None = None

    async def wait(self, call: object = None) -> None:
        """Return when this call may begin."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        now = self._now
        async with self._turn:
            while (left := self._left(now())) > 0:
                await self._sleep(left)
            self._calls.append((now(), call))

    def ended(self, call: object) -> None:
        """Note that a call was answered."""
        self._answered = True
        for number, (_, one) in enumerate(self._calls):
            if one is call:
                self._calls[number] = (self._now(), one)

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()

    def _left(self, now: float) -> float:
        """Return the seconds until every window has room."""
        cold = (
            now - _LOADING if not self._answered else now
        )  # nothing was answered yet: what is on its way counts as of now
        begun = sorted(now if call is not None and when > cold else when for when, call in self._calls)
        return max(
            (begun[-count] + seconds - now for count, seconds in self._windows if len(begun) >= count), default=0.0
        )


_LOADING: Final = 10.0  # seconds that the first requests of a process may take, or come to nothing
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

_WAITING: Final = "Waiting for Reonomy's limits: 5 requests a second; for many properties 2 a second and 20 a minute"
_EVERY: Final = 5.0  # seconds between two reports of progress


async def keep_pace(call: ToolCall) -> None:
    """Wait until Reonomy takes this call; the client is told meanwhile, so that it does not give up."""
    telling = asyncio.create_task(_tell(call))
    try:
        await _OF[call.name].wait(call)
    finally:
        telling.cancel()


async def _tell(call: ToolCall) -> None:
    """Report that the call waits for its turn, again and again; the steps are small, since progress must grow and counts properties."""
    state = call.context.request_state
    while True:
        await asyncio.sleep(_EVERY)
        state["waited"] = state.get("waited", 0) + 1
        call.context.report_progress(state.get("read", 0) + state["waited"] / 1000, message=_WAITING)


def note_end(call: ToolCall, _: ToolResult) -> None:
    """Count the call from here on."""
    _OF[call.name].ended(call)
