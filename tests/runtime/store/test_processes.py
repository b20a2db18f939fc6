"""Which processes of a store live, and that one that was only slow is among them again."""

from __future__ import annotations

import asyncio

import pytest

from mcpfactory_runtime.store.memory import MemoryStore
from mcpfactory_runtime.store.processes import Processes
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("lost", ["the lease", "everything"])
async def test_a_process_that_counted_as_dead_is_seen_again_by_the_others(lost: str) -> None:
    store = MemoryStore(clock=lambda: 0.0)  # no lease is over by itself
    mine, other = Processes(store, lease=0.01), Processes(store)
    lapsed = asyncio.Event()

    async def on_lapse() -> None:
        lapsed.set()

    mine.on_lapse = on_lapse
    await mine.join()
    assert await other.others() == [mine.id]
    if lost == "everything":  # the database began anew
        store._spaces.clear()
    else:
        await store.drop(f"process/{mine.id}")
        assert await other.others() == []
    async with asyncio.timeout(PATIENCE):
        await lapsed.wait()
    assert await other.alive(mine.id)
    assert await other.others() == [mine.id]
    await mine.leave()
    assert await other.others() == []
