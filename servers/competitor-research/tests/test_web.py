"""Tests of fetching: robots.txt, rate limits, cache, redirects and refusals."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import upstream
from mcpfactory_runtime import ToolError
from upstream import Answer, Asked

from competitor_research_mcp import __version__
from competitor_research_mcp.settings import Settings, read_settings
from competitor_research_mcp.store import Store
from competitor_research_mcp.web import Web, checked_url


class Clock:
    """A clock that advances only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(round(seconds, 3))
        self.now += seconds


def fetching(folder: Path, site: upstream.Site, do: Callable[[Web, Clock], Awaitable[Any]], **changes: Any) -> Any:
    """Run `do` with a `Web` that may read the site, and a fake clock."""
    place = site.url.removeprefix("http://")
    settings = Settings(folder / "db.sqlite", **{"delay": 0, "private": frozenset({place}), **changes})

    async def run() -> Any:
        clock, store = Clock(), Store(settings.database)
        web = Web(settings, store, clock=lambda: clock.now, sleep=clock.sleep)
        try:
            return await do(web, clock)
        finally:
            await web.aclose()
            store.close()

    return asyncio.run(run())


def refused(folder: Path, site: upstream.Site, url: str, **changes: Any) -> str:
    async def do(web: Web, clock: Clock) -> None:
        await web.get(url)

    with pytest.raises(ToolError) as caught:
        fetching(folder, site, do, **changes)
    return str(caught.value)


# --- robots.txt ---


def test_robots_txt_is_asked_first_and_once(tmp_path: Path, acme: upstream.Site) -> None:
    async def do(web: Web, clock: Clock) -> None:
        await web.get(f"{acme.url}/")
        clock.now += 3000
        await web.get(f"{acme.url}/about")

    fetching(tmp_path, acme, do)
    assert acme.paths() == ["/robots.txt", "/", "/about"]


def test_what_robots_txt_forbids_is_not_asked_for(tmp_path: Path, acme: upstream.Site) -> None:
    assert "Disallow: /admin/" in refused(tmp_path, acme, f"{acme.url}/admin/users")
    assert acme.paths() == ["/robots.txt"]


