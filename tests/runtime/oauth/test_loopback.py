"""The browser on this machine, played by raw HTTP requests."""

from __future__ import annotations

import asyncio

import pytest

from mcpfactory_runtime.oauth.loopback import Loopback
from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from tests.system import free_port

pytestmark = pytest.mark.anyio

PAGE = "https://as.example/authorize?state=s1&x=1"


async def get(port: int, head: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_the_browser_that_comes_back_with_the_right_state_ends_the_wait() -> None:
    port = free_port()
    shown: asyncio.Queue[str] = asyncio.Queue()
    visit = Loopback(port, shown.put_nowait)
    waiting = asyncio.ensure_future(visit(PAGE))
    assert await shown.get() == PAGE
    for wrong in (b"GET /favicon.ico HTTP/1.1", b"GET /callback?state=s2&code=x HTTP/1.1", b"POST / HTTP/1.1", b"junk"):
        assert b" 404 " in await get(port, wrong + b"\r\n\r\n")
    assert b" 200 " in await get(port, b"GET /callback?code=c%20d&state=s1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await waiting == f"http://127.0.0.1:{port}/callback?code=c%20d&state=s1"
    assert visit.redirect_uri == f"http://127.0.0.1:{port}/callback"


async def test_nobody_who_comes_is_told_after_a_while() -> None:
    with pytest.raises(OAuthError, match="not approved within 0 seconds") as caught:
        await Loopback(free_port(), lambda _url: None, timeout=0)(PAGE)
    assert caught.value.code == "no_browser"
