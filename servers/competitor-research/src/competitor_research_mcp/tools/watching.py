"""Tools that watch pages of competitors over time."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from mcpfactory_runtime import Context, ToolError
from pydantic import BaseModel, Field

from ..changes import Change, compare_snapshots, snapshot
from ..desk import Desk, desk_of
from ..page import Page
from ..profile import PageKind, kind_of
from ..report import ReportPage, report_all, report_one
from ..store import Watch
from .companies import TOO_LARGE, Homepage, find_profile

__all__ = ["CHANGING", "READING", "overview", "report_about"]

_MOST_WATCHED: Final = 500  # pages
_FLEETING: Final = "The database is not writable, so the watch list is lost when this process ends. hint: set COMPETITOR_RESEARCH_DB to a writable file"
Name = Annotated[str, Field(min_length=1, max_length=100, description="name of the competitor", examples=["Example"])]
MaybeName = Annotated[str, Field(max_length=100, description="only this competitor; empty for all")]


class WatchedPage(BaseModel):
    """A page on the watch list."""

    competitor: str
    url: str
    kind: PageKind
    title: str = ""
    checked: str = Field(default="", description="time of the last check")
    snapshots: int = 0
    prices: int = Field(0, description="number of prices")
    problem: str = ""


class WatchList(BaseModel):
    """Watched pages."""

    pages: list[WatchedPage]
    note: str = ""


class PageChanges(BaseModel):
    """Changes of a page."""

    competitor: str
    url: str
    seen: str = Field(description="time when the change was detected")
    changes: list[Change]


class CheckResult(BaseModel):
    """Result of a check of the watched pages."""

    checked: int
    changed: list[PageChanges]
    unchanged: int
    problems: list[str] = Field(default_factory=list)
    note: str = ""


async def watch_competitor(
    competitor: Name,
    url: Homepage,
    ctx: Context,
    pages: Annotated[
        int,
        Field(
            ge=0,
            le=8,
            description="number of further key pages (pricing, product …) to watch; 0 for only this page",
        ),
    ] = 3,
) -> WatchList:
    """Start to watch a competitor: find the key pages of its site, and store a first snapshot of each for check_changes.

    To add a single page, give its URL with pages=0.
    """
    desk = desk_of(ctx)
    if len(desk.store.watches()) + pages + 1 > _MOST_WATCHED:
        raise ToolError(f"at most {_MOST_WATCHED} pages can be watched.\nhint: remove pages with stop_watching")
    _, read = await find_profile(desk, url, pages, ctx)
    for found, page in read:
        kind = kind_of(page.url) if found.kind == "home" else found.kind
        desk.store.watch(Watch(page.url, competitor.strip(), kind, desk.moment()))
        await asyncio.to_thread(_look, desk, Watch(page.url, competitor.strip(), kind, ""), page)
    addresses = {page.url for _, page in read}
    return _list(desk, [watch for watch in desk.store.watches() if watch.url in addresses])


async def check_changes(ctx: Context, competitor: MaybeName = "") -> CheckResult:
    """Look for changes on the watched pages now, and report what changed since the last check: prices, sections of text, titles, technology. Dates and counters are ignored."""
    desk = desk_of(ctx)
    watches = _known(desk, competitor)
    result = CheckResult(checked=0, changed=[], unchanged=0, note="" if desk.store.lasting else _FLEETING)
    for number, watch in enumerate(watches):
        await ctx.report_progress(number, len(watches), watch.url)
        try:
            page = await desk.page(watch.url, refresh=True)
        except ToolError as error:
            problem = str(error).splitlines()[0]
            desk.store.mark_checked(watch.url, desk.moment(), problem)
            result.problems.append(problem)
            continue
        result.checked += 1
        if page.cut:
            result.problems.append(f"{watch.url}: {TOO_LARGE}")
        if changes := await asyncio.to_thread(_look, desk, watch, page):
            result.changed.append(
                PageChanges(competitor=watch.competitor, url=watch.url, seen=desk.moment(), changes=changes)
            )
        else:
            result.unchanged += 1
    return result


async def stop_watching(
    competitor: Name,
    ctx: Context,
    url: Annotated[
        str, Field(max_length=2000, description="only this page; empty for all pages of the competitor")
    ] = "",
    forget_history: Annotated[bool, Field(description="also delete snapshots and changes permanently")] = False,
    confirm: Annotated[
        str,
        Field(description="code from a refusal, after the user has agreed; only if the client cannot ask the user"),
    ] = "",
) -> WatchList:
    """Remove a competitor, or one of its pages, from the watch list. The history is kept unless forget_history is true."""
    desk = desk_of(ctx)
    watches = [watch for watch in _known(desk, competitor) if url in ("", watch.url)]
    if not watches:
        raise ToolError(f"{url} is not watched for {competitor}.\nhint: list_watched lists the URLs")
    if forget_history:
        pages = f"{len(watches)} page{'s' * (len(watches) != 1)}"
        await ctx.consent(
            f"Delete all snapshots and changes of {pages} of {competitor}, which cannot be undone",
            *sorted(watch.url for watch in watches),
            confirm=confirm,
            otherwise="Nothing was deleted, and the watch list is unchanged",
        )
    for watch in watches:
        desk.store.unwatch(watch.url, forget=forget_history)
    return _list(desk, desk.store.watches())


def list_watched(ctx: Context, competitor: MaybeName = "") -> WatchList:
    """List the watched pages, with time and result of their last check."""
    desk = desk_of(ctx)
    return _list(desk, _known(desk, competitor) if competitor else desk.store.watches())


def list_changes(
    ctx: Context,
    days: Annotated[float, Field(gt=0, le=3650, description="number of days to cover")] = 30,
    competitor: MaybeName = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> list[PageChanges]:
    """List past changes of watched pages in the last days, the newest first. Nothing is fetched; check_changes finds new ones.

    Args:
        limit: maximum number of entries.
    """
    desk = desk_of(ctx)
    return [
        PageChanges(
            competitor=whose, url=url, seen=seen, changes=[Change.model_validate(one) for one in content["changes"]]
        )
        for url, whose, seen, content in desk.store.changes(desk.moment(days), competitor, limit)
    ]


def competitor_report(ctx: Context, competitor: MaybeName = "") -> str:
    """Write a Markdown report from stored data: prices, changes, pages and technology of a watched competitor, or an overview of all. Nothing is fetched."""
    desk = desk_of(ctx)
    return report_about(desk, _known(desk, competitor)[0].competitor) if competitor else overview(desk)


def overview(desk: Desk) -> str:
    """Return the overview report of all watched competitors."""
    names = dict.fromkeys(watch.competitor.lower() for watch in desk.store.watches())
    return report_all([(desk.store.watches(name)[0].competitor, _report_pages(desk, name)) for name in names])


def report_about(desk: Desk, competitor: str) -> str:
    """Return the report on one competitor."""
    return report_one(competitor, _report_pages(desk, competitor))


def _report_pages(desk: Desk, competitor: str) -> list[ReportPage]:
    changes = desk.store.changes("", competitor, 500)
    found = []
    for watch in desk.store.watches(competitor):
        kept = desk.store.last_snapshot(watch.url)
        own = [
            (seen, [Change.model_validate(one) for one in content["changes"]])
            for url, _, seen, content in changes
            if url == watch.url
        ]
        found.append(ReportPage(watch.url, watch.kind, watch.checked, watch.problem, kept[1] if kept else {}, own))
    return found


def _look(desk: Desk, watch: Watch, page: Page) -> list[Change]:
    """Compare a page with its last snapshot, store a changed one, and return the changes."""
    content, now = snapshot(page), desk.moment()
    before = desk.store.last_snapshot(watch.url)
    changes = compare_snapshots(before[1], content) if before is not None else []
    if before is None or changes:
        desk.store.keep_snapshot(watch.url, now, content)
    if changes:
        kept = {"changes": [change.model_dump() for change in changes]}
        desk.store.keep_change(watch.url, watch.competitor, now, kept)
    desk.store.mark_checked(watch.url, now)
    return changes


def _known(desk: Desk, competitor: str) -> list[Watch]:
    watches = desk.store.watches(competitor.strip())
    if watches:
        return watches
    names = list(dict.fromkeys(watch.competitor for watch in desk.store.watches()))
    hint = f"the watched competitors are {', '.join(names[:20])}" if names else "add one with watch_competitor"
    raise ToolError(f"{competitor or 'No competitor'} is{' not' if competitor else ''} watched.\nhint: {hint}")


def _list(desk: Desk, watches: list[Watch]) -> WatchList:
    pages = []
    for watch in watches:
        kept = desk.store.last_snapshot(watch.url)
        content = kept[1] if kept else {}
        pages.append(
            WatchedPage.model_validate(
                {
                    "competitor": watch.competitor,
                    "url": watch.url,
                    "kind": watch.kind,
                    "title": content.get("title", ""),
                    "checked": watch.checked,
                    "snapshots": desk.store.count_snapshots(watch.url),
                    "prices": len(content.get("prices", ())),
                    "problem": watch.problem,
                }
            )
        )
    note = "" if desk.store.lasting else _FLEETING
    return WatchList(pages=pages, note=note or ("" if pages else "Nothing is watched."))


READING: Final = (list_watched, list_changes, competitor_report)
CHANGING: Final = (watch_competitor, check_changes)
