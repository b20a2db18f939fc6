"""Tests of sitemaps and feeds."""

from __future__ import annotations

import gzip

import pytest

from competitor_research_mcp.feeds import iso_date, read_feed
from competitor_research_mcp.sitemaps import read_sitemap, unpack
from competitor_research_mcp.xml import XmlError, parse_xml

URL = "https://e.com/sitemap.xml"


def test_a_sitemap_with_and_without_a_namespace() -> None:
    for name in ("urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'", "urlset"):
        found = read_sitemap(
            f"<{name}><url><loc> /a </loc><lastmod>2026-01-02</lastmod></url><url/></urlset>".encode(), URL
        )
        assert [(page.url, page.modified) for page in found.pages] == [("https://e.com/a", "2026-01-02")]


def test_an_index_and_a_list_of_addresses() -> None:
    assert read_sitemap(
        b"<sitemapindex><sitemap><loc>https://e.com/b.xml</loc></sitemap></sitemapindex>", URL
    ).files == ["https://e.com/b.xml"]
    assert [page.url for page in read_sitemap(b"https://e.com/1\nhttps://e.com/2\n", URL).pages] == [
        "https://e.com/1",
        "https://e.com/2",
    ]


@pytest.mark.parametrize("data", [b"", b"hello", b"<html/>", b"<urlset>", b"\x00\x01"])
def test_what_is_no_sitemap_says_so(data: bytes) -> None:
    with pytest.raises(XmlError):
        read_sitemap(data, URL)


def test_what_unpacks_to_more_than_the_bound_is_cut() -> None:
    assert len(unpack(gzip.compress(b"x" * 10_000_000), 1000)) == 1000
    assert unpack(b"\x1f\x8bno gzip", 1000) == b""
    assert unpack(b"<urlset/>", 5) == b"<urlset/>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(encoding: str) -> None:
    laughs = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><rss><channel>&b;</channel></rss>'
    with pytest.raises(XmlError, match="DTD"):
        parse_xml(laughs.encode(encoding))
    with pytest.raises(XmlError, match="DTD"):
        parse_xml('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>'.encode(encoding))


def test_atom() -> None:
    feed = read_feed(
        b"<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title><entry><title type='html'>A &lt;b&gt;b&lt;/b&gt;</title>"
        b"<link rel='self' href='/self'/><link href='/a'/><updated>2026-03-04T05:06:07+02:00</updated><category term='x'/></entry></feed>",
        "https://e.com/feed",
    )
    (entry,) = feed.entries
    assert (feed.title, entry.title, entry.url, entry.published, entry.categories) == (
        "News",
        "A b",
        "https://e.com/a",
        "2026-03-04T03:06:07+00:00",
        ["x"],
    )


def test_rss_1_has_its_items_beside_the_channel() -> None:
    data = b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'><channel><title>T</title></channel><item><title>I</title><link>https://e.com/i</link></item></rdf:RDF>"
    assert [(one.title, one.url) for one in read_feed(data, URL).entries] == [("I", "https://e.com/i")]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Mon, 02 Nov 2026 09:00:00 +0100", "2026-11-02T08:00:00+00:00"),
        ("2026-11-02", "2026-11-02T00:00:00+00:00"),
        ("soon", "soon"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("", ""),
    ],
)
def test_dates_of_feeds(written: str, read: str) -> None:
    assert iso_date(written) == read
