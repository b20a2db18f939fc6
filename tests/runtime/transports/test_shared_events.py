"""Sessions in a shared store: what is kept of them, and that only the process that has one writes to it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.store.base import SharedStore, StoreError
from mcpfactory_runtime.store.memory import MemoryStore
from mcpfactory_runtime.store.processes import Processes
from mcpfactory_runtime.store.redis import RedisStore
from mcpfactory_runtime.store.sqlite import SqliteStore
from mcpfactory_runtime.transports.http.app import HttpApp
from mcpfactory_runtime.transports.http.event_store import Journal, SessionLostError, Unfinished
from mcpfactory_runtime.transports.http.shared_events import SharedEventStore
from mcpfactory_runtime.transports.http.store_relay import StoreRelay, _Outgoing
from mcpfactory_runtime.transports.http.stream import KEPT
from tests.patience import PATIENCE, advance
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


async def test_a_long_stream_keeps_its_end_and_a_session_its_latest_streams(store: SharedStore) -> None:
    events = await joined(store)
    events.save("k", STATE)
    events.begin("k", "long", [1])
    for number in range(1, KEPT + 11):
        events.append("k", "long", number, b"x")
    for stream in range(70):
        events.begin("k", f"s{stream}", [stream])
        events.append("k", f"s{stream}", 1, b"x")
        events.finish("k", f"s{stream}")
    kept = await events.events("k", "long")
    assert kept is not None
    assert [number for number, _ in kept] == list(range(11, KEPT + 11))
    found = [stream for stream in range(70) if await events.events("k", f"s{stream}")]
    assert found == list(range(6, 70))
    assert len(await store.scan("session/k", "event/s")) == 64
    await events._processes.leave()


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


async def test_what_the_store_does_not_take_is_written_when_it_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, attempts = MemoryStore(), 0
    events = await joined(store)
    real = store.write

    async def write(*given: object, **options: object) -> bool:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise StoreError("gone")
        return await real(*given, **options)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr("mcpfactory_runtime.transports.http.shared_events._AGAIN", 0)
    monkeypatch.setattr(store, "write", write)
    events.save("k", STATE)
    async with asyncio.timeout(PATIENCE):
        await events.written()
    assert await events.load("k") == (STATE, [])
    await events._processes.leave()


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


class RefusingStore(MemoryStore):
    """Does not take the first message of a kind."""

    kind = "none"

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        if f'"kind":"{self.kind}"'.encode() in data:
            self.kind = "none"
            raise StoreError("store: not reachable")
        await super().send(mailbox, data, seconds=seconds)


@asynccontextmanager
async def two_processes(store: SharedStore) -> AsyncIterator[tuple[HttpApp, httpx.AsyncClient, dict[str, str]]]:
    """Yield the application that has a session, a client of the other one, and the session's header."""

    def made() -> HttpApp:
        one = Server("twin", version="1")

        @one.tool
        async def large(size: int) -> str:
            return "x" * size

        return one.http_app(store=store)

    owner, other = made(), made()
    async with (
        owner.lifespan(),
        other.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(owner), base_url="http://127.0.0.1") as first,
        httpx.AsyncClient(transport=httpx.ASGITransport(other), base_url="http://127.0.0.1") as second,
    ):
        begun = await first.post("/mcp", json=hello())
        yield owner, second, {"mcp-session-id": begun.headers["mcp-session-id"]}


@pytest.mark.parametrize(("kind", "status"), [("request", 503), ("taken", 200), ("start", 503), ("end", 503)])
async def test_a_store_that_fails_for_a_moment_leaves_nobody_waiting(kind: str, status: int) -> None:
    store = RefusingStore()
    async with asyncio.timeout(PATIENCE), two_processes(store) as (_, http, names):
        store.kind = kind
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == status
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200


async def test_the_head_of_an_answer_comes_with_its_end_so_that_no_client_sends_its_next_request_before() -> None:
    shared = MemoryStore()
    events = SharedEventStore(shared, Processes(shared))
    relay = StoreRelay(events._processes, events)
    exchange, sent = _Outgoing("peer"), []

    async def send(event: Any) -> None:
        sent.append(event["type"])

    answering = asyncio.ensure_future(relay._answer(exchange, "1", {}, b"", send))
    for told in ({"kind": "taken"}, {"kind": "start", "status": 202, "headers": [("content-length", "0")]}):
        exchange.frames.put_nowait((told, b""))
    await advance(0)
    assert sent == []
    exchange.frames.put_nowait(({"kind": "end"}, b""))
    assert await answering
    assert sent == ["http.response.start", "http.response.body"]


async def test_a_request_that_fails_where_it_was_sent_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("unforeseen")

    async with asyncio.timeout(PATIENCE), two_processes(MemoryStore()) as (owner, http, names):
        assert owner._sharing is not None
        relay = owner._sharing.relay
        served, relay._app = relay._app, fail
        refused = await http.post("/mcp", **calling("large", {"size": 1}, names))
        assert (refused.status_code, "has ended, or failed. hint:" in refused.text) == (503, True)
        assert "a request of another process failed" in caplog.text
        relay._app = served
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200


@pytest.mark.parametrize("message", [b"{no JSON", b'{"kind":"request"}'])
async def test_a_message_that_cannot_be_read_is_left_out_and_the_next_ones_are_not(message: bytes) -> None:
    store = MemoryStore()
    async with asyncio.timeout(PATIENCE), two_processes(store) as (owner, http, names):
        assert owner._sharing is not None
        await store.send(owner._sharing.relay.label.rstrip("."), message, seconds=60)
        assert (await http.post("/mcp", **calling("large", {"size": 1}, names))).status_code == 200
