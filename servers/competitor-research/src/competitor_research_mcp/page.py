"""A page and all that can be read from it. Pure, once its bytes are there."""

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
_LATIN: Final = frozenset(
    {"iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"}
)  # what the web means by them is windows-1252


@dataclass(slots=True)
class Page:
    """What was read of a page."""

    url: str
    root: Element
    metadata: Metadata
    sections: list[Section]
    structured: StructuredData
    tables: list[PlanTable]
    prices: list[Price]
    technology: list[Technology] = field(default_factory=list)
    cut: bool = False  # what follows was not read, as the page is too large

    @property
    def links(self) -> list[Link]:
        """The links to other pages."""
        return links_of(self.root, self.url)


def read_page(source: str, url: str, headers: Mapping[str, str] | None = None) -> Page:
    """Return what a page holds.

    Args:
        source: its HTML.
        url: where it is from; links are completed by it.
        headers: of the answer, names in lower case.
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
    """Return the text of a page: by its byte order mark, by the header, by its own words, else UTF-8."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    header = _HEADER.search(content_type)
    own = _CHARSET.search(body[:4096])
    name = header[1] if header else own[1].decode("ascii") if own else "utf-8"
    try:
        return body.decode("windows-1252" if name.lower() in _LATIN else name, "replace").removeprefix("\ufeff")
    except LookupError:
        return body.decode("utf-8", "replace")
