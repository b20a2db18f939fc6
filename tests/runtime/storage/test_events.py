"""Sessions in a shared store: what is kept of them, and that only the process that has one writes to it."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx
import pytest

from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.storage.base import MemoryStore, NamespacedStore, ProcessRegistry, SharedStore
from mcpfactory_runtime.storage.events import SessionJournal, SessionLostError, SharedSessions, UnfinishedStream
from tests.runtime.transports.blocking_http_server import calling
from tests.runtime.transports.blocking_server import server
from tests.runtime.transports.conftest import hello
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

ISSUER = "https://login.example"
RESOURCE = "http://127.0.0.1/mcp"
STATE = {"principal": ""}


async def joined(store: SharedStore) -> SharedSessions:
    sessions = SharedSessions(store, ProcessRegistry(store))
    await sessions.open()
    return sessions


async def test_what_was_recorded_is_there_for_the_next_process(store: SharedStore) -> None:
    first = await joined(store)
    one = SessionJournal(first, "k")
    one.save(STATE)
    one.begin("1", [7, "x"])
    one.begin("2", [8])
    for number in range(1, 4):
        one.append("1", number, b"%d" % number)
    one.append("2", 1, b"answer")
    one.finish("2")
    await one.wait_until_written()
    second = await joined(store)
    two = SessionJournal(second, "k")
    assert await two.claim() == first.processes.id
    await first.processes.leave()
    assert await two.claim() is None
    assert await two.load() == (STATE, [UnfinishedStream("1", [7, "x"], 3)])
    assert await two.events("1") == [(1, b"1"), (2, b"2"), (3, b"3")]
    assert await two.events("2") == [(1, b"answer")]
    assert await two.events("3") is None
    two.forget()
    await two.wait_until_written()
    assert (await two.exists(), await two.load(), await two.claim()) == (False, None, None)
    await second.processes.leave()


async def test_a_process_that_was_taken_for_dead_records_and_sends_nothing_more(store: SharedStore) -> None:
    slow, other = await joined(store), await joined(store)
    lost: list[str] = []
    journal = SessionJournal(slow, "id")
    journal.on_lost = lambda: lost.append("id")
    journal.save(STATE)
    await journal.wait_until_written()
    await store.drop(f"process/{slow.processes.id}")  # its lease is over
    taken = SessionJournal(other, "id")
    assert await taken.claim() is None
    assert await taken.load() is not None
    taken.begin("1", [1])
    await taken.wait_until_written()
    journal.append("1", 1, b"late")
    with pytest.raises(SessionLostError):
        await journal.wait_until_written()
    assert lost == ["id"]
    assert await taken.events("1") == []
    journal.forget()  # nor does it take away what is no longer its own
    journal.append("1", 2, b"later")
    await slow.wait_until_written()
    assert await taken.exists()
    taken.forget()
    await taken.wait_until_written()
    journal.append("1", 3, b"later still")  # nor brings it back what has ended
    await slow.wait_until_written()
    assert await store.scan(journal._space) == []
    for one in (slow, other):
        await one.processes.leave()


async def test_after_a_lapse_a_process_finds_out_what_it_lost() -> None:
    store = MemoryStore()
    slow, other = await joined(store), await joined(store)
    lost: list[str] = []
    for name in ("a", "b"):
        journal = SessionJournal(slow, name)
        journal.on_lost = partial(lost.append, name)
        journal.save(STATE)
    await slow.wait_until_written()
    await store.drop(f"process/{slow.processes.id}")
    await SessionJournal(other, "a").claim()
    assert slow.processes.on_lapse is not None
    await slow.processes.on_lapse()
    assert lost == ["a"]
    for one in (slow, other):
        await one.processes.leave()


async def test_an_application_ends_a_session_that_another_process_took_over() -> None:
    store = MemoryStore()
    app = server.http_app(store=store)
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        names = {"mcp-session-id": (await http.post("/mcp", json=hello())).headers["mcp-session-id"]}
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200
        (space,) = [name for name in store._spaces if name.startswith(f"{server.name}/session/")]
        other = ProcessRegistry(store)
        await store.write(space, [("owner", other.id.encode())], seconds=60)  # as one that died later did
        assert app._sharing is not None
        await app._sharing.sessions.check_owned()
        assert app._sessions == {}
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200  # taken over again


async def test_who_may_not_call_sends_nothing_through_the_store() -> None:
    async def opened(token: str) -> dict[str, object] | None:
        return {"active": True, "iss": ISSUER, "aud": RESOURCE, "sub": token} if token == "ann" else None

    store = MemoryStore()
    app = server.http_app(store=store, auth=Authorization(issuer=ISSUER, resource=RESOURCE, verify=opened))
    peer = ProcessRegistry(NamespacedStore(store, server.name))
    await peer.join()
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    async with app.lifespan(), http:
        names = {"mcp-session-id": f"{peer.id}.guessed"}
        for token in ({}, {"authorization": "Bearer bob"}):
            refused = await http.post("/mcp", **calling("large", {"size": 1}, {**names, **token}))
            assert refused.status_code == 401
        assert store._boxes == {}
        admitted = {**names, "authorization": "Bearer ann"}
        asking = asyncio.ensure_future(http.post("/mcp", **calling("large", {"size": 1}, admitted)))
        assert await peer.store.receive(peer.id, TIMEOUT)
        await peer.leave()  # without taking the request, which is so served here: nobody has the session
        assert (await asking).status_code == 404
