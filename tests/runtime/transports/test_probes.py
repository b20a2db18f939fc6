"""`/health` and `/ready` as orchestrators ask them, over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from mcpfactory_runtime import Server
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.server.routes import ReadinessChecks
from tests.runtime.transports.test_mounting import served

pytestmark = pytest.mark.anyio
RESOURCE, ISSUER = "http://127.0.0.1/mcp", "http://127.0.0.1/issuer"


class Probed:
    """Asks an application for its probes."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __aenter__(self) -> Probed:
        self._served = served(self._app)
        self.url = await self._served.__aenter__()
        self.http = httpx.AsyncClient(base_url=self.url, trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
        await self._served.__aexit__(None, None, None)

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        answer = await self.http.get(path, headers=headers)
        assert answer.headers["cache-control"] == "no-store"
        return answer.status_code, answer.json()


async def test_a_server_that_runs_is_alive_and_ready() -> None:
    async with Probed(Server("probed", version="9.9.9").http_app()) as probed:
        assert await probed.get("/health") == (200, {"status": "ok"})
        assert await probed.get("/ready") == (200, {"status": "ready"})
        head = await probed.http.head("/ready")
        assert (head.status_code, head.content) == (200, b"")
        posted = await probed.http.post("/ready")
        assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")


async def test_it_is_not_ready_before_its_lifespan_began_nor_while_it_drains() -> None:
    opened, begun = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[None]:
        await opened.wait()
        begun.set()
        yield

    server = Server("probed", lifespan=life)
    app = server.http_app()
    async with Probed(Starlette(routes=[Mount("/", app=app)])) as probed:
        assert await probed.get("/ready") == (503, {"status": "starting"})
        assert await probed.get("/health") == (200, {"status": "ok"})
        opened.set()
        await begun.wait()  # nobody sent a request of MCP: the probe began the lifespan
        assert await probed.get("/ready") == (200, {"status": "ready"})
        app.begin_shutdown()
        assert await probed.get("/ready") == (503, {"status": "draining"})
        assert await probed.get("/health") == (200, {"status": "ok"})


async def _opened(token: str) -> Mapping[str, Any] | None:
    return {"active": True, "iss": ISSUER, "sub": "me", "aud": RESOURCE, "exp": 4e9} if token == "good" else None


def _checked() -> Server:
    server = Server("probed")

    @server.ready_check
    async def database() -> None:
        raise OSError("password=hunter2")

    @server.ready_check
    def disk() -> bool:
        return True

    return server


async def test_checks_of_the_author_count_and_tell_no_reasons(caplog: pytest.LogCaptureFixture) -> None:
    async with Probed(_checked().http_app()) as probed:
        found = {"status": "unavailable", "checks": {"database": "failed", "disk": "ok"}}
        assert [await probed.get("/ready") for _ in range(3)] == [(503, found)] * 3
        assert (await probed.get("/health"))[0] == 200
    assert caplog.text.count("hunter2") == 1


async def test_strangers_learn_no_names_of_checks() -> None:
    auth = Authorization(issuer=ISSUER, resource=RESOURCE, verify=_opened)
    async with Probed(_checked().http_app(auth=auth)) as probed:
        assert await probed.get("/ready") == (503, {"status": "unavailable"})
        assert await probed.get("/ready", authorization="Bearer bad") == (503, {"status": "unavailable"})
        assert (await probed.get("/ready", authorization="Bearer good"))[1]["checks"]["database"] == "failed"


async def test_host_and_origin_are_checked_as_at_the_endpoint() -> None:
    async with Probed(Server("probed").http_app()) as probed:
        endpoint = (await probed.http.get("/mcp", headers={"host": "evil.example"})).status_code
        for path in ("/health", "/ready"):
            assert (await probed.http.get(path, headers={"host": "evil.example"})).status_code == endpoint
            refused = await probed.http.get(path, headers={"origin": "https://evil.example"})
            assert refused.status_code == 403


async def test_checks_are_called_once_for_all_who_ask_and_once_a_second() -> None:
    now, calls = 0.0, 0
    opened = asyncio.Event()

    async def slow() -> None:
        nonlocal calls
        calls += 1
        await opened.wait()

    readiness = ReadinessChecks(clock=lambda: now)
    readiness.add(slow)
    asked = [asyncio.create_task(readiness.run_checks()) for _ in range(3)]
    await asyncio.sleep(0)
    opened.set()
    assert await asyncio.gather(*asked) == [{"slow": True}] * 3
    now = 0.9
    await readiness.run_checks()
    assert calls == 1
    now = 1.0
    await readiness.run_checks()
    assert calls == 2


def test_a_check_with_parameters_or_a_name_twice_says_what_to_write() -> None:
    server = _checked()
    with pytest.raises(
        TypeError, match=r"has parameters: pool\nhint: remove the parameters; the check is called without arguments"
    ):
        server.ready_check(lambda pool: None)
    with pytest.raises(ValueError, match="ready check 'disk' already exists"):

        @server.ready_check
        def disk() -> None: ...


async def test_a_check_that_hangs_has_failed_and_is_not_called_again_until_it_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = 0
    opened = asyncio.Event()

    async def hanging() -> None:
        nonlocal calls
        calls += 1
        await opened.wait()

    readiness = ReadinessChecks(patience=0, keep=0)
    readiness.add(hanging)
    assert [await readiness.run_checks(), await readiness.run_checks(), calls] == [{"hanging": False}] * 2 + [1]
    assert caplog.text.count("has not returned") == 1
    readiness.stop()
    opened.set()
    readiness = ReadinessChecks(keep=0)
    readiness.add(hanging)
    assert [await readiness.run_checks(), calls] == [{"hanging": True}, 2]
