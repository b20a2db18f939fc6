"""What every store promises: the same tests in memory, in a file and in a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.storage import create_store
from mcpfactory_runtime.storage.base import ExpectedEntry, SharedStore, StoreError
from mcpfactory_runtime.storage.redis import RedisStore
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

LONG = 600.0
SOON = 0.02


async def gone(look: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while await look():  # noqa: ASYNC110 - time itself is what is waited for
            await asyncio.sleep(0)


async def within_soon(steps: Callable[[], Awaitable[None]]) -> None:
    """Carry out steps before what is kept for SOON is gone; a busy machine may need several tries."""
    began = -SOON
    while time.monotonic() - began >= SOON:
        began = time.monotonic()
        await steps()


async def test_entries_are_read_as_they_were_written(store):
    data = bytes(range(256))
    assert await store.get("a", "k") is None
    assert await store.write("a", [("k", data), ("empty", b""), ("ключ 🗝", b"1")], seconds=LONG)
    assert await store.get("a", "k") == data
    assert await store.get("a", "empty") == b""
    assert await store.get("a", "ключ 🗝") == b"1"
    assert await store.get("b", "k") is None
    await store.drop("a")
    assert await store.get("a", "k") is None


async def test_a_scan_is_in_the_order_of_keys(store):
    await store.write(
        "s", [(key, key.encode()) for key in ("e/2", "e/10", "e/", "e/1", "d", "f", "e", "e/é")], seconds=LONG
    )
    assert [key for key, _ in await store.scan("s")] == ["d", "e", "e/", "e/1", "e/10", "e/2", "e/é", "f"]
    assert await store.scan("s", "e/", after="e/1", limit=2) == [("e/10", b"e/10"), ("e/2", b"e/2")]
    assert [key for key, _ in await store.scan("s", "e/", after="a")] == ["e/", "e/1", "e/10", "e/2", "e/é"]
    assert await store.scan("s", "e/", after="g") == []
    assert await store.scan("other") == []


async def test_entries_are_removed_one_by_one_and_by_what_they_begin_with(store):
    await store.write("s", [(key, b"1") for key in ("a/1", "a/2", "a", "b")], seconds=LONG)
    await store.write("s", [("b", None), ("missing", None)], seconds=LONG)
    assert [key for key, _ in await store.scan("s")] == ["a", "a/1", "a/2"]
    await store.write("s", [("a/*", None), ("c", b"1")], seconds=LONG)
    assert [key for key, _ in await store.scan("s")] == ["a", "c"]


async def test_a_write_that_expects_something_else_changes_nothing(store):
    assert await store.write("s", [("k", b"1"), ("other", b"1")], seconds=LONG, expected=ExpectedEntry("k", None))
    assert not await store.write("s", [("k", b"2"), ("other", b"2")], seconds=LONG, expected=ExpectedEntry("k", None))
    assert not await store.write("s", [("k", b"2"), ("other", b"2")], seconds=LONG, expected=ExpectedEntry("k", b"0"))
    assert not await store.write("s", [("k", b"2")], seconds=LONG, expected=ExpectedEntry("missing", b""))
    assert await store.scan("s") == [("k", b"1"), ("other", b"1")]
    assert await store.write("s", [("k", b"2")], seconds=LONG, expected=ExpectedEntry("k", b"1"))
    assert await store.get("s", "k") == b"2"


async def test_of_many_who_expect_the_same_one_succeeds(store):
    done = await asyncio.gather(
        *(store.write("s", [("k", b"%d" % n)], seconds=LONG, expected=ExpectedEntry("k", None)) for n in range(20))
    )
    assert done.count(True) == 1
    assert await store.get("s", "k") == b"%d" % done.index(True)


async def test_a_space_is_forgotten_as_a_whole(store):
    await store.write("s", [("k", b"1")], seconds=LONG)
    await store.write("s", [("l", b"1")], seconds=SOON)
    await gone(lambda: store.get("s", "k"))
    assert await store.scan("s") == []
    assert await store.write("s", [("l", b"2")], seconds=LONG, expected=ExpectedEntry("l", None))
    assert await store.scan("s") == [("l", b"2")]


async def test_a_write_without_changes_prolongs_a_space(store):
    async def prolong() -> None:
        await store.write("s", [("k", b"1")], seconds=SOON)
        await store.write("t", [("k", b"1")], seconds=SOON)
        await store.write("s", [], seconds=LONG, expected=ExpectedEntry("k", b"1"))

    await within_soon(prolong)
    await gone(lambda: store.get("t", "k"))
    assert await store.get("s", "k") == b"1"


async def test_a_mailbox_gives_each_message_once_and_in_order(store):
    assert await store.receive("m", 0) == []
    for number in range(5):
        await store.send("m", b"%d" % number, seconds=LONG)
    await store.send("other", b"\xff\x00", seconds=LONG)
    assert await store.receive("m", 0) == [b"0", b"1", b"2", b"3", b"4"]
    assert await store.receive("m", 0) == []
    assert await store.receive("other", 0) == [b"\xff\x00"]


async def test_who_waits_for_a_mailbox_is_woken(store):
    waiting = asyncio.ensure_future(store.receive("m", TIMEOUT))
    await asyncio.sleep(0)
    await store.send("m", b"1", seconds=LONG)
    assert await waiting == [b"1"]
    waiting = asyncio.ensure_future(store.receive("m", TIMEOUT))  # the next one, too
    await asyncio.sleep(0)
    await store.send("m", b"2", seconds=LONG)
    assert await waiting == [b"2"]


async def test_a_mailbox_that_nobody_reads_is_forgotten(store):
    async def send() -> None:
        await store.receive("n", 0)
        await store.send("n", b"1", seconds=SOON)
        await store.send("n", b"2", seconds=LONG)

    await within_soon(send)
    await store.send("m", b"1", seconds=SOON)
    await store.write("s", [("k", b"1")], seconds=SOON)
    await gone(lambda: store.get("s", "k"))  # so the messages, which came before, are over, too
    assert await store.receive("m", 0) == []
    assert await store.receive("n", 0) == [b"1", b"2"]


async def test_two_of_one_file_see_the_same(tmp_path):
    one, two = (create_store(f"sqlite:///{tmp_path / 'store.db'}") for _ in range(2))
    await one.write("s", [("k", b"1")], seconds=LONG)
    assert await two.get("s", "k") == b"1"
    assert not await two.write("s", [("k", b"2")], seconds=LONG, expected=ExpectedEntry("k", None))
    await one.send("m", b"1", seconds=LONG)
    assert await two.receive("m", TIMEOUT) == [b"1"]
    assert (tmp_path / "store.db").stat().st_mode & 0o077 == 0
    await one.aclose()
    await two.aclose()


@parametrize_subtests("address", ["", "memory", "memory://x", "sqlite:store.db", "sqlite:///", "http://a", "redis:a"])
def test_what_names_no_store_is_refused_without_being_repeated(address):
    with pytest.raises(ValueError, match=r"invalid store address .*\nhint: use one of memory:") as caught:
        create_store(address)
    assert "//a" not in str(caught.value)


async def test_a_store_that_does_not_answer_says_what_to_do(tmp_path: Path):
    absent: list[SharedStore] = [create_store(f"unix://{tmp_path}/nobody"), create_store(f"sqlite:///{tmp_path}")]
    for one in absent:
        with pytest.raises(StoreError, match="hint: "):
            await one.open()
        await one.aclose()


async def test_a_message_that_was_taken_out_of_redis_is_not_lost_when_the_next_ones_cannot_be():
    class Failing:
        async def blpop(self, *_: object, **__: object) -> tuple[bytes, bytes]:
            return b"box", b"first"

        async def lpop(self, *_: object) -> None:
            raise OSError("connection lost")

    store = RedisStore("redis://localhost")
    store._client = Failing()
    assert await store.receive("box", 1.0) == [b"first"]


def test_the_address_of_a_redis_store_may_set_the_prefix_of_keys() -> None:
    made = create_store("valkey://:secret@host:1/2?prefix=blue&socket_keepalive=yes")
    assert isinstance(made, RedisStore)
    assert (made._address, made._names("x")[0]) == ("redis://:secret@host:1/2?socket_keepalive=yes", "blue:s:x")
    plain = create_store("unix:///tmp/redis.sock?db=3")
    assert isinstance(plain, RedisStore)
    assert (plain._address, plain._names("x")[0]) == ("unix:///tmp/redis.sock?db=3", "mcp:s:x")
