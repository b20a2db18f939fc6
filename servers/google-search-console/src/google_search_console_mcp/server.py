"""The MCP server google-search-console. This file is yours; `_generated` is rewritten whenever the API document changes."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Final

from mcpfactory_runtime import Server, ToolCall, ToolError

from . import __version__, reports

server = Server(
    "google-search-console",
    version=__version__,
    title="Google Search Console",
    instructions=(
        "How a site does in Google Search. Begin with list_sites: every other tool needs the property's exact name, "
        "`sc-domain:example.com` or `https://www.example.com/`. For questions about growth or loss take compare_periods, for what to improve "
        "find_near_first_page and find_competing_pages, for pages that are not in Google inspect_pages; query_search_analytics answers the rest. "
        "Days are in Pacific time, and the last three are not complete."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")

_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_ROOT: Final = re.compile(r"https?://[^/]+")

for _tool in (
    reports.compare_periods,
    reports.find_near_first_page,
    reports.find_competing_pages,
    reports.inspect_pages,
    reports.check_sitemaps,
):
    server.tool(annotations=_READS)(_tool)

GUIDE: Final = """\
# Search Analytics: what to know before asking

- Dimensions: country (three letters, DEU), device (DESKTOP, MOBILE, TABLET), page, query, searchAppearance, date, hour.
- `position` is an average over all impressions: 1 is the first result. It can fall while clicks grow, when new queries are found.
- Queries that too few people made are in the totals and in no row: rows of `query` add up to less.
- Totals of a property count a page once for each query; totals by page count each page. Do not add one to the other.
- Data begins 16 months ago. The last two or three days are not complete: `dataState: all` shows them.
- One answer has at most 25,000 rows (`rowLimit`, `startRow`), one day of one search type 50,000.
- The quotas: 1,200 queries a minute for a property; 2,000 inspections a day and 600 a minute.
"""


@server.before()
def with_slash(call: ToolCall) -> None:
    """Give a property that is a bare address the slash that Search Console wants."""
    site = call.arguments.get("siteUrl")
    if isinstance(site, str) and _ROOT.fullmatch(site):
        call.arguments["siteUrl"] = f"{site}/"


@server.before("query_search_analytics")
def with_days(call: ToolCall) -> None:
    """Refuse days that are none before Google is asked.

    Raises:
        ToolError: a day is none, or the last is before the first.
    """
    days = []
    for name in ("startDate", "endDate"):
        try:
            days.append(date.fromisoformat(str(call.arguments.get(name))))
        except ValueError:
            raise ToolError(
                f"{name} is {call.arguments.get(name)!r}, which is no day.\nhint: give it as 2026-10-31"
            ) from None
    if days[1] < days[0]:
        raise ToolError(f"the period ends on {days[1]}, before it begins on {days[0]}.")


@server.resource("search-console://guide", title="How to read the figures", mime_type="text/markdown")
def guide() -> str:
    """What the dimensions, positions and limits of Search Analytics mean."""
    return GUIDE


@server.prompt(title="Weekly report")
def weekly_report(site: str) -> str:
    """Ask for a report of the last week.

    Args:
        site: the property, as Search Console names it.
    """
    return (
        f"Write a report about {site} in Google Search. Compare the last 7 days with the 7 days before, and with the same week a year "
        "ago. Name the queries and pages that won and lost most clicks, check the sitemaps, and end with three things to do, each with "
        "the figures that speak for it. Do not guess at causes that the figures do not show."
    )


@server.prompt(title="Why is a page not in Google?")
def page_not_found(site: str, page: str) -> str:
    """Ask why a page is not in Google's index.

    Args:
        site: the property, as Search Console names it.
        page: the page's URL.
    """
    return (
        f"Find out why {page} of {site} is not in Google. Inspect it, look whether a sitemap names it and whether that sitemap is read, and "
        "whether another page gets its queries. Say what keeps it out, and what to change."
    )


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
