"""Sessions in a shared store: what is kept of them, and that only the process that has one writes to it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.store.base import MemoryStore, Processes, SharedStore
from mcpfactory_runtime.store.redis import RedisStore
from mcpfactory_runtime.store.sqlite import SqliteStore
from mcpfactory_runtime.transports.http.shared_events import SharedEventStore
from mcpfactory_runtime.transports.http.stream import Journal, SessionLostError, Unfinished
from tests.patience import PATIENCE
from tests.runtime.transports.conftest import hello
from tests.runtime.transports.gated import server
from tests.runtime.transports.web import calling

pytestmark = pytest.mark.anyio

ISSUER = "https://login.example"
RESOURCE = "http://127.0.0.1/mcp"
STATE = {"principal": ""}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedStore]:
    made: SharedStore = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "store.db"),
        "redis": lambda: RedisStore(request.getfixturevalue("redis_address"), f"{secrets.token_hex(4)}:"),
    }[request.param]()
    yield made
    await made.aclose()


async def joined(store: SharedStore) -> SharedEventStore:
    events = SharedEventStore(store, Processes(store))
    await events.open()
    return events


async def test_what_was_recorded_is_there_for_the_next_process(store: SharedStore) -> None:
    one = await joined(store)
    one.save("k", STATE)
    one.begin("k", "1", [7, "x"])
    one.begin("k", "2", [8])
    for number in range(1, 4):
        one.append("k", "1", number, b"%d" % number)
    one.append("k", "2", 1, b"answer")
    one.finish("k", "2")
    await one.written()
    two = await joined(store)
    assert await two.claim("k") == one._processes.id
    await one._processes.leave()
    assert await two.claim("k") is None
    assert await two.load("k") == (STATE, [Unfinished("1", [7, "x"], 3)])
    assert await two.events("k", "1") == [(1, b"1"), (2, b"2"), (3, b"3")]
    assert await two.events("k", "2") == [(1, b"answer")]
    assert await two.events("k", "3") is None
    two.forget("k")
    await two.written()
    assert (await two.load("k"), await two.claim("k")) == (None, None)
    await two._processes.leave()


async def test_a_process_that_was_taken_for_dead_records_and_sends_nothing_more(store: SharedStore) -> None:
    slow, other = await joined(store), await joined(store)
    lost: list[str] = []
    slow.on_lost = lost.append
    journal = Journal(slow, "id")
    journal.save(STATE)
    await journal.written()
    key = journal._key
    await store.drop(f"process/{slow._processes.id}")  # its lease is over
    assert await other.claim(key) is None
    other.begin(key, "1", [1])
    await other.written()
    slow.append(key, "1", 1, b"late")
    await slow.written()
    assert lost == [key]
    assert await other.events(key, "1") == []
    slow.on_lost = lambda _: None
    journal.lose()
    with pytest.raises(SessionLostError):
        await journal.written()
    slow.forget(key)  # nor does it take away what is no longer its own
    slow.append(key, "1", 2, b"later")
    await slow.written()
    assert await other.load(key) is not None
    other.forget(key)
    await other.written()
    slow.append(key, "1", 3, b"later still")  # nor brings it back what has ended
    await slow.written()
    assert await store.scan(f"session/{key}") == []
    for one in (slow, other):
        await one._processes.leave()


async def test_after_a_lapse_a_process_finds_out_what_it_lost() -> None:
    store = MemoryStore()
    slow, other = await joined(store), await joined(store)
    lost: list[str] = []
    slow.on_lost = lost.append
    for key in ("a", "b"):
        slow.save(key, STATE)
    await slow.written()
    await store.drop(f"process/{slow._processes.id}")
    await other.claim("a")
    assert slow._processes.on_lapse is not None
    await slow._processes.on_lapse()
    assert lost == ["a"]
    for one in (slow, other):
        await one._processes.leave()


async def test_an_application_ends_a_session_that_another_process_took_over() -> None:
    store = MemoryStore()
    app = server.http_app(store=store)
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        names = {"mcp-session-id": (await http.post("/mcp", json=hello())).headers["mcp-session-id"]}
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200
        (space,) = [name for name in store._spaces if name.startswith("session/")]
        other = Processes(store)
        await store.write(space, [("owner", other.id.encode())], seconds=60)  # as one that died later did
        assert app._sharing is not None
        await app._sharing.events._check_owned()
        assert app._sessions == {}
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200  # taken over again


async def test_who_may_not_call_sends_nothing_through_the_store() -> None:
    async def opened(token: str) -> dict[str, object] | None:
        return {"active": True, "iss": ISSUER, "aud": RESOURCE, "sub": token} if token == "ann" else None

    store = MemoryStore()
    app = server.http_app(store=store, auth=Authorization(issuer=ISSUER, resource=RESOURCE, verify=opened))
    peer = Processes(store)
    await peer.join()
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    async with app.lifespan(), http:
        names = {"mcp-session-id": f"{peer.id}.guessed"}
        for token in ({}, {"authorization": "Bearer bob"}):
            refused = await http.post("/mcp", **calling("large", {"size": 1}, {**names, **token}))
            assert refused.status_code == 401
        assert peer.id not in store._boxes
        admitted = {**names, "authorization": "Bearer ann"}
        asking = asyncio.ensure_future(http.post("/mcp", **calling("large", {"size": 1}, admitted)))
        assert await store.receive(peer.id, PATIENCE)  # with its token: the other process looks at it as well
        await peer.leave()  # without taking the request, which is so served here: nobody has the session
        assert (await asking).status_code == 404
