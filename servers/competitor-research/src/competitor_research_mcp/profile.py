"""Profile of a company from its site: key pages, name, prices, technology. Key pages are selected by URL and link text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from .metadata import Feed, Link
from .page import Page
from .prices import Price
from .structured import Organization, Product
from .technology import Technology

__all__ = ["KINDS", "KeyPage", "PageKind", "Profile", "combine", "key_pages", "kind_of"]

PageKind = Literal[
    "home", "pricing", "product", "customers", "about", "careers", "news", "changelog", "docs", "compare", "other"
]

# Kind of a page by the last segment of its path, or by the link text; the most informative kinds first.
_SIGNS: Final[tuple[tuple[PageKind, str], ...]] = (
    ("pricing", r"pricing|prices?|plans?|plans-(?:and-)?pricing|preise|tarife|tarifs?|precios"),
    ("compare", r"compare|comparison|vs|alternatives?|versus"),
    ("changelog", r"change-?log|release-notes|releases|whats-new|updates"),
    ("product", r"products?|features?|platform|solutions?|how-it-works|produkte?|funktionen"),
    ("customers", r"customers?|case-studies|success-stories|kunden|references"),
    ("about", r"about|about-us|company|team|ueber-uns|impressum|imprint"),
    ("news", r"blog|news|press|newsroom|insights|articles"),
    ("careers", r"careers?|jobs?|hiring|karriere"),
    ("docs", r"docs?|documentation|developers?|api|help|support"),
)
_COMPILED: Final = tuple((kind, re.compile(rf"(?:{pattern})", re.IGNORECASE)) for kind, pattern in _SIGNS)
KINDS: Final[tuple[PageKind, ...]] = ("home", *(kind for kind, _ in _SIGNS), "other")


class KeyPage(BaseModel):
    """An informative page of a company."""

    kind: PageKind
    url: str
    title: str = ""
    problem: str = Field(default="", description="reason why it could not be read, if any")


class Profile(BaseModel):
    """Profile of a company from its own site."""

    name: str
    url: str
    title: str = ""
    description: str = ""
    headline: str = Field(default="", description="first heading of the home page")
    language: str = ""
    pages: list[KeyPage] = Field(default_factory=list)
    prices: list[Price] = Field(default_factory=list)
    products: list[Product] = Field(default_factory=list)
    organization: Organization | None = None
    feeds: list[Feed] = Field(default_factory=list)
    social: list[str] = Field(default_factory=list)
    technology: list[Technology] = Field(default_factory=list)


def kind_of(url: str, words: str = "") -> PageKind:
    """Return the kind of a page by its URL and link text."""
    path = urlsplit(url).path.strip("/").removesuffix(".html").removesuffix(".php")
    if not path:
        return "home"
    last = path.rpartition("/")[2]
    spoken = "-".join(words.lower().split())
    for text in (last, spoken):
        for kind, pattern in _COMPILED:
            if pattern.fullmatch(text):
                return kind
    return "other"


def key_pages(links: Sequence[Link], url: str) -> list[KeyPage]:
    """Return the key pages of the same site, one per kind, the most informative first."""
    host = _site(url)
    found: dict[PageKind, KeyPage] = {}
    for link in links:
        if _site(link.url) == host and (kind := kind_of(link.url, link.text)) not in ("home", "other"):
            kept = found.get(kind)
            if kept is None or len(link.url) < len(kept.url):
                found[kind] = KeyPage(kind=kind, url=link.url, title=link.text)
    return [found[kind] for kind in KINDS if kind in found]


def combine(home: Page, others: Sequence[Page], pages: list[KeyPage]) -> Profile:
    """Combine the home page and other pages into a profile."""
    everything = [home, *others]
    organizations = [one for page in everything for one in page.structured.organizations]
    prices: dict[tuple[object, ...], Price] = {}
    for page in everything:
        for price in page.prices:
            prices.setdefault((*price.key, price.amount, price.currency), price)
    technology = {one.name: one for page in reversed(everything) for one in page.technology}
    products = {one.name: one for page in reversed(everything) for one in page.structured.products if one.name}
    headline = next((line.lstrip("# ") for line in home.metadata.headings if line.startswith("# ")), "")
    return Profile(
        name=_name(home, organizations),
        url=home.url,
        title=home.metadata.title,
        description=home.metadata.description,
        headline=headline,
        language=home.metadata.language,
        pages=pages,
        prices=list(prices.values())[:60],
        products=list(products.values())[:20],
        organization=organizations[0] if organizations else None,
        feeds=list({one.url: one for page in everything for one in page.metadata.feeds}.values())[:10],
        social=list(dict.fromkeys(one for page in everything for one in page.metadata.social))[:10],
        technology=list(technology.values()),
    )


def _name(home: Page, organizations: Sequence[Organization]) -> str:
    """Return the company's name from structured data, Open Graph, or the host."""
    host = _site(home.url).partition(":")[0]
    own = next((one.name for one in organizations if _site(one.url) == _site(home.url)), "")
    return own or home.metadata.site_name or (organizations[0].name if organizations else "") or host


def _site(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")
