"""Pages of other people's hosts, fetched politely: robots.txt, one request at a time with pauses, a cache, bounds, redirects one by one."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

import httpcore
import httpx
from mcpfactory_runtime import ToolError
from mcpfactory_runtime.protocol.decoding import ACCEPTED, BodyDecoder
from mcpfactory_runtime.urls import MAX_REDIRECTS, redirect_of

from .network import PublicNetwork
from .robots import ALL, MAX_BYTES, NOTHING, Robots, parse_robots
from .settings import AGENT, Settings
from .store import Answer, Store

__all__ = ["Fetched", "Web", "checked_url"]

_FRESH: Final = 60.0  # seconds that an answer is good for without asking again, whatever it says
_FRESHEST: Final = 3600.0  # and at most
_ROBOTS: Final = 24 * 3600.0  # RFC 9309 §2.4
_ROBOTS_AGAIN: Final = 60.0  # after one that could not be had
_PATIENCE: Final = 60.0  # seconds that a call waits for its turn at most
_KEPT_HEADERS: Final = 60
_RETRY_AT_MOST: Final = 24 * 3600.0
_SAFE: Final = "!$%&'()*+,-./:;=?@_~"

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, and how it was got.

    Attributes:
        answer: its `url` is the last of the way there.
        redirects: the addresses before that.
        cached: nobody was asked, or the host said that nothing changed.
    """

    answer: Answer
    redirects: tuple[str, ...] = ()
    cached: bool = False


class Web:
    """Fetches pages. One for a process: it knows when each host may be asked again.

    Args:
        settings: how politely, and whom besides public hosts.
        store: where answers are kept.
        clock: seconds since some moment.
        sleep: waits.
    """

    def __init__(
        self, settings: Settings, store: Store, *, clock: Callable[[], float] = time.time, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            network_backend=PublicNetwork(settings.private),
            max_connections=10,
            keepalive_expiry=15,
        )
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next: dict[str, float] = {}  # host → when it may be asked again
        self._refused: dict[str, float] = {}  # host → until when it asked to be left alone
        self._robots: dict[str, tuple[float, Robots]] = {}
        self._closed: dict[str, str] = {}  # origin → why its robots.txt could not be had

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def get(self, url: str, *, refresh: bool = False, limit: int = 0) -> Fetched:
        """Return what is at an address.

        Args:
            url: with http or https.
            refresh: ask the host even where a fresh answer is kept.
            limit: bytes that are read; 0 for those of the settings.

        Raises:
            ToolError: it may not be fetched, cannot be, or is answered with an error.
        """
        fetched = await self._along(checked_url(url), refresh=refresh, limit=limit or self._settings.max_bytes)
        status = fetched.answer.status
        if status >= 400:
            raise ToolError(f"{fetched.answer.url} is answered with status {status}.\nhint: {_advice(status)}")
        return fetched

    async def robots(self, url: str) -> Robots:
        """Return the rules of the host of an address; they are kept for a day."""
        origin = _origin(url)
        kept = self._robots.get(origin)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        try:
            fetched = await self._along(f"{origin}/robots.txt", limit=MAX_BYTES, obey=False)
            status = fetched.answer.status
            problem = f"It is answered with status {status}."
        except ToolError as error:
            status, problem = 0, str(error)
        if 200 <= status < 300:
            found, good = parse_robots(fetched.answer.body.decode("utf-8", "replace"), AGENT), _ROBOTS
        elif 400 <= status < 500 and status != 429:
            found, good = ALL, _ROBOTS
        else:
            found, good = NOTHING, _ROBOTS_AGAIN
            self._closed[origin] = problem
        self._robots[origin] = (self._clock() + good, found)
        return found

    # --- the way to an answer ---

    async def _along(self, url: str, *, refresh: bool = False, limit: int, obey: bool = True) -> Fetched:
        way: list[str] = []
        while True:
            if obey:
                await self._obey(url)
            fetched = await self._one(url, refresh=refresh, limit=limit)
            answer = fetched.answer
            redirect = redirect_of("GET", url, answer.status, answer.headers.get("location", ""))
            if redirect is None:
                return replace(fetched, redirects=tuple(way))
            way.append(url)
            if redirect.refusal == "target" or (url.startswith("https:") and not redirect.url.startswith("https:")):
                raise ToolError(f"{url} redirects to what is no https address; it is not followed.")
            if len(way) > MAX_REDIRECTS or redirect.url in way:
                raise ToolError(f"{way[0]} redirects without an end.")
            url = checked_url(redirect.url)

    async def _obey(self, url: str) -> None:
        rules = await self.robots(url)
        if rules is NOTHING:
            why, _, hint = self._closed.get(_origin(url), "").partition("\n")
            raise ToolError(
                f"{_origin(url)}/robots.txt cannot be read, so nothing is fetched there (RFC 9309). {why}\n"
                + (hint or "hint: check the address, or try again in a minute")
            )
        rule = rules.rule_for(url)
        if rule is not None and not rule.allow:
            raise ToolError(
                f"The robots.txt of {urlsplit(url).netloc} does not allow {url} to be fetched by programs (Disallow: {rule.pattern[:100]}).\n"
                "hint: use another page of the site, its sitemap or its feed; or give the page's HTML to read_html if a person opened it"
            )

    async def _one(self, url: str, *, refresh: bool, limit: int) -> Fetched:
        kept = self._store.answer(url)
        if kept is not None and kept.cut and len(kept.body) < limit:
            kept = None  # more of it is wanted than was read
        if kept is not None and not refresh and self._clock() < kept.fetched + _lifetime(kept.headers):
            return Fetched(kept, cached=True)
        async with self._turns[urlsplit(url).netloc]:
            await self._wait(url)
            try:
                answer = await self._ask(url, kept, limit)
            finally:
                self._next[urlsplit(url).netloc] = self._clock() + self._delay(url)
        if answer.status == 304 and kept is not None:
            known = replace(kept, headers={**kept.headers, **_of_304(answer.headers)}, fetched=self._clock())
            self._store.keep_answer(known)
            return Fetched(known, cached=True)
        if answer.status in (429, 503):
            self._refused[urlsplit(url).netloc] = self._clock() + _retry_after(answer.headers, self._clock())
        elif answer.status < 400 and "no-store" not in answer.headers.get("cache-control", ""):
            self._store.keep_answer(answer)
        return Fetched(answer)

    def _delay(self, url: str) -> float:
        kept = self._robots.get(_origin(url))
        return max(self._settings.delay, kept[1].delay if kept is not None else 0.0)

    async def _wait(self, url: str) -> None:
        host, now = urlsplit(url).netloc, self._clock()
        if (until := self._refused.get(host, 0.0)) > now:
            raise ToolError(
                f"{host} asked to be left alone for {until - now:.0f} more seconds.\nhint: ask again after that"
            )
        pause = self._next.get(host, 0.0) - now
        if pause > _PATIENCE:
            raise ToolError(f"{host} may be asked again in {pause:.0f} seconds only.\nhint: ask again after that")
        if pause > 0:
            await self._sleep(pause)

    async def _ask(self, url: str, kept: Answer | None, limit: int) -> Answer:
        headers = {
            "Host": urlsplit(url).netloc,
            "User-Agent": self._settings.user_agent,
            "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "Accept-Encoding": ACCEPTED,
            **_conditions(kept),
        }
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await self._exchange(url, headers, limit)
        except TimeoutError:
            raise ToolError(f"{url} was not answered within {self._settings.timeout:g} seconds.") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, httpx.DecodingError) as error:
            raise ToolError(f"{url} cannot be read: {str(error) or type(error).__name__}.") from None

    async def _exchange(self, url: str, headers: Mapping[str, str], limit: int) -> Answer:
        body, cut = bytearray(), False
        async with self._pool.stream("GET", url, headers=list(headers.items())) as response:
            found = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers[:_KEPT_HEADERS]
                if name.lower() != b"set-cookie"  # nothing is sent back, so nothing is kept
            }
            decoder = BodyDecoder(found.get("content-encoding", ""))
            async for data in response.aiter_stream():
                for piece in decoder.pieces(data):
                    body += piece
                    if len(body) > limit:
                        cut = True
                        break
                if cut:
                    break
            if not cut:
                body += decoder.rest()
        return Answer(url, response.status, found, bytes(body[:limit]), cut, self._clock())


