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

_MOST_WATCHED: Final = 500
_FLEETING: Final = "The database cannot be written, so the watch list lasts as long as this process. hint: set COMPETITOR_RESEARCH_DB to a file that can be written"
Name = Annotated[
    str, Field(min_length=1, max_length=100, description="what you call the competitor", examples=["Example"])
]
MaybeName = Annotated[str, Field(max_length=100, description="only this competitor; empty for all")]


class WatchedPage(BaseModel):
    """A page on the watch list."""

    competitor: str
    url: str
    kind: PageKind
    title: str = ""
    checked: str = Field(default="", description="when it was looked at last")
    snapshots: int = 0
    prices: int = Field(0, description="how many prices it shows")
    problem: str = ""


class WatchList(BaseModel):
    """Pages that are watched."""

    pages: list[WatchedPage]
    note: str = ""


class PageChanges(BaseModel):
    """What changed on a page."""

    competitor: str
    url: str
    seen: str = Field(description="when the change was seen")
    changes: list[Change]


class CheckResult(BaseModel):
    """What a look at the watched pages found."""

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
            description="how many key pages (pricing, product …) of the site are watched besides it; 0 for the one page only",
        ),
    ] = 3,
) -> WatchList:
    """Put a competitor on the watch list: finds the key pages of its site and keeps a first snapshot of each, which check_changes compares with later.

    To add one certain page, give its address with pages=0.
    """
    desk = desk_of(ctx)
    if len(desk.store.watches()) + pages + 1 > _MOST_WATCHED:
        raise ToolError(f"{_MOST_WATCHED} pages are watched at most.\nhint: stop_watching takes pages off the list")
    _, read = await find_profile(desk, url, pages, ctx)
    for found, page in read:
        kind = kind_of(page.url) if found.kind == "home" else found.kind
        desk.store.watch(Watch(page.url, competitor.strip(), kind, desk.moment()))
        await asyncio.to_thread(_look, desk, Watch(page.url, competitor.strip(), kind, ""), page)
    addresses = {page.url for _, page in read}
    return _list(desk, [watch for watch in desk.store.watches() if watch.url in addresses])


async def check_changes(ctx: Context, competitor: MaybeName = "") -> CheckResult:
    """Look at the watched pages now, and say what changed since the last look: prices, sections of text, titles, technology. What changes on every visit (dates, counters) is left out."""
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
    forget_history: Annotated[bool, Field(description="delete the snapshots and changes, too, for ever")] = False,
    confirm: Annotated[
        str,
        Field(
            description="only where nobody can be asked: the code that the refusal gave, once a person has agreed to what it says"
        ),
    ] = "",
) -> WatchList:
    """Take a competitor, or one of its pages, off the watch list. What was seen stays unless forget_history says otherwise."""
    desk = desk_of(ctx)
    watches = [watch for watch in _known(desk, competitor) if url in ("", watch.url)]
    if not watches:
        raise ToolError(f"{url} is not watched for {competitor}.\nhint: list_watched shows the addresses")
    if forget_history:
        pages = f"{len(watches)} page{'s' * (len(watches) != 1)}"
        await ctx.consent(
            f"Delete all snapshots and changes of {pages} of {competitor}, which cannot be brought back",
            *sorted(watch.url for watch in watches),
            confirm=confirm,
            otherwise="Nothing was deleted, and all is watched as before",
        )
    for watch in watches:
        desk.store.unwatch(watch.url, forget=forget_history)
    return _list(desk, desk.store.watches())


def list_watched(ctx: Context, competitor: MaybeName = "") -> WatchList:
    """List the watched pages, with the time and the outcome of the last look at each."""
    desk = desk_of(ctx)
    return _list(desk, _known(desk, competitor) if competitor else desk.store.watches())


def list_changes(
    ctx: Context,
    days: Annotated[float, Field(gt=0, le=3650, description="how far back")] = 30,
    competitor: MaybeName = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> list[PageChanges]:
    """List the changes that were seen on watched pages in the last days, the newest first. Nothing is fetched: check_changes looks for new ones.

    Args:
        limit: pages with changes in an answer.
    """
    desk = desk_of(ctx)
    return [
        PageChanges(
            competitor=whose, url=url, seen=seen, changes=[Change.model_validate(one) for one in content["changes"]]
        )
        for url, whose, seen, content in desk.store.changes(desk.moment(days), competitor, limit)
    ]


def competitor_report(ctx: Context, competitor: MaybeName = "") -> str:
    """Write a report in Markdown from what was seen: prices, changes, pages and technology of a watched competitor, or an overview of all. Nothing is fetched."""
    desk = desk_of(ctx)
    return report_about(desk, _known(desk, competitor)[0].competitor) if competitor else overview(desk)


def overview(desk: Desk) -> str:
    """Return the report of all watched competitors."""
    names = dict.fromkeys(watch.competitor.lower() for watch in desk.store.watches())
    return report_all([(desk.store.watches(name)[0].competitor, _report_pages(desk, name)) for name in names])


def report_about(desk: Desk, competitor: str) -> str:
    """Return the report of one competitor."""
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
    """Compare a page with its last snapshot, keep what is new, and return what changed."""
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
    hint = f"watched are {', '.join(names[:20])}" if names else "watch_competitor puts one on the list"
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
