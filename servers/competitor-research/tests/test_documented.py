"""Tests of the tools with examples of standards: robots.txt, sitemaps, feeds, and structured data about prices.

Each row is an example of a standard, with other names and values, served on loopback and read by a tool. `where` has the standard
and its section.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
import upstream
from upstream import Answer

ME = "competitor-research-mcp"  # product token of this server, instead of ExampleBot or foobot in the standard
XML = {"Content-Type": "application/xml"}


@pytest.fixture(scope="module")
def site() -> Iterator[upstream.Site]:
    with upstream.served({}) as one:
        yield one


@pytest.fixture
def ask(site: upstream.Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Return a function that serves pages, and calls a tool with a path of the site as `url`."""
    from conftest import Tools

    tools = Tools(monkeypatch, tmp_path, site)
    site.asked.clear()

    def call(pages: dict[str, Any], tool: str, path: str, **arguments: Any) -> Any:
        site.pages = pages
        return tools(tool, url=site.url + path, **arguments)

    return call


# --- RFC 9309 ---

SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: {me}
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: {both}
Disallow: /example/page.html

User-Agent: {none}
"""
OTHERS = {"me": "foobot", "both": "bazbot", "none": "quxbot"}
LONGEST = f"User-Agent: {ME}\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
MERGED = f"User-agent: {ME}\nDisallow: /foo\nDisallow: /bar\n\nUser-agent: *\nDisallow: /\n\nUser-agent: {ME.upper()}\nDisallow: /baz\n"
BETWEEN = f"User-agent: {ME}\nSitemap: https://a.test/sitemap.xml\nUser-agent: other\nDisallow: /x\n"


def simple(**named: str) -> str:
    """Return the simple example with this server as one of the programs."""
    return SIMPLE.format(**{**OTHERS, **named})


@pytest.mark.parametrize(
    ("where", "rules", "path", "allowed"),
    [
        ("§5.1, the group for all", simple(), "/example/x", False),
        ("§5.1, the group for all", simple(), "/publications/x", True),
        ("§5.1, the group for all", simple(), "/pictures/x.gif", False),
        ("§5.1, the group for all", simple(), "/pictures/x.gif.html", True),
        ("§5.1, foobot", simple(me=ME), "/publications/x", False),
        ("§5.1, foobot", simple(me=ME), "/example/page.html", True),
        ("§5.1, foobot", simple(me=ME), "/example/allowed.gif", True),
        ("§5.1, foobot", simple(me=ME), "/example/other.gif", False),
        ("§5.1, barbot and bazbot share a group", simple(both=ME), "/example/page.html", False),
        ("§5.1, barbot and bazbot share a group", simple(both=ME), "/example/other.html", True),
        ("§5.1, quxbot: an empty group", simple(none=ME), "/example/page.html", True),
        ("§5.2, longest match", LONGEST, "/example/page/disallowed.gif", False),
        ("§5.2, longest match", LONGEST, "/example/page/other.gif", True),
        ("§2.2.1, groups for one program are merged", MERGED, "/foo", False),
        ("§2.2.1, groups for one program are merged", MERGED, "/baz", False),
        ("§2.2.1, groups for one program are merged", MERGED, "/other", True),
        ("§2.2.2, paths are case-sensitive", f"User-agent: {ME}\nDisallow: /Foo", "/foo", True),
        ("§2.2.2, an allow and a disallow of the same length", f"User-agent: {ME}\nDisallow: /a\nAllow: /a", "/a", True),
        ("§2.2.2, table: /foo/bar?baz=quz", f"User-agent: {ME}\nDisallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", False),
        ("§2.2.2, table: reserved characters of a query", f"User-agent: {ME}\nDisallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", False),
        ("§2.2.2, table: not ASCII, encoded in the address", f"User-agent: {ME}\nDisallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("§2.2.2, table: not ASCII, encoded in the rule", f"User-agent: {ME}\nDisallow: /foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", False),
        ("§2.2.2, table: ASCII that is encoded without need", f"User-agent: {ME}\nDisallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("§2.2.3, # begins a comment", f"User-agent: {ME} # us\nDisallow: /this # that", "/this", False),
        ("§2.2.3, $ is the end", f"User-agent: {ME}\nDisallow: /this/path/exactly$", "/this/path/exactly/not", True),
        ("§2.2.3, * is anything", f"User-agent: {ME}\nDisallow: /this/*/exactly", "/this/long/way/exactly", False),
        ("§2.2.3, an encoded * is a plain one", f"User-agent: {ME}\nDisallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
        ("§2.2.3, an encoded * is a plain one", f"User-agent: {ME}\nDisallow: /path/file-with-a-%2A.html", "/path/file-with-a-star.html", True),
        ("§2.2.3, an encoded $ is a plain one", f"User-agent: {ME}\nDisallow: /path/foo-%24", "/path/foo-$", False),
        ("§2.2.3, an encoded $ is a plain one", f"User-agent: {ME}\nDisallow: /path/foo-%24", "/path/foo-", True),
        ("§2.2.4, other records do not end a group", BETWEEN, "/x", False),
        ("§2.2.2, /robots.txt itself is allowed", f"User-agent: {ME}\nDisallow: /", "/robots.txt", True),
        ("§2.5, 500 KiB are read", "#" * (500 * 1024 - 100) + f"\nUser-agent: {ME}\nDisallow: /", "/x", False),
    ],
)  # fmt: skip
def test_robots_rules_of_rfc_9309(where: str, rules: str, path: str, allowed: bool, ask: Any) -> None:
    pages = {"/robots.txt": Answer(rules, headers={"Content-Type": "text/plain; charset=utf-8"})}
    assert ask(pages, "check_robots", path)["allowed"] is allowed, where


@pytest.mark.parametrize(
    ("where", "status", "allowed"),
    [
        ("§2.3.1.3, unavailable", 404, True),
        ("§2.3.1.3, unavailable", 403, True),
        ("§2.3.1.4, unreachable", 503, False),
        ("§2.3.1.4, unreachable", 500, False),
    ],
)
def test_a_robots_file_that_cannot_be_had(where: str, status: int, allowed: bool, ask: Any) -> None:
    assert ask({"/robots.txt": Answer("no", status)}, "check_robots", "/x")["allowed"] is allowed, where


def test_five_redirects_of_a_robots_file_are_followed_and_the_agent_has_its_token(
    ask: Any, site: upstream.Site
) -> None:
    """RFC 9309 §2.3.1.2, and §2.2.1: the user agent contains the token."""
    ways = {f"/{number}": Answer(status=301, headers={"Location": f"/{number + 1}"}) for number in range(1, 5)}
    first = {"/robots.txt": Answer(status=301, headers={"Location": "/1"})}
    last = {"/5": Answer(f"User-agent: {ME}\nDisallow: /x\n", headers={"Content-Type": "text/plain"})}
    assert ask(first | ways | last, "check_robots", "/x")["allowed"] is False
    assert all(ME in one.headers["user-agent"] for one in site.asked)


# --- sitemaps.org protocol 0.9 ---

SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {SPACE}>
   <url><loc>http://shop.example.com/</loc><lastmod>2026-01-01</lastmod><changefreq>monthly</changefreq><priority>0.8</priority></url>
   <url><loc>http://shop.example.com/catalog?item=12&amp;desc=vacation_hawaii</loc><changefreq>weekly</changefreq></url>
   <url><loc>http://shop.example.com/catalog?item=74&amp;desc=vacation_usa</loc><lastmod>2026-12-23T18:00:15+00:00</lastmod><priority>0.3</priority></url>
</urlset>"""
INDEX = f"""<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex {SPACE}>
   <sitemap><loc>${{site}}/sitemap1.xml.gz</loc><lastmod>2026-10-01T18:23:17+00:00</lastmod></sitemap>
   <sitemap><loc>${{site}}/sitemap2.txt</loc><lastmod>2026-01-01</lastmod></sitemap>
</sitemapindex>"""
TEXT = "http://shop.example.com/catalog?item=1\nhttp://shop.example.com/catalog?item=11\n"
RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel><title>Liftoff</title><link>http://shop.example.com/</link><description>News.</description>
 <item><title>Star City</title><link>http://shop.example.com/news-star.asp</link><description>How it is there.</description>
  <pubDate>Tue, 03 Nov 2026 09:39:21 GMT</pubDate><guid>http://shop.example.com/2026/11/03.html#item573</guid></item>
 <item><description>Sky watchers see a &lt;a href="http://shop.example.com/e.htm"&gt;partial eclipse&lt;/a&gt; on Saturday.</description>
  <pubDate>Fri, 30 Oct 2026 11:06:42 GMT</pubDate><guid>http://shop.example.com/2026/10/30.html#item572</guid></item>
 <item><title>No address</title><pubDate>Tue, 27 Oct 2026 08:37:32 GMT</pubDate><guid isPermaLink="false">item-571</guid>
  <category domain="http://shop.example.com/kinds">Grateful/Dead</category></item>
