"""A server within a program of one's own: mounted in Starlette, called by pages of other origins, run in an event loop that is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.transports.http.serve import listen
from tests.runtime.transports.conftest import hello
from tests.timeouts import TIMEOUT

PAGE = "https://app.example.com"


class Lived:
    """A server that notes when its lifespan begins and ends."""

    def __init__(self, *, failures: int = 0) -> None:
        self.events: list[str] = []
        self.server = Server("lived", lifespan=self.life)
        self.server.tool(self.word)
        self.failures = failures

    @asynccontextmanager
    async def life(self, server: Server) -> AsyncIterator[str]:
        if self.failures:
            self.failures -= 1
            raise OSError("no database yet")
        task = asyncio.current_task()
        self.events.append("begun")
        yield "a word"
        self.events.append("ended" if asyncio.current_task() is task else "ended by another task")

    async def word(self, ctx: Context) -> str:
        return str(ctx.state)


async def hi(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hi")


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """An application behind a port; its URL."""
    listener = listen("127.0.0.1", 0)
    web = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", ws="none"))
    web.capture_signals = _Nothing  # type: ignore[method-assign]  # those of the test run stay
    task = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        web.should_exit = True
        await asyncio.wait_for(task, TIMEOUT)


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def mounted(lived: Lived, *, composed: bool) -> Starlette:
    app = lived.server.http_app()
    routes = [Route("/hi", hi), Mount("/", app=app)]
    return Starlette(routes=routes, lifespan=app.lifespan if composed else None)


async def call(url: str) -> str:
    async with Client.connect_http(f"{url}/mcp") as client:
        return str((await client.call_tool("word", {}))["content"][0]["text"])


@pytest.mark.parametrize("composed", [True, False])
def test_a_mounted_server_lives_as_long_as_the_application(composed: bool, capfd: pytest.CaptureFixture[str]) -> None:
    lived = Lived()

    async def run() -> None:
        async with served(mounted(lived, composed=composed)) as url:
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.get(f"{url}/hi")).text == "hi"
            assert lived.events == (["begun"] if composed else [])
            assert await asyncio.gather(call(url), call(url)) == ["a word", "a word"]
        assert lived.events == (["begun", "ended"] if composed else ["begun"])

    asyncio.run(run())
    assert lived.events == ["begun", "ended"]
    assert "Traceback" not in capfd.readouterr().err


def test_it_runs_in_an_event_loop_that_is_there_until_it_is_cancelled(capfd: pytest.CaptureFixture[str]) -> None:
    lived = Lived()

    async def run() -> None:
        task = asyncio.create_task(lived.server.run_async("http", port=0))
        told = ""
        while "http://" not in told:
            await asyncio.sleep(0)
            told += capfd.readouterr().err
        assert (
            await call(next(word for word in told.split() if word.startswith("http://")).removesuffix("/mcp"))
            == "a word"
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, TIMEOUT)

    asyncio.run(run())
    assert lived.events == ["begun", "ended"]


async def _asked(app: Any, method: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        content = {"json": hello()} if method == "POST" else {}
        return await http.request(method, "/mcp", headers={"origin": PAGE, **headers}, **content)  # type: ignore[arg-type]


PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,mcp-session-id"}


@pytest.mark.parametrize("origins", [{PAGE}, {"*"}])
def test_a_page_that_was_named_may_ask_call_and_read(origins: set[str]) -> None:
    async def run(act: Callable[[Any], Any]) -> Any:
        app = Server("page").http_app(allowed_origins=origins)
        async with app.lifespan():
            return await act(app)

    asked = asyncio.run(run(lambda app: _asked(app, "OPTIONS", **PREFLIGHT)))
    assert (asked.status_code, asked.content) == (204, b"")
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert asked.headers["access-control-allow-headers"] == "content-type,mcp-session-id"
    assert "access-control-allow-credentials" not in asked.headers
    called = asyncio.run(run(lambda app: _asked(app, "POST", accept="application/json, text/event-stream")))
    assert called.status_code == 200
    assert called.headers["access-control-allow-origin"] == PAGE
    assert "Mcp-Session-Id" in called.headers["access-control-expose-headers"]
    assert called.headers["vary"] == "Origin"


def test_no_other_page_is_answered() -> None:
    async def run(**headers: str) -> list[httpx.Response]:
        app = Server("page").http_app(allowed_origins={PAGE})
        async with app.lifespan():
            return [await _asked(app, "OPTIONS", **PREFLIGHT, **headers), await _asked(app, "POST", **headers)]

    for response in asyncio.run(run(origin="https://app.example.com.evil.org")):
        assert response.status_code == 403
    for response in asyncio.run(run(origin="http://localhost:3000")):  # may call, as every program here; may not read
        assert "access-control-allow-origin" not in response.headers
