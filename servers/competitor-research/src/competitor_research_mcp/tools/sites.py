"""Tools for a whole site: sitemaps, feeds and robots.txt."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Annotated, Final
from urllib.parse import urljoin

from mcpfactory_runtime import Context, ToolError
from pydantic import BaseModel, Field

from ..desk import Desk, desk_of
from ..feeds import NewsFeed, day_of
from ..feeds import read_feed as parse_feed
from ..profile import KINDS, PageKind, kind_of
from ..settings import AGENT
from ..sitemaps import SitePage, read_sitemap, unpack
from ..xml import XmlError
from .pages import PageUrl

__all__ = ["TOOLS"]

_LARGEST: Final = 20_000_000  # bytes per file
_MOST_FILES: Final = 15  # sitemap files per call
_MOST_PAGES: Final = 100_000
_PLACES: Final = ("/sitemap.xml", "/sitemap_index.xml")
SiteUrl = Annotated[
    str, Field(description="URL of the site, or of its sitemap", examples=["https://example.com"], max_length=2000)
]


class SitePages(BaseModel):
    """Pages from a site's sitemaps."""

    total: int = Field(description="number of matching pages in all files that were read")
    pages: list[SitePage]
    next_offset: int | None = None
    kinds: dict[str, int] = Field(description="number of pages by kind: pricing, customers, news …")
    sitemaps: list[str] = Field(description="sitemap files that were read")
    left_out: list[str] = Field(default_factory=list, description="files that were not read, with the reason")


class FeedEntries(NewsFeed):
    """Entries of a feed."""

    url: str
    total: int
    undated: int = Field(default=0, description="entries without a valid date, which `since` excludes")


class Access(BaseModel):
    """Rules of a site's robots.txt for this server."""

    url: str
    allowed: bool
    rule: str = Field(default="", description="the deciding rule, if any")
    crawl_delay: float = Field(description="seconds between two requests to the site")
    group: str = Field(description="named: the file names this server; everyone: rules for all; none: no rules")
    sitemaps: list[str]
    agent: str = AGENT


