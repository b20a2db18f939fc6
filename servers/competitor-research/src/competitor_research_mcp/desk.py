"""Shared resources of the tools: the HTTP client and the database, one of each per server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mcpfactory_runtime import Context, ToolError

from .limits import TooMuchError, at_most
from .page import Page, decoded, read_page
from .settings import Settings
from .store import Store

if TYPE_CHECKING:
    from .web import Web

__all__ = ["Desk", "desk_of"]

Args = ParamSpec("Args")
Result = TypeVar("Result")
_HTML = ("text/html", "application/xhtml+xml", "")


def _now() -> datetime:
    return datetime.now(UTC)


class Desk:
    """Access to pages and the database.

    Args:
        settings: settings of the server.
        now: returns the current time.
    """

    def __init__(self, settings: Settings, now: Callable[[], datetime] = _now) -> None:
        self.settings = settings
        self.store = Store(settings.database)
        self._now = now
        self._web: Web | None = None

    @property
    def web(self) -> Web:
        """HTTP client, created lazily because its library loads slowly."""
        if self._web is None:
            from .web import Web

            self._web = Web(self.settings, self.store, clock=lambda: self._now().timestamp())
        return self._web

    def moment(self, days_ago: float = 0) -> str:
        """Return the current time, or that of some days ago, as ISO 8601 in UTC."""
        return datetime.fromtimestamp(self._now().timestamp() - days_ago * 86_400, UTC).isoformat(timespec="seconds")

    async def page(self, url: str, *, refresh: bool = False) -> Page:
        """Fetch and parse a page.

        Raises:
            ToolError: the page cannot be fetched, or is not HTML.
        """
        answer = (await self.web.get(url, refresh=refresh)).answer
        kind = answer.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() not in _HTML or answer.body.startswith(
            (b"%PDF", b"\x89PNG", b"PK\x03\x04")
        ):
            raise ToolError(
                f"{answer.url} is {kind.partition(';')[0] or 'binary'}, not a web page.\n"
                "hint: use read_feed for feeds and list_site_pages for sitemaps; other files are not supported"
            )
        page = await self.reading(answer.url, read_page, decoded(answer.body, kind), answer.url, answer.headers)
        page.cut = answer.cut
        return page

    async def reading(
        self, what: str, function: Callable[Args, Result], *args: Args.args, **options: Args.kwargs
    ) -> Result:
        """Run a parsing function in a thread, with the time limit of the settings.

        Raises:
            ToolError: parsing takes too long.
        """

        def limited() -> Result:
            with at_most(self.settings.timeout):
                return function(*args, **options)

        try:
            return await asyncio.to_thread(limited)
        except TooMuchError:
            raise ToolError(
                f"{what} takes more than {self.settings.timeout:g} seconds to parse: its markup is unusual.\n"
                "hint: use another page of the site, or increase COMPETITOR_RESEARCH_TIMEOUT"
            ) from None

    async def aclose(self) -> None:
        """Close the HTTP client and the database."""
        if self._web is not None:
            await self._web.aclose()
        self.store.close()


def desk_of(ctx: Context) -> Desk:
    """Return the shared resources of the server of a call."""
    desk = ctx.state
    assert isinstance(desk, Desk)
    return desk
