"""Tools that combine several API calls: comparisons, opportunities, inspections and sitemaps."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .answers import ask_google, listed, members
from .days import KEPT, Against, Period, earlier, latest, today
from .figures import Change, CompetingPages, Figures, Opportunity, changes, competing, opportunities, read_rows, total

__all__ = ["check_sitemaps", "compare_periods", "find_competing_pages", "find_near_first_page", "inspect_pages"]

SiteUrl = Annotated[str, Field(min_length=1, examples=["sc-domain:example.com"])]
Days = Annotated[int, Field(ge=1, le=480)]
Limit = Annotated[int, Field(ge=1, le=100)]
Dimension = Literal["query", "page", "country", "device"]
Pages = Annotated[list[str], Field(min_length=1, max_length=50)]

_ROWS: Final = 25_000  # per response, a limit of the API
_MOST: Final = 50_000  # per day and search type, a limit of the API
_AT_ONCE: Final = 4  # concurrent inspections; the quota is 600 per minute
_USED_UP: Final = re.compile(r"\b429\b|quota|rate ?limit", re.IGNORECASE)  # Google also returns 403 for this
_STALE: Final = timedelta(days=30)  # since Google last read a sitemap


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two periods; `won` and `lost` have the largest changes in clicks."""

    period: str
    compared_with: str
    now: Figures
    before: Figures
    won: list[Change]
    lost: list[Change]


@dataclass(frozen=True, slots=True)
class Opportunities:
    """Queries near the first page; `found` counts all of them."""

    period: str
    found: int
    queries: list[Opportunity]


@dataclass(frozen=True, slots=True)
class Competition:
    """Queries for which several pages compete; `found` counts all of them."""

    period: str
    found: int
    queries: list[CompetingPages]


@dataclass(frozen=True, slots=True)
class InspectedPage:
    """Index status of a page; `why` has the reasons why it is not indexed, or differs, else ""."""

    url: str
    verdict: str
    state: str
    why: str
    last_crawl: str


@dataclass(frozen=True, slots=True)
class Inspections:
    """Index status of pages, those with problems first; `why_not` is the reason if some were not inspected."""

    verdicts: dict[str, int]
    pages: list[InspectedPage]
    not_inspected: list[str]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class SitemapHealth:
    """A sitemap; `problems` is empty if there are none."""

    path: str
    urls: int
    last_read: str
    problems: list[str]


async def compare_periods(
    siteUrl: SiteUrl,
    ctx: Context,
    days: Days = 28,
    startDate: date | None = None,
    endDate: date | None = None,
    against: Against = "previous",
    dimension: Dimension = "query",
    limit: Limit = 10,
) -> Comparison:
    """Compare clicks, impressions and positions of two periods: totals, and what won and lost the most clicks.

    Args:
        siteUrl: the property, exactly as list_sites names it.
        days: number of latest complete days; ignored with startDate.
        startDate: first day of the newer period, with endDate; replaces days.
        endDate: last day of the newer period.
        against: compare with the days just before, or with the same weekdays a year ago.
        dimension: what to compare.
        limit: maximum number of winners, and of losers.
    """
    period = _period(days, startDate, endDate)
    other = _kept(earlier(period, against))
    rows, rows_before, sums, sums_before = await asyncio.gather(
        *(_rows(ctx, siteUrl, one, [dimension]) for one in (period, other)),
        *(_rows(ctx, siteUrl, one, []) for one in (period, other)),
    )
    changed = changes(rows, rows_before)
    return Comparison(
        _said(period),
        _said(other),
        total(sums.values()),
        total(sums_before.values()),
        [one for one in changed if one.clicks_change > 0][:limit],
        [one for one in reversed(changed) if one.clicks_change < 0][:limit],
    )