def test_a_redirect_into_a_forbidden_part_is_not_followed(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/door"] = Answer(status=302, headers={"Location": "/admin/users"})
    assert "does not allow" in refused(tmp_path, acme, f"{acme.url}/door")
    assert "/admin/users" not in acme.paths()


@pytest.mark.parametrize(
    ("status", "allowed"), [(404, True), (401, True), (410, True), (500, False), (503, False), (429, False)]
)
def test_a_host_without_robots_txt_is_open_and_one_that_cannot_say_is_closed(
    tmp_path: Path, acme: upstream.Site, status: int, allowed: bool
) -> None:
    acme.pages["/robots.txt"] = Answer(status=status)
    if allowed:

        async def do(web: Web, clock: Clock) -> int:
            return (await web.get(f"{acme.url}/about")).answer.status

        assert fetching(tmp_path, acme, do) == 200
    else:
        assert "robots.txt" in refused(tmp_path, acme, f"{acme.url}/about")
        assert acme.paths() == ["/robots.txt"]


def test_the_crawl_delay_is_kept_between_two_requests(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/robots.txt"] = Answer("User-agent: *\nCrawl-delay: 7\n")

    async def do(web: Web, clock: Clock) -> list[float]:
        for path in ("/", "/about", "/customers"):
            await web.get(acme.url + path)
        return clock.waited

    assert fetching(tmp_path, acme, do, delay=1.0) == [1.0, 7.0, 7.0]


# --- cache ---


def test_a_fresh_answer_is_used_again_and_a_stale_one_is_asked_for_by_its_tag(
    tmp_path: Path, acme: upstream.Site
) -> None:
    acme.pages["/page"] = upstream.conditional("<h1>One</h1>", '"tag"')

    async def do(web: Web, clock: Clock) -> list[tuple[bool, bytes]]:
        found = [await web.get(f"{acme.url}/page") for _ in range(2)]
        acme.pages["/page"] = upstream.conditional("<h1>Two</h1>", '"other"')
        found.append(await web.get(f"{acme.url}/page"))
        return [(one.cached, one.answer.body) for one in found]

    assert fetching(tmp_path, acme, do) == [(False, b"<h1>One</h1>"), (True, b"<h1>One</h1>"), (False, b"<h1>Two</h1>")]
    assert [one.headers.get("if-none-match") for one in acme.asked if one.path == "/page"] == [None, '"tag"', '"tag"']


def test_within_a_minute_nobody_is_asked_unless_it_is_wanted(tmp_path: Path, acme: upstream.Site) -> None:
    async def do(web: Web, clock: Clock) -> None:
        await web.get(f"{acme.url}/about")
        clock.now += 59
        await web.get(f"{acme.url}/about")
        await web.get(f"{acme.url}/about", refresh=True)
        clock.now += 61
        await web.get(f"{acme.url}/about")

    fetching(tmp_path, acme, do)
    assert acme.paths().count("/about") == 3


def test_what_must_not_be_stored_is_not(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/page"] = Answer("private", headers={"Cache-Control": "no-store"})

    async def do(web: Web, clock: Clock) -> None:
        await web.get(f"{acme.url}/page")
        await web.get(f"{acme.url}/page")

    fetching(tmp_path, acme, do)
    assert acme.paths().count("/page") == 2


def test_cookies_are_neither_kept_nor_sent_back(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/page"] = Answer("x", headers={"Set-Cookie": "session=1", "Cache-Control": "no-cache"})

    async def do(web: Web, clock: Clock) -> list[dict[str, str]]:
        return [dict((await web.get(f"{acme.url}/page")).answer.headers) for _ in range(2)]

    assert not any("set-cookie" in headers for headers in fetching(tmp_path, acme, do))
    assert not any("cookie" in one.headers for one in acme.asked)


# --- bounds ---


def test_a_host_that_asks_to_wait_is_left_alone_until_then(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/busy"] = Answer(status=429, headers={"Retry-After": "120"})

    async def do(web: Web, clock: Clock) -> str:
        with pytest.raises(ToolError, match="HTTP 429"):
            await web.get(f"{acme.url}/busy")
        with pytest.raises(ToolError, match="requires a pause of 120"):
            await web.get(f"{acme.url}/about")
        clock.now += 121
        return (await web.get(f"{acme.url}/about")).answer.url

    assert fetching(tmp_path, acme, do).endswith("/about")
    assert acme.paths() == ["/robots.txt", "/busy", "/about"]


@pytest.mark.parametrize("packed", [False, True])
def test_no_more_than_the_bound_is_read(tmp_path: Path, acme: upstream.Site, packed: bool) -> None:
    body = b"x" * 3_000_000
    acme.pages["/big"] = Answer(
        gzip.compress(body) if packed else body, headers={"Content-Encoding": "gzip"} if packed else {}
    )

    async def do(web: Web, clock: Clock) -> tuple[int, bool]:
        answer = (await web.get(f"{acme.url}/big")).answer
        return len(answer.body), answer.cut

    assert fetching(tmp_path, acme, do, max_bytes=100_000) == (100_000, True)


def test_a_page_that_breaks_off_is_no_page(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages["/half"] = Answer(gzip.compress(b"a page " * 500)[:-12], headers={"Content-Encoding": "gzip"})

    async def do(web: Web, clock: Clock) -> None:
        await web.get(f"{acme.url}/half")

    with pytest.raises(ToolError, match="incomplete gzip body"):
        fetching(tmp_path, acme, do)


def test_a_host_that_never_answers_is_given_up(tmp_path: Path, acme: upstream.Site) -> None:
    import threading

    over = threading.Event()

    def silent(asked: Asked) -> Answer:
        over.wait(20)
        return Answer("late")

    acme.pages["/silent"] = silent
    try:
        assert "timed out after 0.2 seconds" in refused(tmp_path, acme, f"{acme.url}/silent", timeout=0.2)
    finally:
        over.set()


def test_requests_say_who_asks(tmp_path: Path, acme: upstream.Site) -> None:
    settings = read_settings({"COMPETITOR_RESEARCH_CONTACT": "https://acme.example/bot\r\nX: 1"})

    async def do(web: Web, clock: Clock) -> None:
        await web.get(acme.url)

    fetching(tmp_path, acme, do, user_agent=settings.user_agent)
    agent = f"competitor-research-mcp/{__version__} (+https://acme.example/botX: 1)"
    assert acme.asked[-1].headers["user-agent"] == agent
    assert acme.asked[-1].headers["host"] == acme.url.removeprefix("http://")


# --- addresses ---


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "10.0.0.1",
    ]
    + [
        "169.254.169.254",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "[2002:7f00:1::]",
        "[::]",
    ],
)
def test_private_addresses_are_refused_in_every_form(tmp_path: Path, acme: upstream.Site, host: str) -> None:
    port = acme.url.rpartition(":")[2]
    said = refused(tmp_path, acme, f"http://{host}:{port}/about", private=frozenset())
    assert "private or local address" in said
    assert acme.paths() == []


def test_a_redirect_to_a_private_address_is_refused(tmp_path: Path, acme: upstream.Site, globex: upstream.Site) -> None:
    acme.pages["/out"] = Answer(status=302, headers={"Location": f"{globex.url}/preise"})
    assert "private" in refused(tmp_path, acme, f"{acme.url}/out")
    assert globex.paths() == []


def test_robots_txt_that_redirects_to_a_private_address_is_not_followed(
    tmp_path: Path, acme: upstream.Site, globex: upstream.Site
) -> None:
    acme.pages["/robots.txt"] = Answer(status=301, headers={"Location": f"{globex.url}/robots.txt"})
    refused(tmp_path, acme, f"{acme.url}/about")
    assert globex.paths() == []


def test_a_name_that_leads_to_a_private_address_is_refused(
    tmp_path: Path, acme: upstream.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def rebound(host: Any, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1" if host == "shop.example" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    port = acme.url.rpartition(":")[2]
    assert "private" in refused(tmp_path, acme, f"http://shop.example:{port}/about")
    assert acme.paths() == []


def test_redirects_are_followed_one_by_one_and_not_for_ever(tmp_path: Path, acme: upstream.Site) -> None:
    acme.pages |= {
        f"/hop{number}": Answer(status=302, headers={"Location": f"/hop{number + 1}"}) for number in range(9)
    }
    acme.pages["/round"] = Answer(status=302, headers={"Location": "/round"})
    assert "too many redirects" in refused(tmp_path, acme, f"{acme.url}/hop0")
    assert "too many redirects" in refused(tmp_path, acme, f"{acme.url}/round")

    async def do(web: Web, clock: Clock) -> tuple[str, ...]:
        return (await web.get(f"{acme.url}/old")).redirects

    assert fetching(tmp_path, acme, do) == (f"{acme.url}/old",)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "two words",
        "https://user:pass@example.com/",
        "http://example.com:0/",
    ],
)
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(ToolError):
        checked_url(url)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("example.com", "https://example.com/"),
        ("HTTPS://Example.com:443/a b?q=ü#part", "https://example.com/a%20b?q=%C3%BC"),
        ("http://münchen.example/x%2Fy", "http://xn--mnchen-3ya.example/x%2Fy"),
    ],
)
def test_addresses_are_sent_in_one_form(url: str, sent: str) -> None:
    assert checked_url(url) == sent


@pytest.mark.parametrize(
    ("name", "value"), [("DELAY", "soon"), ("DELAY", "-1"), ("TIMEOUT", "0"), ("MAX_BYTES", "nan")]
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"COMPETITOR_RESEARCH_{name}"):
        read_settings({f"COMPETITOR_RESEARCH_{name}": value})
