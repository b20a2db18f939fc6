"""Two processes of one server that share a store, behind nothing that keeps a client at one of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.auth import Authorization, Principal
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.storage.base import Changes, ExpectedEntry, MemoryStore, StoreError
from mcpfactory_runtime.transports.http.app import HttpApp
from tests.runtime.transports import blocking_server
from tests.runtime.transports.blocking_http_server import Gate, Web, calling, serving
from tests.runtime.transports.conftest import hello, request
from tests.runtime.transports.test_resuming import answer_of, events, resume, speaking, texts
from tests.timeouts import TIMEOUT, wait_until


@pytest.fixture(params=["sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return f"{request.getfixturevalue('redis_address')}?db={secrets.randbelow(16)}"


@pytest.fixture
def two(tmp_path: Path, address: str) -> Iterator[tuple[Web, Web]]:
    """Two processes of the gated server."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(serving(tmp_path, "--store", address)) for _ in range(2))
        yield one, other


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def kill(web: Web) -> None:
    web.process.kill()
    web.process.wait(TIMEOUT)


def text_of(answer: Any) -> str:
    return str(answer.json()["result"]["content"][0]["text"])


def test_a_session_is_served_at_every_process_by_the_one_that_has_it(two: tuple[Web, Web], gate: Gate) -> None:
    one, other = two
    headers = one.begin()
    for web in two:
        assert text_of(web.call("who", {}, headers)) == str(one.process.pid)
    assert len(text_of(other.call("large", {"size": 3 << 20}, headers))) == 3 << 20  # more than is under way at once
    with other.http.stream("POST", "/mcp", **speaking(gate, headers, ["one"])) as stream:
        lines = stream.iter_lines()
        assert texts(events(lines, 2)) == ["one"]  # as it comes
        gate.wait()
        gate.open("two")
        assert answer_of(events(lines)) == "two"
    with other.http.stream("GET", "/mcp", headers=headers) as own:
        subscribe = request("resources/subscribe", {"uri": "count://a"})
        assert one.http.post("/mcp", json=subscribe, headers=headers).status_code == 200
        assert one.call("touch", {"name": "a", "times": 1}, headers).status_code == 200
        assert "resources/updated" in events(own.iter_lines(), 1)[0]["data"]
    assert other.http.delete("/mcp", headers=headers).status_code == 200
    assert [web.call("who", {}, headers).status_code for web in two] == [404, 404]
    assert other.call("who", {}, {"mcp-session-id": headers["mcp-session-id"][:18] + "guess"}).status_code == 404


def test_after_a_kill_the_other_process_goes_on_with_session_and_streams(two: tuple[Web, Web], gate: Gate) -> None:
    one, other = two
    headers = one.begin()
    with one.http.stream("POST", "/mcp", **speaking(gate, headers, ["one"])) as stream:
        seen = events(stream.iter_lines(), 2)
        gate.wait()
        kill(one)
    rest = events(resume(other, headers, seen[0]["id"]).text.splitlines())  # waits until the lease is over
    assert rest[0] == seen[1]
    message = json.loads(rest[-1]["data"])
    assert (message["id"], message["error"]["code"], len(rest)) == (7, INTERNAL_ERROR, 2)
    assert text_of(other.call("who", {}, headers)) == str(other.process.pid)


def test_a_change_at_one_process_is_told_to_clients_of_the_other(two: tuple[Web, Web]) -> None:
    one, other = two
    headers = other.begin()
    with other.http.stream("GET", "/mcp", headers=headers) as own:
        one.http.post("/mcp", **calling("change", {}, one.begin()))
        assert "tools/list_changed" in events(own.iter_lines(), 1)[0]["data"]


def test_a_process_that_ends_in_order_hands_its_sessions_over(two: tuple[Web, Web]) -> None:
    one, other = two
    headers = one.begin()
    one.process.terminate()
    wait_until(lambda: one.process.poll() is not None)
    assert one.process.returncode == 0, one.told
    assert text_of(other.call("who", {}, headers)) == str(other.process.pid)
    assert "Traceback" not in one.told + other.told


