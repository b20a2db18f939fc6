"""HTTP client that obeys robots.txt, limits rate and size, caches responses, and checks each redirect."""

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

_FRESH: Final = 60.0  # minimum seconds of freshness, whatever Cache-Control requests
_FRESHEST: Final = 3600.0  # maximum seconds of freshness
_ROBOTS: Final = 24 * 3600.0  # seconds; RFC 9309 §2.4
_ROBOTS_AGAIN: Final = 60.0  # seconds until an unreachable robots.txt is retried
_PATIENCE: Final = 60.0  # maximum seconds that a call waits for the rate limit
_KEPT_HEADERS: Final = 60
_RETRY_AT_MOST: Final = 24 * 3600.0
_SAFE: Final = "!$%&'()*+,-./:;=?@_~"

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response with its origin.

    Attributes:
        answer: the response; its `url` is the final one.
        redirects: URLs before the final one.
        cached: True if it is from the cache, fresh or revalidated.
    """

    answer: Answer
    redirects: tuple[str, ...] = ()
    cached: bool = False


class Web:
    """HTTP client. Create one per process, because it keeps the rate limit of each host.

    Args:
        settings: settings of the server.
        store: cache of responses.
        clock: time in seconds.
        sleep: coroutine that waits for some seconds.
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
        self._next: dict[str, float] = {}  # host → time of the next permitted request
        self._refused: dict[str, float] = {}  # host → end of its Retry-After
        self._robots: dict[str, tuple[float, Robots]] = {}
        self._closed: dict[str, str] = {}  # origin → reason why its robots.txt is unreachable

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def get(self, url: str, *, refresh: bool = False, limit: int = 0) -> Fetched:
        """Fetch a URL.

        Args:
            url: http or https URL.
            refresh: ignore a fresh response in the cache.
            limit: maximum bytes to read; 0 for the limit of the settings.

        Raises:
            ToolError: fetching is not permitted, or fails.
        """
        fetched = await self._along(checked_url(url), refresh=refresh, limit=limit or self._settings.max_bytes)
        status = fetched.answer.status
        if status >= 400:
            raise ToolError(f"{fetched.answer.url} returned HTTP {status}.\nhint: {_advice(status)}")
        return fetched

    async def robots(self, url: str) -> Robots:
        """Return the robots.txt rules for a URL, cached for a day."""
        origin = _origin(url)
        kept = self._robots.get(origin)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        try:
            fetched = await self._along(f"{origin}/robots.txt", limit=MAX_BYTES, obey=False)
            status = fetched.answer.status
            problem = f"It returned HTTP {status}."
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

    # --- requests ---

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
                raise ToolError(f"{url} redirects to an address without https; it is not followed.")
            if len(way) > MAX_REDIRECTS or redirect.url in way:
                raise ToolError(f"{way[0]}: too many redirects.")
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
                "hint: use another page of the site, its sitemap or its feed; or pass the page's HTML from a browser to read_html"
            )

    async def _one(self, url: str, *, refresh: bool, limit: int) -> Fetched:
        kept = self._store.answer(url)
        if kept is not None and kept.cut and len(kept.body) < limit:
            kept = None  # it was cut below the current limit
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
                f"{host} requires a pause of {until - now:.0f} more seconds (Retry-After).\nhint: try again after that"
            )
        pause = self._next.get(host, 0.0) - now
        if pause > _PATIENCE:
            raise ToolError(f"{host} requires a pause of {pause:.0f} more seconds.\nhint: try again after that")
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
            raise ToolError(f"{url} timed out after {self._settings.timeout:g} seconds.") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, httpx.DecodingError) as error:
            raise ToolError(f"{url} cannot be read: {str(error) or type(error).__name__}.") from None

    async def _exchange(self, url: str, headers: Mapping[str, str], limit: int) -> Answer:
        body, cut = bytearray(), False
        async with self._pool.stream("GET", url, headers=list(headers.items())) as response:
            found = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers[:_KEPT_HEADERS]
                if name.lower() != b"set-cookie"  # cookies are never sent back
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
    """Normalize a URL: encoded, with a path, without fragment.

    Raises:
        ToolError: the URL is invalid.
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
        raise ToolError(f"{url[:200]!r} is not the address of a web page.\nhint: use https://example.com/pricing")
    if parts.username is not None or parts.password is not None:
        raise ToolError("The address contains a user or a password.\nhint: remove them")
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
    """Return the freshness of a response in seconds, from Cache-Control within bounds."""
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
        return "the site denies programs access to this page; use another page, or pass its HTML from a browser to read_html"
    if status in (404, 410):
        return "the page does not exist; list_site_pages lists the pages of the site"
    if status in (429, 503):
        return "the site is busy or limits requests; try again later"
    return "the site has a problem with this page; try again later"
