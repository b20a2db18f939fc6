"""Sitemaps (sitemaps.org): the addresses of a site, as XML, as an index of further files, as a feed, as plain text, each perhaps in gzip. Pure."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, Field

from .feeds import KINDS, base_of, items_of, link_of
from .metadata import complete
from .xml import XmlError, children, name_of, parse_xml, text_at

__all__ = ["SitePage", "Sitemap", "read_sitemap", "unpack"]

MOST: Final = 50_000  # addresses of one file, as the format says


class SitePage(BaseModel):
    """A page of a site."""

    url: str
    modified: str = Field(default="", description="when it was changed last, in the site's own words")


@dataclass(slots=True)
class Sitemap:
    """What one file holds: pages, or the addresses of further sitemaps."""

    pages: list[SitePage] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def unpack(data: bytes, limit: int) -> bytes:
    """Return what a gzip file holds, `limit` bytes of it at most; what is none is returned as it is."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, limit)
    except zlib.error:
        return b""


def read_sitemap(data: bytes, url: str) -> Sitemap:
    """Return what a sitemap holds.

    Raises:
        XmlError: it is neither a sitemap nor a list of addresses.
    """
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = data.decode("utf-8", "replace").splitlines()
        found = [
            SitePage(url=line.strip()) for line in lines[:MOST] if line.strip().startswith(("http://", "https://"))
        ]
        if not found:
            raise XmlError("it is neither XML nor a list of addresses")
        return Sitemap(found)
    root = parse_xml(data)
    if name_of(root) in KINDS:
        found = [
            SitePage(url=address, modified=text_at(item, "updated", "pubdate", "date")[:40])
            for item in items_of(root)[:MOST]
            if (address := link_of(item, base_of(root, url)))
        ]
        return Sitemap(found)
    if name_of(root) not in ("urlset", "sitemapindex"):
        raise XmlError(f"its root is <{name_of(root)}>, neither urlset nor sitemapindex")
    sitemap = Sitemap()
    for entry in list(children(root, "url", "sitemap"))[:MOST]:
        address = complete(url, text_at(entry, "loc"))
        if address and name_of(entry) == "sitemap":
            sitemap.files.append(address)
        elif address:
            sitemap.pages.append(SitePage(url=address, modified=text_at(entry, "lastmod")[:40]))
    return sitemap