</channel></rss>"""
BRIEF = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Example Feed</title><link href="http://shop.example.org/"/><updated>2026-10-13T18:30:02Z</updated>
  <author><name>Ada Example</name></author><id>urn:uuid:60a76c80-d399-11d9-b93c-0003939e0af6</id>
  <entry><title>Robots Run Amok</title><link href="http://shop.example.org/2026/10/13/atom03"/>
    <id>urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a</id><updated>2026-10-13T18:30:02Z</updated><summary>Some text.</summary></entry>
</feed>"""
EXTENSIVE = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://shop.example.org/news/">
  <title type="text">dive into mark</title><subtitle type="html">A &lt;em&gt;lot&lt;/em&gt; of effort</subtitle><updated>2026-07-31T12:29:29Z</updated>
  <id>tag:shop.example.org,2026:3</id><link rel="alternate" type="text/html" hreflang="en" href="http://shop.example.org/"/>
  <link rel="self" type="application/atom+xml" href="http://shop.example.org/feed.atom"/>
  <entry><title type="html">Atom &amp;lt;draft&amp;gt; 07</title><link rel="enclosure" type="audio/mpeg" length="1337" href="http://shop.example.org/a.mp3"/>
    <link rel="alternate" type="text/html" href="2026/07/31/atom"/><id>tag:shop.example.org,2026:3.2397</id>
    <updated>2026-07-31T12:29:29Z</updated><published>2026-07-13T08:29:29-04:00</published><category term="drafts"/>
    <content type="xhtml" xml:lang="en"><div xmlns="http://www.w3.org/1999/xhtml"><p><i>[Update: The draft is finished.]</i></p></div></content></entry>