async def find_near_first_page(
    siteUrl: SiteUrl,
    ctx: Context,
    days: Days = 28,
    startDate: date | None = None,
    endDate: date | None = None,
    fromPosition: Annotated[float, Field(ge=1)] = 4,
    toPosition: Annotated[float, Field(le=100)] = 20,
    minImpressions: Annotated[int, Field(ge=1)] = 50,
    limit: Limit = 25,
) -> Opportunities:
    """Find queries that are nearly on the first page and often seen, with their pages: where a better page pays first.

    Args:
        siteUrl: the property, exactly as list_sites names it.
        days: number of latest complete days; ignored with startDate.
        startDate: first day, with endDate; replaces days.
        endDate: last day.
        fromPosition: best average position to include.
        toPosition: worst average position to include.
        minImpressions: minimum number of impressions.
        limit: maximum number of queries; `found` counts all.
    """
    if fromPosition > toPosition:
        raise ToolError(
            f"fromPosition {fromPosition:g} is greater than toPosition {toPosition:g}.\nhint: position 1 is the best; swap them"
        )
    period = _period(days, startDate, endDate)
    rows = await _rows(ctx, siteUrl, period, ["query", "page"])
    found = opportunities(rows, first=fromPosition, last=toPosition, least=minImpressions)
    return Opportunities(_said(period), len(found), found[:limit])


async def find_competing_pages(
    siteUrl: SiteUrl,
    ctx: Context,
    days: Days = 28,
    startDate: date | None = None,
    endDate: date | None = None,
    minImpressions: Annotated[int, Field(ge=1)] = 50,
    limit: Limit = 25,
) -> Competition:
    """Find queries for which several pages of the property compete (cannibalisation), with each page's share.

    Args:
        siteUrl: the property, exactly as list_sites names it.
        days: number of latest complete days; ignored with startDate.
        startDate: first day, with endDate; replaces days.
        endDate: last day.
        minImpressions: minimum number of impressions of a query.
        limit: maximum number of queries; `found` counts all.
    """
    period = _period(days, startDate, endDate)
    found = competing(await _rows(ctx, siteUrl, period, ["query", "page"]), least=minImpressions)
    return Competition(_said(period), len(found), found[:limit])


async def inspect_pages(siteUrl: SiteUrl, urls: Pages, ctx: Context) -> Inspections:
    """Inspect up to 50 pages in Google's index, and report what keeps each out; for one page with every detail, inspect_url.

    Each page counts toward the quota of 2,000 a day. When it is used up, the rest is listed as not inspected.

    Args:
        siteUrl: the property, exactly as list_sites names it.
        urls: URLs of pages within the property.
    """
    urls = list(dict.fromkeys(urls))  # without duplicates, because each inspection uses the quota
    limit, done, refused = asyncio.Semaphore(_AT_ONCE), 0, ""

    async def inspect(url: str) -> InspectedPage | None:
        nonlocal done, refused
        async with limit:
            if refused:
                return None
            try:
                found = await ask_google(ctx, "inspect_url", inspectionUrl=url, siteUrl=siteUrl)
            except ToolError as error:
                said = str(error).partition("\n")[0]
                if not _USED_UP.search(said):
                    return InspectedPage(url, "NOT_INSPECTED", "", said, "")
                refused = said
                return None
            done += 1
            await ctx.report_progress(done, len(urls), f"{done} of {len(urls)} pages")
            return _inspected(url, members(found["inspectionResult"]))

    pages = await asyncio.gather(*map(inspect, urls))
    seen = [page for page in pages if page is not None]
    verdicts = {name: sum(page.verdict == name for page in seen) for name in sorted({page.verdict for page in seen})}
    left = [url for url, page in zip(urls, pages, strict=True) if page is None]
    return Inspections(verdicts, sorted(seen, key=lambda page: not page.why), left, refused)


