"""Tests of the rate limiter with a fake clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect

from reonomy_mcp import rates
from reonomy_mcp.rates import Pace
from reonomy_mcp.server import server


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


def test_a_call_counts_from_its_answer() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def work() -> None:
        nonlocal now
        pace = Pace((2, 1.0), clock=lambda: now, sleep=sleep)
        first, second = object(), object()
        await pace.wait(first)
        await pace.wait(second)
        now = 0.75  # the first requests of a process arrive late
        pace.ended(first)
        await pace.wait(object())
        assert now == 1.0  # the second has no response, so it counts from its start
        pace.ended(second)
        await pace.wait(object())
        assert now == 2.0

    asyncio.run(work())


def test_while_nothing_was_answered_what_is_on_its_way_counts_as_of_now_but_not_for_ever() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def work() -> None:
        pace = Pace((1, 1.0), clock=lambda: now, sleep=sleep)
        await pace.wait(object())
        await pace.wait(object())
        assert now == 10.0

    asyncio.run(work())


def test_a_client_is_told_that_its_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []

    async def sleep(_: float) -> None:
        while len(told) < 2:  # the fake clock waits for two progress reports
            await asyncio.sleep(0)

    monkeypatch.setitem(
        rates._OF, "get_property", Pace((1, 60.0), clock=lambda: 99.0 if len(told) > 1 else 0.0, sleep=sleep)
    )
    monkeypatch.setattr(rates, "_EVERY", 0.001)
    monkeypatch.setenv("REONOMY_BASE_URL", "http://127.0.0.1:9")  # nothing listens: only the waiting matters
    monkeypatch.setenv("REONOMY_ALLOW_PRIVATE", "1")
    monkeypatch.setenv("REONOMY_USERNAME", "x")
    monkeypatch.setenv("REONOMY_PASSWORD", "y")

    async def work() -> None:
        server.offer(mode="full", profile="full")
        async with connect(server) as client:
            ask = {"property_id": "0a1b2c3d-0000-4000-8000-000000000001"}
            await client.call_tool("get_property", ask)
            assert told == []
            await client.call_tool("get_property", ask, progress=told.append)

    asyncio.run(work())
    assert [one["message"].startswith("Waiting for Reonomy") for one in told[:2]] == [True, True]
    assert told[0]["progress"] < told[1]["progress"]
