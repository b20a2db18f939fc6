"""Results of tools that processes keep for each other: in memory, in a file and in a real Redis."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime import Server, ToolError
from mcpfactory_runtime.server.middleware import Caching
from mcpfactory_runtime.store.address import create_store
from mcpfactory_runtime.store.base import SharedStore, StoreError
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio
READS = {"readOnlyHint": True}


class Reading:
    """A server whose tool says how often it was called."""

    def __init__(self, store: SharedStore | None, *, version: str = "1", together: bool = True) -> None:
        self.calls, self.now = 0, 1000.0
        self.server = Server("reading", version=version)
        self.cache = Caching(60, together=together, clock=lambda: self.now, now=lambda: self.now)
        self.server.add_middleware(self.cache)
        self.server.share(store)

        @self.server.tool(annotations=READS)
        async def read(key: str, size: int = 0, fail: bool = False) -> str:
            self.calls += 1
            if fail:
                raise ToolError("no")
            return f"{key} {self.calls} {id(self)}" + "x" * size

    async def say(self, **arguments: Any) -> str:
        async with connect(self.server) as client:
            return str((await client.call_tool("read", {"key": "a", **arguments}))["content"][0]["text"])


async def test_a_result_of_one_process_answers_the_other(store: SharedStore) -> None:
    one, other = Reading(store), Reading(store)
    first = await one.say()
    assert await other.say() == first
    assert (one.calls, other.calls) == (1, 0)
    assert await other.say(key="b") != first
    assert await one.say() == first
    other.now += 61
    assert await other.say() != first, "it is too old"
    assert (one.calls, other.calls) == (1, 2)


async def test_where_the_store_fails_each_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    store = create_store("memory:")
    one, other = Reading(store), Reading(store)

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreError("gone")

    monkeypatch.setattr(store, "get", fail)
    monkeypatch.setattr(store, "write", fail)
    first = await one.say()
    assert await one.say() == first
    assert await other.say() != first
    assert (one.calls, other.calls) == (1, 1)