async def check_sitemaps(siteUrl: SiteUrl, ctx: Context) -> list[SitemapHealth]:
    """Check every sitemap of a property: errors, warnings, never read, or not read for a month; those with problems first.

    Args:
        siteUrl: the property, exactly as list_sites names it.
    """
    found = await ask_google(ctx, "list_sitemaps", may_be_empty=True, siteUrl=siteUrl)
    now = datetime.now(UTC)
    health = [_health(sitemap, now) for sitemap in listed(found.get("sitemap"))]
    return sorted(health, key=lambda one: (not one.problems, one.path))


def _period(days: int, first: date | None, last: date | None) -> Period:
    if first is None and last is None:
        return _kept(latest(days, today()))
    if first is None or last is None:
        raise ToolError("startDate and endDate go together; or give days alone.")
    try:
        return _kept(Period(first, last))
    except ValueError as error:
        raise ToolError(f"{error}.") from None


def _kept(period: Period) -> Period:
    """Return the period after checking its age.

    Raises:
        ToolError: Google has deleted data of its first days, so figures would be too low.
    """
    oldest = today() - KEPT
    if period.first < oldest:
        raise ToolError(
            f"The period {_said(period)} begins before {oldest}: Google keeps 16 months.\nhint: choose fewer or later days; a comparison needs both periods"
        )
    return period


def _said(period: Period) -> str:
    return f"{period.first} to {period.last}"


async def _rows(ctx: Context, site: str, period: Period, dimensions: list[str]) -> dict[tuple[str, ...], Figures]:
    """Return all rows of a period, page by page."""
    rows: dict[tuple[str, ...], Figures] = {}
    for start in range(0, _MOST, _ROWS):
        answer = await ask_google(
            ctx,
            "query_search_analytics",
            siteUrl=site,
            startDate=str(period.first),
            endDate=str(period.last),
            dimensions=dimensions,
            rowLimit=_ROWS,
            startRow=start,
        )
        page = read_rows(answer)
        if page.keys() <= rows.keys():
            break
        rows |= page
        if len(page) < _ROWS:
            break
    return rows


def _inspected(url: str, result: dict[str, Any]) -> InspectedPage:
    status = members(result.get("indexStatusResult"))
    reasons = []
    if status.get("verdict") != "PASS":
        reasons.append(status.get("coverageState", "not indexed"))
    if status.get("robotsTxtState") == "DISALLOWED":
        reasons.append("robots.txt forbids it")
    if (blocked := status.get("indexingState", "")).startswith("BLOCKED"):
        reasons.append(blocked.replace("_", " ").lower())
    if (fetched := status.get("pageFetchState", "SUCCESSFUL")) not in ("SUCCESSFUL", "PAGE_FETCH_STATE_UNSPECIFIED"):
        reasons.append(f"fetching it gave {fetched.replace('_', ' ').lower()}")
    chosen, named = status.get("googleCanonical"), status.get("userCanonical")
    if chosen and named and chosen != named:
        reasons.append(f"Google shows {chosen} in its place")
    verdict, state = status.get("verdict", "VERDICT_UNSPECIFIED"), status.get("coverageState", "")
    return InspectedPage(url, verdict, state, "; ".join(reasons), status.get("lastCrawlTime", ""))


def _health(sitemap: dict[str, Any], now: datetime) -> SitemapHealth:
    problems = [f"{count} {name}" for name in ("errors", "warnings") if (count := _count(sitemap.get(name)))]
    read = str(sitemap.get("lastDownloaded") or "")
    day = _moment(read)
    if sitemap.get("isPending") or not read:
        problems.append("Google has not read it yet")
    elif day is None:
        problems.append(f"invalid time of the last read by Google: {read[:40]}")
    elif now - day > _STALE:
        problems.append(f"Google read it last on {read[:10]}")
    if sitemap.get("type") == "notSitemap":
        problems.append("it is no sitemap")
    urls = sum(_count(content.get("submitted")) for content in listed(sitemap.get("contents")))
    return SitemapHealth(str(sitemap.get("path", "")), urls, read, problems)


def _count(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 0


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