</feed>"""
PAGES = [
    {"url": "http://shop.example.com/", "modified": "2026-01-01"},
    {"url": "http://shop.example.com/catalog?item=12&desc=vacation_hawaii", "modified": ""},
    {"url": "http://shop.example.com/catalog?item=74&desc=vacation_usa", "modified": "2026-12-23T18:00:15+00:00"},
]
LISTED = [{"url": f"http://shop.example.com/catalog?item={number}", "modified": ""} for number in (1, 11)]
NEWS = [
    {"url": "http://shop.example.com/news-star.asp", "modified": "Tue, 03 Nov 2026 09:39:21 GMT"},
    {"url": "http://shop.example.com/2026/10/30.html", "modified": "Fri, 30 Oct 2026 11:06:42 GMT"},
]


@pytest.mark.parametrize(
    ("where", "pages", "path", "found"),
    [
        ("Sample XML Sitemap; Entity Escaping", {"/sitemap.xml": Answer(URLSET, headers=XML)}, "/", PAGES),
        (
            "Using Sitemap index files; Text file",
            {
                "/sitemap.xml": Answer(INDEX, headers=XML),
                "/sitemap1.xml.gz": Answer(gzip.compress(URLSET.encode(), mtime=0), headers={"Content-Type": "application/gzip"}),
                "/sitemap2.txt": Answer(TEXT, headers={"Content-Type": "text/plain"}),
            },
            "/", PAGES + LISTED,
        ),
        (
            "Specifying the Sitemap location in your robots.txt file",
            {"/robots.txt": Answer("Sitemap: ${site}/sitemap-host1.xml\n"), "/sitemap-host1.xml": Answer(URLSET, headers=XML)}, "/", PAGES,
        ),
        ("Other Sitemap formats: syndication feed, RSS 2.0", {"/feed.xml": Answer(RSS, headers=XML)}, "/feed.xml", NEWS),
        (
            "Other Sitemap formats: syndication feed, Atom 1.0", {"/feed.xml": Answer(EXTENSIVE, headers=XML)}, "/feed.xml",
            [{"url": "http://shop.example.org/news/2026/07/31/atom", "modified": "2026-07-31T12:29:29Z"}],
        ),
    ],
)  # fmt: skip
def test_sitemaps_of_the_protocol(where: str, pages: dict[str, Any], path: str, found: list[Any], ask: Any) -> None:
    answer = ask(pages, "list_site_pages", path)
    assert (answer["pages"], answer["total"], answer["left_out"]) == (found, len(found), []), where


# --- RSS 2.0 and Atom (RFC 4287) ---


@pytest.mark.parametrize(
    ("where", "feed", "entries"),
    [
        (
            "RSS 2.0 Specification, sample: elements of item, guid and isPermaLink", RSS,
            [
                ("Star City", "http://shop.example.com/news-star.asp", "2026-11-03T09:39:21+00:00", "How it is there.", []),
                ("", "http://shop.example.com/2026/10/30.html", "2026-10-30T11:06:42+00:00", "Sky watchers see a partial eclipse on Saturday.", []),
                ("No address", "", "2026-10-27T08:37:32+00:00", "", ["Grateful/Dead"]),
            ],
        ),
        (
            "RFC 4287 §1.1, a brief, single-entry feed document", BRIEF,
            [("Robots Run Amok", "http://shop.example.org/2026/10/13/atom03", "2026-10-13T18:30:02+00:00", "Some text.", [])],
        ),
        (
            "RFC 4287 §1.1, a more extensive document; §2, xml:base", EXTENSIVE,
            [
                (
                    "Atom <draft> 07", "http://shop.example.org/news/2026/07/31/atom", "2026-07-13T12:29:29+00:00",
                    "[Update: The draft is finished.]", ["drafts"],
                )
            ],
        ),
        *(
            (f"RFC 4287 §3.3, date {date}", BRIEF.replace("2026-10-13T18:30:02Z", date), [("Robots Run Amok", "http://shop.example.org/2026/10/13/atom03", utc, "Some text.", [])])
            for date, utc in (
                ("2003-12-13T18:30:02.25Z", "2003-12-13T18:30:02+00:00"),
                ("2003-12-13T18:30:02+01:00", "2003-12-13T17:30:02+00:00"),
                ("2003-12-13T18:30:02.25+01:00", "2003-12-13T17:30:02+00:00"),
            )
        ),
    ],
)  # fmt: skip
def test_feeds_of_the_standards(where: str, feed: str, entries: list[Any], ask: Any) -> None:
    found = ask({"/feed.xml": Answer(feed, headers=XML)}, "read_feed", "/feed.xml")["entries"]
    assert [
        (one["title"], one["url"], one["published"], one["summary"], one["categories"]) for one in found
    ] == entries, where


# --- schema.org, and Google's structured data about products ---

RATING = {"@type": "AggregateRating", "ratingValue": "3.5", "reviewCount": "11"}
OFFER = {"@type": "Offer", "availability": "https://schema.org/InStock", "price": "55.00", "priceCurrency": "USD"}
UNIT = {"@type": "UnitPriceSpecification", "price": 9.99, "priceCurrency": "EUR", "unitCode": "MON"}
STRUCK = {**UNIT, "priceType": "https://schema.org/StrikethroughPrice", "price": 14.99}
MONITORS = {
    "@type": "AggregateOffer", "highPrice": "$1495", "lowPrice": "$1250", "offerCount": "2",
    "offers": [{"@type": "Offer", "url": "https://a.test/30.html"}, {"@type": "Offer", "url": "https://b.test/30.html"}],
}  # fmt: skip


def product(**members: Any) -> dict[str, Any]:
    return {"@context": "https://schema.org", "@type": "Product", "name": "Executive Anvil", **members}


@pytest.mark.parametrize(
    ("where", "data", "prices"),
    [
        ("schema.org/Product, example 1: Offer in a Product", product(aggregateRating=RATING, offers=OFFER), [(55.0, None, "USD", "")]),
        ("schema.org/AggregateOffer, example: prices with a symbol", product(offers=MONITORS), [(1250.0, 1495.0, "$", "")]),
        ("Google, product snippet: aggregate offer", product(offers={"@type": "AggregateOffer", "offerCount": 5, "lowPrice": 119.99, "highPrice": 199.99, "priceCurrency": "USD"}), [(119.99, 199.99, "USD", "")]),
        ("Google, merchant listing: price in priceSpecification", product(offers={"@type": "Offer", "priceSpecification": UNIT}), [(9.99, None, "EUR", "month")]),
        ("Google, merchant listing: sale pricing beside the price", product(offers={"@type": "Offer", "price": 10.00, "priceCurrency": "EUR", "priceSpecification": {**STRUCK, "unitCode": ""}}), [(10.0, None, "EUR", "")]),
        ("Google, merchant listing: sale pricing in priceSpecification", product(offers={"@type": "Offer", "priceSpecification": [STRUCK, UNIT]}), [(9.99, None, "EUR", "month")]),
        (
            "schema.org/ProductGroup: hasVariant",
            {"@context": "https://schema.org", "@type": "ProductGroup", "name": "Coat", "variesBy": ["https://schema.org/size"], "hasVariant": [product(name="Coat S", offers={**OFFER, "price": 39.99}), product(name="Coat L", offers={**OFFER, "price": 49.99})]},
            [(39.99, None, "USD", ""), (49.99, None, "USD", "")],
        ),
        (
            "schema.org/SoftwareApplication: a free one, in a graph",
            {"@context": "https://schema.org", "@graph": [{"@type": "SoftwareApplication", "name": "Angry Cats", "operatingSystem": "ANDROID", "offers": {"@type": "Offer", "price": 0, "priceCurrency": "USD"}}]},
            [(0.0, None, "USD", "")],
        ),
    ],
)  # fmt: skip
def test_prices_of_json_ld(where: str, data: Any, prices: list[Any], ask: Any) -> None:
    html = f'<title>x</title><script type="application/ld+json">{json.dumps(data)}</script><p>words</p>'
    found = ask({"/p": Answer(html)}, "find_prices", "/p")["prices"]
    shown = dict.fromkeys((one["amount"], one["highest"], one["currency"], one["period"]) for one in found)
    assert list(shown) == prices, where
    assert {one["source"] for one in found} == {"json"}
