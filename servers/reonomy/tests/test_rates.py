"""The pace of calls, by a clock of the test."""

from __future__ import annotations

import asyncio

from reonomy_mcp.rates import Pace


def begun(pace_of: list[tuple[int, float]], calls: int) -> list[float]:
    now = 0.0
    times: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def work() -> None:
        pace = Pace(*pace_of, clock=lambda: now, sleep=sleep)
        for _ in range(calls):
            await pace.wait()
            times.append(round(now, 6))

    asyncio.run(work())
    return times


def test_a_window_lets_so_many_begin() -> None:
    assert begun([(2, 1.0)], 5) == [0, 0, 1, 1, 2]


def test_all_windows_hold() -> None:
    times = begun([(2, 1.0), (20, 60.0)], 41)
    assert times[19] == 9
    assert times[20] == 60
    assert times[40] == 120
    for first, last in zip(times, times[20:], strict=False):
        assert last - first >= 60
