"""A parsed page with everything that the tools read from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .html import Element, parse_html
from .metadata import Link, Metadata, describe, links_of
from .prices import PlanTable, Price, find_plan_tables, find_prices
from .structured import StructuredData, read_structured
from .technology import Technology, find_technology
from .text import Section, readable

__all__ = ["Page", "decoded", "read_page"]

_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_HEADER: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE)
_LATIN: Final = frozenset({"iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"})  # browsers use windows-1252


@dataclass(slots=True)
class Page:
    """A parsed page."""

    url: str
    root: Element
    metadata: Metadata
    sections: list[Section]
    structured: StructuredData
    tables: list[PlanTable]
    prices: list[Price]
    technology: list[Technology] = field(default_factory=list)
    cut: bool = False  # True if the page was too large and its end is missing

    @property
    def links(self) -> list[Link]:
        """Links of the page."""
        return links_of(self.root, self.url)


def read_page(source: str, url: str, headers: Mapping[str, str] | None = None) -> Page:
    """Parse a page.

    Args:
        source: HTML of the page.
        url: URL of the page, to resolve links.
        headers: response headers with lowercase names.
    """
    root = parse_html(source)
    sections = readable(root, url)
    structured = read_structured(root, url)
    tables = find_plan_tables(root)
    return Page(
        url,
        root,
        describe(root, url),
        sections,
        structured,
        tables,
        find_prices(sections, structured, tables),
        find_technology(root, headers or {}),
    )


def decoded(body: bytes, content_type: str) -> str:
    """Decode a page: by byte order mark, header, or meta tag, else as UTF-8."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    header = _HEADER.search(content_type)
    own = _CHARSET.search(body[:4096])
    name = header[1] if header else own[1].decode("ascii") if own else "utf-8"
    try:
        return body.decode("windows-1252" if name.lower() in _LATIN else name, "replace").removeprefix("\ufeff")
    except LookupError:
        return body.decode("utf-8", "replace")
