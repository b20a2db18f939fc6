"""Tools that research companies over several pages of their sites."""

from __future__ import annotations

from typing import Annotated, Final

from mcpfactory_runtime import Context, ToolError
from pydantic import BaseModel, Field

from ..desk import Desk, desk_of
from ..metadata import links_of
from ..page import Page
from ..profile import KeyPage, PageKind, Profile, combine, key_pages
from ..report import compare_table

__all__ = ["TOOLS", "TOO_LARGE", "Homepage", "find_profile"]

TOO_LARGE: Final = "It is too large: only its beginning was read."
Homepage = Annotated[
    str, Field(description="URL of the company's site", examples=["https://example.com"], max_length=2000)
]
_WORTH: Final[tuple[PageKind, ...]] = (
    "pricing",
    "product",
    "about",
    "customers",
    "compare",
    "changelog",
    "news",
    "careers",
)


class Comparison(BaseModel):
    """Comparison of companies."""

    table: str = Field(description="Markdown; profile_competitor has details")
    read: list[str] = Field(description="sites in the table")
    problems: list[str] = Field(default_factory=list, description="sites that could not be read")


async def profile_competitor(
    url: Homepage,
    ctx: Context,
    pages: Annotated[int, Field(ge=0, le=8, description="number of key pages to read after the home page")] = 3,
) -> Profile:
    """Research a company on its own site: what it sells, to whom, at what prices, and what its site is built with. Finds the pages on pricing, product, company and customers from the home page, and reads them."""
    return (await find_profile(desk_of(ctx), url, pages, ctx))[0]


async def compare_competitors(
    urls: Annotated[
        list[str],
        Field(
            min_length=2,
            max_length=6,
            description="URLs of the companies' sites",
            examples=[["https://example.com", "https://example.org"]],
        ),
    ],
    ctx: Context,
    pages: Annotated[int, Field(ge=0, le=4, description="number of key pages to read per company")] = 1,
) -> Comparison:
    """Compare companies side by side, from their own sites: headline, prices, plans, products, technology. Reads the home page and the pricing page of each."""
    profiles: list[Profile] = []
    problems: list[str] = []
    for number, url in enumerate(dict.fromkeys(urls)):
        await ctx.report_progress(number, len(urls), url)
        try:
            profiles.append((await find_profile(desk_of(ctx), url, pages))[0])
        except ToolError as error:
            problems.append(f"{url}: {error}")
    if not profiles:
        raise ToolError("No site could be read.\n" + "\n".join(problems))
    return Comparison(table=compare_table(profiles), read=[one.url for one in profiles], problems=problems)


async def find_profile(
    desk: Desk, url: str, most: int, ctx: Context | None = None
) -> tuple[Profile, list[tuple[KeyPage, Page]]]:
    """Return the profile of a company, and the pages that were read for it.

    Raises:
        ToolError: the home page cannot be read.
    """
    home = await desk.page(url)
    found = await desk.reading(home.url, lambda: key_pages(links_of(home.root, home.url), home.url))
    wanted = [page for kind in _WORTH for page in found if page.kind == kind and page.url != home.url][:most]
    read: list[tuple[KeyPage, Page]] = [(KeyPage(kind="home", url=home.url, title=home.metadata.title), home)]
    read[0][0].problem = TOO_LARGE if home.cut else ""
    for number, page in enumerate(wanted):
        if ctx is not None:
            await ctx.report_progress(number, len(wanted), page.url)
        try:
            one = await desk.page(page.url)
            page.problem = TOO_LARGE if one.cut else ""
            read.append((page, one))
        except ToolError as error:
            page.problem = str(error).splitlines()[0]
    profile = combine(home, [page for _, page in read[1:]], [read[0][0], *found])
    return profile, read


TOOLS: Final = (profile_competitor, compare_competitors)