class Failing(MemoryStore):
    """A store that answers no question any more."""

    failing = False

    async def get(self, space: str, key: str) -> bytes | None:
        if self.failing:
            raise StoreError("gone")
        return await super().get(space, key)


@pytest.mark.anyio
async def test_while_the_store_does_not_answer_sessions_of_others_are_refused_and_calls_without_one_are_answered() -> (
    None
):
    store = Failing()
    app = blocking_server.server.http_app(store=store)
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        began = await http.post("/mcp", json=hello())
        store.failing = True
        for session, status in ((began.headers["mcp-session-id"], 200), ("another's", 503)):
            asked = await http.post("/mcp", **calling("large", {"size": 1}, {"mcp-session-id": session}))
            assert (asked.status_code, "hint: try again" in asked.text) == (status, status != 200), asked.text
        assert (await http.post("/mcp", **calling("large", {"size": 1}))).status_code == 200
        store.failing = False


class Recording(MemoryStore):
    """A store that records everything that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.received = b""

    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        self.received += repr((space, changes)).encode()
        return await super().write(space, changes, seconds=seconds, expected=expected)

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        self.received += data
        await super().send(mailbox, data, seconds=seconds)


TOKEN = "a-secret-token"


def guarded(name: str, store: MemoryStore) -> HttpApp:
    """Return an application that takes TOKEN, and tells who calls."""
    server = Server(name)

    @server.tool
    async def caller(ctx: Context) -> list[str]:
        assert isinstance(ctx.principal, Principal)
        return [ctx.principal.subject, *ctx.principal.scopes, ctx.principal.claims["team"]]

    def verify(token: str) -> dict[str, Any] | None:
        known = {"iss": "https://as.example", "aud": "http://127.0.0.1/mcp", "sub": "ann", "exp": 4e9}
        return {**known, "scope": "read", "team": "blue"} if token == TOKEN else None

    auth = Authorization(issuer="https://as.example", resource="http://127.0.0.1/mcp", verify=verify)
    return server.http_app(store=store, auth=auth)


@pytest.mark.anyio
async def test_another_process_receives_the_principal_but_no_token() -> None:
    store = Recording()
    one, other = guarded("same", store), guarded("same", store)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    async with (
        one.lifespan(),
        other.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(one), base_url="http://127.0.0.1", headers=bearer) as here,
        httpx.AsyncClient(transport=httpx.ASGITransport(other), base_url="http://127.0.0.1") as there,
    ):
        began = await here.post("/mcp", json=hello())
        session = {"mcp-session-id": began.headers["mcp-session-id"]}
        refused = await there.post("/mcp", **calling("caller", {}, session))
        assert refused.status_code == 401
        assert b'"kind":"request"' not in store.received
        answer = await there.post("/mcp", **calling("caller", {}, {**session, **bearer}))
        assert answer.json()["result"]["structuredContent"]["result"] == ["ann", "read", "blue"]
    assert b'"kind":"request"' in store.received
    assert TOKEN.encode() not in store.received


@pytest.mark.anyio
async def test_servers_that_share_a_store_do_not_hear_each_other() -> None:
    store = MemoryStore()
    bearer = {"authorization": f"Bearer {TOKEN}"}
    async with AsyncExitStack() as stack:
        https = []
        for name in ("one", "one", "other"):
            app = guarded(name, store)
            await stack.enter_async_context(app.lifespan())
            transport = httpx.ASGITransport(app)
            http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=bearer)
            https.append(await stack.enter_async_context(http))
        began = await https[0].post("/mcp", json=hello())
        session = {"mcp-session-id": began.headers["mcp-session-id"]}
        answers = [await http.post("/mcp", **calling("caller", {}, session)) for http in https]
        assert [answer.status_code for answer in answers] == [200, 200, 404]
