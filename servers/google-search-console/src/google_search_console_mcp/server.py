"""The MCP server google-search-console. Edit this file; `_generated` is overwritten when the API document changes."""

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
        "Performance of a site in Google Search. Start with list_sites: every other tool needs the property's exact name, "
        "`sc-domain:example.com` or `https://www.example.com/`. Use compare_periods for growth or loss, find_near_first_page and "
        "find_competing_pages for improvements, inspect_pages for pages that are not in Google, and query_search_analytics for the rest. "
        "Days are in Pacific time, and the last three are incomplete."
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
# Notes on Search Analytics

- Dimensions: country (three letters, DEU), device (DESKTOP, MOBILE, TABLET), page, query, searchAppearance, date, hour.
- `position` is an average over all impressions: 1 is the first result. It can get worse while clicks grow, because new queries appear.
- Rare queries are in the totals but not in rows: rows of `query` add up to less.
- Totals of a property count once per query; totals by page count each page. Do not add them.
- Data starts 16 months ago. The last two or three days are incomplete: `dataState: all` includes them.
- A response has at most 25,000 rows (`rowLimit`, `startRow`), a day of one search type 50,000.
- Quotas: 1,200 queries per minute and property; 2,000 inspections per day and 600 per minute.
"""


@server.before()
def with_slash(call: ToolCall) -> None:
    """Append the slash that Search Console requires to a property without a path."""
    site = call.arguments.get("siteUrl")
    if isinstance(site, str) and _ROOT.fullmatch(site):
        call.arguments["siteUrl"] = f"{site}/"


@server.before("query_search_analytics")
def with_days(call: ToolCall) -> None:
    """Refuse invalid days before a request is sent.

    Raises:
        ToolError: a day is invalid, or the last is before the first.
    """
    days = []
    for name in ("startDate", "endDate"):
        try:
            days.append(date.fromisoformat(str(call.arguments.get(name))))
        except ValueError:
            raise ToolError(
                f"{name} is {call.arguments.get(name)!r}, which is not a valid day.\nhint: use the form 2026-10-31"
            ) from None
    if days[1] < days[0]:
        raise ToolError(f"the period ends on {days[1]}, before it begins on {days[0]}.")


@server.resource("search-console://guide", title="How to read the figures", mime_type="text/markdown")
def guide() -> str:
    """Explanation of the dimensions, positions and limits of Search Analytics."""
    return GUIDE


@server.prompt(title="Weekly report")
def weekly_report(site: str) -> str:
    """Ask for a report on the last week.

    Args:
        site: the property, as Search Console names it.
    """
    return (
        f"Write a report about {site} in Google Search. Compare the last 7 days with the 7 days before, and with the same week a year "
        "ago. List the queries and pages that gained and lost most clicks, check the sitemaps, and end with three actions, each with "
        "supporting figures. Do not guess causes that the figures do not show."
    )


@server.prompt(title="Why is a page not in Google?")
def page_not_found(site: str, page: str) -> str:
    """Ask why a page is not in Google's index.

    Args:
        site: the property, as Search Console names it.
        page: the page's URL.
    """
    return (
        f"Find out why {page} of {site} is not in Google. Inspect it, check if a sitemap lists it and if Google reads that sitemap, and if "
        "another page gets its queries. Report the causes, and what to change."
    )


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