def checked_url(url: str) -> str:
    """Return an address as it is sent: encoded, with a path, without fragment.

    Raises:
        ToolError: it is no address of a web page.
    """
    text = url.strip()
    if "://" not in text and text and " " not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        name = host.encode("idna").decode() if not host.isascii() else host
    except (ValueError, UnicodeError):
        parts, name, port = urlsplit(""), "", None
    if parts.scheme.lower() not in ("http", "https") or not name or port == 0:
        raise ToolError(f"{url[:200]!r} is no address of a web page.\nhint: such as https://example.com/pricing")
    if parts.username is not None or parts.password is not None:
        raise ToolError("The address has a user or a password in it, which is refused.\nhint: give it without")
    place = f"[{name}]" if ":" in name else name
    usual = {"http": 80, "https": 443}[parts.scheme.lower()]
    netloc = place if port in (None, usual) else f"{place}:{port}"
    return urlunsplit(
        (parts.scheme.lower(), netloc.lower(), quote(parts.path, safe=_SAFE) or "/", quote(parts.query, safe=_SAFE), "")
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _conditions(kept: Answer | None) -> dict[str, str]:
    if kept is None or kept.cut or kept.status != 200:
        return {}
    pairs = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
    return {name: kept.headers[header] for header, name in pairs if header in kept.headers}


def _lifetime(headers: Mapping[str, str]) -> float:
    """Return for how many seconds an answer is used without asking: what it says, within bounds."""
    directives = [one.strip().lower() for one in headers.get("cache-control", "").split(",")]
    if "no-cache" in directives:
        return 0.0
    ages = [one.partition("=")[2] for one in directives if one.startswith("max-age=")]
    return min(max(float(ages[0]), _FRESH), _FRESHEST) if ages and ages[0].isdigit() else _FRESH


def _of_304(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name in ("cache-control", "date", "etag", "expires", "last-modified")
    }


def _retry_after(headers: Mapping[str, str], now: float) -> float:
    text = headers.get("retry-after", "").strip()
    if text.isdigit():
        return min(float(text[:9]), _RETRY_AT_MOST)
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - now, 1.0), _RETRY_AT_MOST)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 30.0


def _advice(status: int) -> str:
    if status in (401, 403, 407, 451):
        return "the site does not show this page to programs; use another page, or give its HTML to read_html if a person opened it"
    if status in (404, 410):
        return "the page is not there; list_site_pages shows the pages of the site"
    if status in (429, 503):
        return "the site is busy or asks for fewer requests; ask again later"
    return "the site has a problem with this page; ask again later"
