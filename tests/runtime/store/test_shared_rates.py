"""The rate of a tool, counted by two servers that share a store of each kind: in memory, in a file and in a real Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime import McpError, Server
from mcpfactory_runtime.server.middleware import RateLimit
from mcpfactory_runtime.server.rates import Rates
from mcpfactory_runtime.server.shared_rates import SharedRates
from mcpfactory_runtime.store.base import SharedStore
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio


def limited(store: SharedStore, clock: Any) -> Server:
    whole, part = Server("whole"), Server("part")
    part.add_middleware(RateLimit({"double": "3/m"}, clock=clock, now=clock))

    @part.tool
    async def double(number: int) -> int:
        return number * 2

    whole.mount(part)
    whole.share(store)
    return whole


async def said(client: Any) -> str:
    return str((await client.call_tool("double", {"number": 1}))["content"][0]["text"])


async def test_two_servers_count_together_and_tokens_come_back(store: SharedStore) -> None:
    now = 1000.0
    servers = [limited(store, lambda: now) for _ in range(2)]
    async with connect(servers[0]) as one, connect(servers[1]) as two:
        together = await asyncio.gather(*(said(client) for client in (one, two) * 4))
        refused = "double may be called 3 times in 60 s; the next call may come in 20 s."
        assert sorted(together) == ["2"] * 3 + [refused] * 5
        now += 20
        assert sorted([await said(one), await said(two)]) == ["2", refused]


async def admitted(rates: SharedRates, method: str = "tools/call", client: str = "ada") -> bool:
    allowance, admit = rates.of(client, method)
    assert allowance.calls is None, "the store counts them, not this process as well"
    assert admit is not None
    try:
        await admit()
    except McpError as error:
        return bool(error.data["limit"] != "calls" or error.data["retryAfterMs"] <= 0)
    return True


async def test_requests_of_a_client_without_a_session_are_counted_together(store: SharedStore) -> None:
    now = 1000.0
    one, other = (SharedRates(Rates({"calls": "3/m"}), store, lambda: now) for _ in range(2))
    together = await asyncio.gather(*(admitted(rates) for rates in (one, other) * 4))
    assert together.count(True) == 3
    assert await admitted(one, client="grace"), "each client has tokens of its own"
    now += 20
    assert [await admitted(rates) for rates in (one, other)] == [True, False]
