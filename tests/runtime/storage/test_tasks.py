"""All stores behave alike, by the clock they were given; the file says what is wrong with it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from secrets import token_hex

import pytest

from mcpfactory_runtime.server.tasks.manager import ENVIRONMENT, TaskOptions, read_task_options
from mcpfactory_runtime.storage.base import MemoryStore, ProcessRegistry, SharedStore, StoreError
from mcpfactory_runtime.storage.redis import RedisStore
from mcpfactory_runtime.storage.sqlite import SqliteStore
from mcpfactory_runtime.storage.tasks import MemoryTaskStore, SqliteTaskStore, Task, TaskStore
from mcpfactory_runtime.testing import connect as connect_memory
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import YES, begin, code, core, extension, get
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def store(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> AsyncIterator[TaskStore]:
    shared: SharedStore = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "store.db"),
        "redis": lambda: RedisStore(request.getfixturevalue("redis_address"), f"{token_hex(4)}:"),
    }[request.param]()
    made = TaskStore(shared, clock=clock)
    yield made
    await made.close()
    await shared.aclose()


def task(name: str, owner: str = "ann", ttl: int | None = 1_000) -> Task:
    return Task(name, owner, "tool", 1_000_000.0, 1_000_000.0, ttl)


async def test_a_task_exists_until_its_time_is_over_and_no_longer(store: TaskStore, clock: Clock) -> None:
    await store.create(task("short", ttl=1_000))
    await store.create(task("long", ttl=2_000))
    await store.create(task("ever", ttl=None))
    clock.now += 0.999
    assert await store.get("short") is not None
    clock.now += 0.001
    assert await store.get("short") is None
    assert await store.update("short", lambda now: now.cancelled("x")) is None
    listed, more = await store.list("ann", None, 9)
    assert [item.id for item in listed] == ["long", "ever"]
    assert not more
    clock.now += 1
    assert await store.get("long") is None
    assert await store.get("ever") is not None


async def test_lists_are_those_of_one_owner_in_pages(store: TaskStore) -> None:
    for number in range(5):
        await store.create(task(f"a{number}"))
        await store.create(task(f"b{number}", owner="bob"))
    first, more = await store.list("ann", None, 2)
    assert ([item.id for item in first], more) == (["a0", "a1"], True)
    last, more = await store.list("ann", "a2", 2)
    assert ([item.id for item in last], more) == (["a3", "a4"], False)
    assert await store.list("nobody", None, 2) == ([], False)
    for unknown in ("b1", "nothing"):
        with pytest.raises(KeyError):
            await store.list("ann", unknown, 2)


async def test_of_many_changes_at_once_none_is_lost_and_an_end_is_final(store: TaskStore) -> None:
    await store.create(task("a"))
    requests = {f"k{number}": {"method": "m", "params": {}} for number in range(20)}
    await store.update("a", lambda now: now.asked(requests))

    def answer(key: str) -> Callable[[Task], Task | None]:
        return lambda now: now.answered({key: {"result": {}}})

    await asyncio.gather(*(store.update("a", answer(key)) for key in requests))
    answered = await store.get("a")
    assert answered is not None
    assert answered.status == "working"
    assert set(answered.answers) == set(requests)
    ends = await asyncio.gather(
        store.update("a", lambda now: now.cancelled("one")),
        store.update("a", lambda now: now.completed({"content": []})),
        store.update("a", lambda now: now.failed({"code": 1, "message": "three"})),
    )
    assert [end is not None for end in ends] == [True, False, False]
    ended = await store.get("a")
    assert ended is not None
    assert (ended.status, ended.answers) == ("cancelled", {})


@requirement("task-core.ttl")
async def test_a_running_task_ends_with_its_time(store: TaskStore, clock: Clock) -> None:
    server = sample.make(TaskOptions(store, watch=0.01))
    async with connect_memory(server, **core(elicitation=lambda _: YES)) as client:
        made = await begin(client, "in_a_thread", task={"ttl": 500})
        waiting = asyncio.ensure_future(code(client, "tasks/result", {"taskId": made["taskId"]}))
        await get(client, made)
        clock.now += 1
        assert await waiting == -32602
        assert await code(client, "tasks/get", {"taskId": made["taskId"]}) == -32602
        assert (await client.request("tasks/list"))["tasks"] == []
    async with asyncio.timeout(TIMEOUT):
        while sample.RUNNING.is_set():  # until the worker has seen that it was cancelled
            await asyncio.to_thread(lambda: None)


async def test_a_task_whose_process_died_has_failed_and_one_whose_process_lives_has_not(clock: Clock) -> None:
    shared = MemoryStore(clock)
    mine, other = ProcessRegistry(shared), ProcessRegistry(shared)
    one, two = TaskStore(shared, mine, clock), TaskStore(shared, other, clock)
    await one.create(task("a", ttl=None))
    await one.create(task("b", ttl=None))
    done = await one.update("b", lambda now: now.completed({}))
    await other.join()
    assert (await two.get("a"), await two.get("b")) == (await one.get("a"), done)
    clock.now += mine.lease  # of which nobody hears any more, while the other one goes on
    lost, _ = await two.list("ann", None, 9)
    assert [(item.status, item.id) for item in lost] == [("failed", "a"), ("completed", "b")]
    assert await one.update("a", lambda now: now.completed({})) is None  # it was only slow: too late
    await mine.leave()
    await other.leave()


async def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "tasks.db"
    store = SqliteTaskStore(path)
    await store.create(task("a"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await store.close()
    assert [item.name for item in path.parent.iterdir()] == ["tasks.db"]


async def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    path.write_bytes(b"not a database" * 100)
    store = SqliteTaskStore(path)
    with pytest.raises(StoreError, match=r"(?s)tasks\.db.*hint:"):
        await store.create(task("a"))
    await store.close()
    server = sample.make(path)
    async with connect_memory(server, **extension()) as client:
        assert await code(client, "tools/call", {"name": "count", "arguments": {}}) == -32603
        assert (await client.request("tools/call", {"name": "plain", "arguments": {}}))["resultType"] == "complete"


def test_the_environment_names_a_file_where_the_server_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert isinstance(read_task_options(None).store, MemoryTaskStore)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "env.db"))
    for given, path in ((None, tmp_path / "env.db"), (tmp_path / "own.db", tmp_path / "own.db")):
        asyncio.run(read_task_options(given).store.create(task("a")))
        assert path.is_file()
    own = MemoryTaskStore()
    assert read_task_options(own).store is own
