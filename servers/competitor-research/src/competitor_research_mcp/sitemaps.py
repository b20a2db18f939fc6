"""Parser for sitemaps (sitemaps.org): XML, index files, feeds and plain text, optionally in gzip."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, Field

from .feeds import KINDS, base_of, items_of, link_of
from .metadata import complete
from .xml import XmlError, children, name_of, parse_xml, text_at

__all__ = ["SitePage", "Sitemap", "read_sitemap", "unpack"]

MOST: Final = 50_000  # URLs per file, a limit of the format


class SitePage(BaseModel):
    """A page of a site."""

    url: str
    modified: str = Field(default="", description="last modification, as given by the site")


@dataclass(slots=True)
class Sitemap:
    """Content of a sitemap file: pages, or URLs of further sitemaps."""

    pages: list[SitePage] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def unpack(data: bytes, limit: int) -> bytes:
    """Decompress a gzip file up to `limit` bytes; return other data unchanged."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, limit)
    except zlib.error:
        return b""


def read_sitemap(data: bytes, url: str) -> Sitemap:
    """Parse a sitemap.

    Raises:
        XmlError: the data is neither a sitemap nor a list of URLs.
    """
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = data.decode("utf-8", "replace").splitlines()
        found = [
            SitePage(url=line.strip()) for line in lines[:MOST] if line.strip().startswith(("http://", "https://"))
        ]
        if not found:
            raise XmlError("it is neither XML nor a list of URLs")
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
