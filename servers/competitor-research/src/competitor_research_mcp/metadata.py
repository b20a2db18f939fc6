"""Metadata of a page: title, description, canonical URL, language, Open Graph, headings, feeds, links."""

from __future__ import annotations

from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

from pydantic import BaseModel, Field

from .html import Element
from .text import clean

__all__ = ["Feed", "Link", "Metadata", "describe", "links_of"]

_FEEDS: Final = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_LONGEST: Final = 500  # characters per value
_SOCIAL: Final = (
    "linkedin.com",
    "twitter.com",
    "x.com",
    "facebook.com",
    "instagram.com",
    "youtube.com",
    "github.com",
    "tiktok.com",
)


class Feed(BaseModel):
    """A feed that a page links to."""

    url: str
    title: str = ""


class Link(BaseModel):
    """A link with its text."""

    url: str
    text: str = ""


class Metadata(BaseModel):
    """Metadata of a page. Missing values are empty."""

    title: str = ""
    description: str = ""
    canonical: str = Field(default="", description="canonical URL of the page")
    language: str = ""
    robots: str = Field(default="", description="directives for search engines, such as noindex")
    site_name: str = ""
    published: str = ""
    modified: str = ""
    open_graph: dict[str, str] = Field(default_factory=dict)
    headings: list[str] = Field(default_factory=list, description="h1 to h3 in order, as Markdown")
    feeds: list[Feed] = Field(default_factory=list)
    social: list[str] = Field(default_factory=list, description="links to profiles in social networks")


def describe(root: Element, url: str) -> Metadata:
    """Return the metadata of a page."""
    metas = _metas(root)
    graph = {name.removeprefix("og:"): value for name, value in metas.items() if name.startswith("og:")}
    title = root.find("title")
    html = root.find("html")
    headings = (
        f"{'#' * int(one.tag[1])} {words}"
        for one in root.find_all("h1", "h2", "h3")
        if (words := clean(one.text())[:200])
    )
    return Metadata(
        title=(clean(title.text())[:_LONGEST] if title is not None else "") or graph.get("title", ""),
        description=metas.get("description", "") or graph.get("description", ""),
        canonical=next((full for one in _rels(root, "canonical") if (full := complete(url, one.get("href")))), ""),
        language=(html.get("lang") if html is not None else "")[:35] or metas.get("content-language", "")[:35],
        robots=metas.get("robots", ""),
        site_name=graph.get("site_name", ""),
        published=metas.get("article:published_time", ""),
        modified=metas.get("article:modified_time", ""),
        open_graph=dict(list(graph.items())[:30]),
        headings=list(headings)[:60],
        feeds=_feeds(root, url),
        social=_social(root, url),
    )


def links_of(root: Element, url: str) -> list[Link]:
    """Return the links of a page, each URL once, without fragments."""
    found: dict[str, str] = {}
    for anchor in root.find_all("a"):
        target = complete(url, anchor.get("href"))
        words = clean(anchor.text() or anchor.get("aria-label") or anchor.get("title"))[:120]
        if target and (target not in found or not found[target]):
            found[target] = words
    return [Link(url=target, text=words) for target, words in found.items()]


def complete(url: str, target: str) -> str:
    """Resolve a link to an http or https URL without fragment; "" for others."""
    try:
        full = urldefrag(urljoin(url, target)).url
        parts = urlsplit(full)
        return full if target and parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""


def _metas(root: Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for meta in root.find_all("meta"):
        name = (meta.get("property") or meta.get("name") or meta.get("http-equiv")).lower()
        if name and (value := clean(meta.get("content"))[:_LONGEST]):
            found.setdefault(name, value)
    return found


def _rels(root: Element, rel: str) -> list[Element]:
    return [link for link in root.find_all("link") if rel in link.get("rel").lower().split()]


def _feeds(root: Element, url: str) -> list[Feed]:
    found = {
        target: clean(link.get("title"))[:200]
        for link in _rels(root, "alternate")
        if link.get("type").lower() in _FEEDS and (target := complete(url, link.get("href")))
    }
    return [Feed(url=target, title=title) for target, title in found.items()][:20]


def _social(root: Element, url: str) -> list[str]:
    own = urlsplit(url).hostname or ""
    found = []
    for link in links_of(root, url):
        host = (urlsplit(link.url).hostname or "").removeprefix("www.")
        if any(host == one or host.endswith(f".{one}") for one in _SOCIAL) and host != own:
            found.append(link.url)
    return found[:20]