async def list_site_pages(
    url: SiteUrl,
    ctx: Context,
    contains: Annotated[str, Field(max_length=200, description="only URLs with this text, such as /blog/")] = "",
    kind: Annotated[PageKind | None, Field(description="only pages of this kind, by URL")] = None,
    modified_since: Annotated[
        str, Field(max_length=40, description="only pages modified on this day or later: 2026-01-31")
    ] = "",
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> SitePages:
    """List the pages of a site from its sitemaps: those that robots.txt names, else /sitemap.xml; also index files and gzip.

    Args:
        url: URL of the site, or of its sitemap.
        limit: maximum number of pages.
        offset: number of pages to skip.
    """
    since = _day(modified_since, "modified_since")
    pages, read, left_out = await _sitemaps(desk_of(ctx), url, ctx)
    wanted, counts = await asyncio.to_thread(_chosen, pages, contains, kind, since)
    shown = wanted[offset : offset + limit]
    return SitePages(
        total=len(wanted),
        pages=shown,
        next_offset=offset + limit if offset + limit < len(wanted) else None,
        kinds=counts,
        sitemaps=read,
        left_out=left_out,
    )


def _chosen(
    pages: list[SitePage], contains: str, kind: PageKind | None, since: str
) -> tuple[list[SitePage], dict[str, int]]:
    """Return the matching pages, and their number by kind."""
    kinds = {page.url: kind_of(page.url) for page in pages}
    wanted = [
        page
        for page in pages
        if contains.lower() in page.url.lower()
        and kind in (None, kinds[page.url])
        and (not since or day_of(page.modified) >= since)
    ]
    counts = Counter(kinds[page.url] for page in wanted)
    return wanted, {name: counts[name] for name in KINDS if counts[name]}


async def read_feed(
    url: PageUrl,
    ctx: Context,
    since: Annotated[str, Field(max_length=40, description="only entries of this day or later: 2026-01-31")] = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> FeedEntries:
    """Read an RSS or Atom feed: what a company announced, with dates and links. Give the feed, or a page that links to one, such as the blog.

    Args:
        limit: maximum number of entries, the newest first.
    """
    desk, first = desk_of(ctx), _day(since, "since")
    answer = (await desk.web.get(url)).answer
    try:
        found = await desk.reading(answer.url, parse_feed, unpack(answer.body, desk.settings.max_bytes), answer.url)
    except XmlError:
        if answer.cut and b"<html" not in answer.body[:1000].lower():
            raise ToolError(_too_large(answer.url)) from None
        feeds = (await desk.page(url)).metadata.feeds
        if not feeds:
            raise ToolError(
                f"{answer.url} is not a feed, and does not link to one.\nhint: try the site's blog or news page"
            ) from None
        answer = (await desk.web.get(feeds[0].url)).answer
        found = await desk.reading(answer.url, _feed_or_error, answer.body, answer.url, cut=answer.cut)
    days = [day_of(entry.published) for entry in found.entries]
    wanted = [entry for entry, day in zip(found.entries, days, strict=True) if not first or day >= first]
    return FeedEntries(
        title=found.title, entries=wanted[:limit], url=answer.url, total=len(wanted), undated=days.count("")
    )


def _day(text: str, name: str) -> str:
    """Parse the day in an argument; "" if it is empty.

    Raises:
        ToolError: the day is invalid.
    """
    day = day_of(text)
    if text.strip() and len(day) != len("2026-01-31"):
        raise ToolError(f"{name} is {text!r}, which is not a valid day.\nhint: use the form 2026-01-31")
    return day


def _too_large(url: str) -> str:
    return f"the feed {url} is too large: only its beginning was read.\nhint: increase COMPETITOR_RESEARCH_MAX_BYTES"


async def check_robots(url: PageUrl, ctx: Context) -> Access:
    """Check whether a site allows programs such as this one to fetch a page (robots.txt), with its crawl delay and sitemaps."""
    from ..web import checked_url

    desk, full = desk_of(ctx), checked_url(url)
    robots = await desk.web.robots(full)
    rule = robots.rule_for(full)
    return Access(
        url=full,
        allowed=robots.allows(full),
        rule=f"{'Allow' if rule.allow else 'Disallow'}: {rule.pattern[:200]}" if rule else "",
        crawl_delay=max(robots.delay, desk.settings.delay),
        group=robots.group,
        sitemaps=list(robots.sitemaps)[:50],
    )


def _feed_or_error(body: bytes, url: str, *, cut: bool) -> NewsFeed:
    try:
        return parse_feed(body, url)
    except XmlError as error:
        raise ToolError(_too_large(url) if cut else f"{url} is linked as a feed, but is not one: {error}.") from None


async def _sitemaps(desk: Desk, url: str, ctx: Context) -> tuple[list[SitePage], list[str], list[str]]:
    """Return the pages of a site, the sitemap files that were read, and those that were not."""
    from ..web import checked_url

    site = checked_url(url)
    named = [site] if site.endswith((".xml", ".xml.gz", ".txt")) else list((await desk.web.robots(site)).sitemaps)
    waiting = deque(named or [urljoin(site, place) for place in _PLACES])
    pages: dict[str, SitePage] = {}
    read: list[str] = []
    left_out: list[str] = []
    seen = set(waiting)
    while waiting and len(read) < _MOST_FILES and len(pages) < _MOST_PAGES:
        file = waiting.popleft()
        try:
            answer = (await desk.web.get(file, limit=_LARGEST)).answer
            if answer.cut:
                raise XmlError(f"it is larger than {_LARGEST // 1_000_000} MB")
            sitemap = await asyncio.to_thread(read_sitemap, unpack(answer.body, _LARGEST), answer.url)
        except (ToolError, XmlError) as error:
            left_out.append(f"{file}: {str(error).splitlines()[0]}")
            continue
        read.append(file)
        pages |= {page.url: page for page in sitemap.pages}
        waiting += [one for one in sitemap.files if one not in seen]
        seen |= set(sitemap.files)
        await ctx.report_progress(len(read), len(read) + len(waiting), f"{len(pages)} pages")
        if not named:  # the second default path is only a fallback
            waiting = deque(one for one in waiting if one != urljoin(site, _PLACES[1]))
    if not read:
        raise ToolError(
            "The site has no readable sitemap: " + "; ".join(left_out[:3]) + "\nhint: inspect_page lists its key pages"
        )
    return (
        list(pages.values()),
        read,
        left_out + [f"{file}: more than {_MOST_FILES} files" for file in list(waiting)[:20] if named],
    )


TOOLS: Final = (list_site_pages, read_feed, check_robots)
