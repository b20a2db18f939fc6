"""Parser for feeds: RSS 2.0 and earlier versions, Atom (RFC 4287)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urljoin
from xml.etree.ElementTree import Element as XmlElement

from pydantic import BaseModel, Field

from .html import parse_html
from .metadata import complete
from .text import clean
from .xml import XmlError, children, name_of, parse_xml, text_at

__all__ = ["KINDS", "Entry", "NewsFeed", "base_of", "day_of", "iso_date", "items_of", "link_of", "read_feed"]

KINDS: Final = ("rss", "rdf", "feed")
_MOST: Final = 500  # entries per feed
_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
_SUMMARY: Final = 400  # characters
_PART: Final = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?")


class Entry(BaseModel):
    """An entry of a feed."""

    title: str = ""
    url: str = ""
    published: str = Field(default="", description="ISO 8601 in UTC, or the original text if it is invalid")
    summary: str = ""
    categories: list[str] = Field(default_factory=list)


class NewsFeed(BaseModel):
    """A feed with its entries, the newest first if all have dates."""

    title: str = ""
    entries: list[Entry] = Field(default_factory=list)


def read_feed(data: bytes, url: str) -> NewsFeed:
    """Parse a feed.

    Raises:
        XmlError: the data is not a feed.
    """
    root = parse_xml(data)
    kind = name_of(root)
    if kind not in KINDS:
        raise XmlError(f"its root is <{kind}>, neither rss nor feed")
    channel = next(children(root, "channel"), root)
    base = base_of(root, url)
    entries = [_entry(item, base) for item in items_of(root)[:_MOST]]
    if all(day_of(entry.published) for entry in entries):
        entries.sort(key=lambda entry: entry.published, reverse=True)
    return NewsFeed(title=clean(text_at(channel, "title"))[:300], entries=entries)


def base_of(element: XmlElement, url: str) -> str:
    """Return the base URL of links below an element (xml:base, RFC 4287 §2)."""
    try:
        return urljoin(url, element.get(_BASE, ""))
    except ValueError:
        return url


def items_of(root: XmlElement) -> list[XmlElement]:
    """Return the entry elements of a feed."""
    channel = next(children(root, "channel"), root)
    return [*children(channel, "item", "entry"), *(children(root, "item") if channel is not root else ())]


def iso_date(text: str) -> str:
    """Convert a date of a feed to ISO 8601 in UTC; return an invalid date unchanged."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        try:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
        except OverflowError:
            continue
    return clean(text)[:40]


def day_of(text: str) -> str:
    """Return the day of a date (2026-01-31), or its month or year if it has no day; "" if it is invalid."""
    found = iso_date(text)[:10]
    try:
        return date.fromisoformat(found).isoformat()
    except ValueError:
        return found if _PART.fullmatch(found) else ""


def _entry(item: XmlElement, url: str) -> Entry:
    return Entry(
        title=_plain(text_at(item, "title"))[:300],
        url=link_of(item, url),
        published=iso_date(text_at(item, "pubdate", "published", "date", "updated")),
        summary=_plain(text_at(item, "description", "summary", "encoded", "content"))[:_SUMMARY],
        categories=[
            words for one in children(item, "category") if (words := clean(one.get("term") or one.text or "")[:80])
        ][:20],
    )


def link_of(item: XmlElement, url: str) -> str:
    """Return the URL of an entry: the text of `link` (RSS), the `href` of the alternate link (Atom), or a permanent ID."""
    url, links = base_of(item, url), list(children(item, "link"))
    for link in links:
        if (link.text or "").strip():
            return complete(url, (link.text or "").strip())
    for link in links:
        if link.get("rel", "alternate") == "alternate":
            return complete(url, link.get("href", ""))
    ids = [one for one in children(item, "guid", "id") if one.get("isPermaLink", "true") != "false"]
    return complete(url, (ids[0].text or "").strip()) if ids else ""


def _plain(text: str) -> str:
    return clean(parse_html(text[:20_000]).text() if "<" in text or "&" in text else text)
