"""Tests of text, metadata, structured data and prices of a page."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import pytest
import upstream

from competitor_research_mcp.html import parse_html
from competitor_research_mcp.page import decoded, read_page
from competitor_research_mcp.prices import parse_prices
from competitor_research_mcp.profile import kind_of
from competitor_research_mcp.structured import read_structured
from competitor_research_mcp.text import readable, to_markdown

URL = "https://acme.example/x/"


def text(html: str, **options: Any) -> str:
    return to_markdown(readable(parse_html(html), URL, **options))


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h1>One</h1><p>a<p>b<br>c", "# One\na\nb\nc"),
        ("<ul><li>x<li>y <b>z</b></ul>after", "- x\n- y z\nafter"),
        ("<p>a</p><nav>menu</nav><footer>end</footer><p>b</p>", "a\nb"),
        ("<div>a<script>x()</script><style>b{}</style><noscript>n</noscript><svg><text>s</text></svg></div>", "a"),
        ("<p>seen<span style='display:none'>not</span><span hidden>not</span><i aria-hidden=true>not</i></p>", "seen"),
        ("<p style='font-size:0.9em;opacity:0.8'>seen</p>", "seen"),
        ("<p>zero\u200bwidth\u202eand \U000e0041tags</p>", "zerowidthand tags"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2|3</table>", "| A | B |\n| 1 | 2/3 |"),
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<p>a &amp; b&nbsp;c &#8364; &euro;</p>", "a & b c € €"),
        ("<h2>T<small>x</small></h2><img src=i alt='a picture'>", "## Tx\na picture"),
        ("<p>a<div>b</p>c</div></body></html>", "a\nbc"),
        ("<a href='/p'>price</a> <a href='javascript:x()'>no</a>", "price no"),
    ],
)
def test_text_is_what_a_person_sees(html: str, markdown: str) -> None:
    assert text(f"<body>{html}") == markdown


def test_links_are_kept_when_wanted() -> None:
    assert (
        text("<p>See <a href='../p'>prices</a>, <a href='javascript:x'>no</a></p>", links=True)
        == "See [prices](https://acme.example/p), no"
    )


def test_a_main_part_with_little_in_it_is_not_believed() -> None:
    assert "the rest" in text("<main>Loading…</main><div>the rest of the page</div>")


def test_deep_and_broken_markup_is_read_in_reasonable_time() -> None:
    begun = perf_counter()
    assert "end" in text("<div>" * 10_000 + "end")
    assert text("<b><i>" * 2_000 + "</b>" * 2_000 + "x<p" + "<li>" * 5_000 + "y")
    read_page("<table><tr><td>" * 2_000 + "<a href=" * 20_000, URL)
    assert perf_counter() - begun < 30


@pytest.mark.parametrize(
    ("body", "header"),
    [
        ("Köln €".encode(), "text/html; charset=utf-8"),
        ("Köln €".encode("cp1252"), 'text/html; charset="ISO-8859-1"'),
        (b"<meta charset=windows-1252>" + "Köln €".encode("cp1252"), "text/html"),
        ("Köln €".encode("utf-16"), "text/html; charset=utf-8"),
        ("Köln €".encode(), "text/html; charset=no-such"),
    ],
)
def test_encodings_are_those_of_the_web(body: bytes, header: str) -> None:
    assert decoded(body, header).endswith("Köln €")


def test_metadata_of_a_page() -> None:
    found = read_page(upstream.HOME.replace("${site}", "https://acme.example"), "https://acme.example/").metadata
    assert (found.title, found.description) == (
        "Acme Desk – support software for small teams",
        "One inbox for mail, chat and phone.",
    )
    assert (found.canonical, found.language, found.site_name) == ("https://acme.example/", "en-US", "Acme Desk")
    assert found.headings == ["# Answer every customer within the hour", "## Why teams switch"]
    assert [feed.url for feed in found.feeds] == ["https://acme.example/feed.xml"]
    assert found.social == ["https://www.linkedin.com/company/acme"]


# --- structured data ---


def ld(value: Any) -> Any:
    return read_structured(parse_html(f'<script type="application/ld+json">{json.dumps(value)}</script>'))


def test_products_of_json_ld() -> None:
    offer = {
        "@type": "AggregateOffer",
        "lowPrice": "9.50",
        "highPrice": 99,
        "priceCurrency": "eur",
        "availability": "http://schema.org/InStock",
    }
    data = ld(
        [
            {
                "@type": ["Product", "Thing"],
                "name": "Desk",
                "brand": {"name": "Acme"},
                "sku": 7,
                "offers": offer,
                "aggregateRating": {"ratingValue": "4,5", "reviewCount": "1,204"},
            }
        ]
    )
    (product,) = data.products
    assert (product.name, product.brand, product.sku, product.rating, product.reviews) == (
        "Desk",
        "Acme",
        "7",
        4.5,
        1204,
    )
    assert (
        product.offers[0].price,
        product.offers[0].highest_price,
        product.offers[0].currency,
        product.offers[0].availability,
    ) == (9.5, 99, "EUR", "InStock")
    assert data.offers == []


def test_the_period_of_a_subscription() -> None:
    specification = {
        "@type": "UnitPriceSpecification",
        "price": 12,
        "priceCurrency": "GBP",
        "referenceQuantity": {"unitCode": "ANN"},
    }
    (offer,) = ld({"@context": "https://schema.org", "@type": "Offer", "priceSpecification": specification}).offers
    assert (offer.price, offer.currency, offer.period) == (12, "GBP", "year")


@pytest.mark.parametrize(
    "source",
    [
        "{",
        "[]",
        "null",
        '{"@type": 5}',
        '{"@graph": 3}',
        "[" * 5000,
        '{"@type":"Product","offers":[[1]],"brand":[],"name":{}}',
    ],
)
def test_broken_json_ld_is_left_out(source: str) -> None:
    data = read_structured(parse_html(f'<script type="application/ld+json">{source}</script>'))
    assert data.organizations == []


def test_products_of_microdata() -> None:
    page = read_page(upstream.GLOBEX_SHOP, "https://globex.example/")
    (product,) = page.structured.products
    assert (product.name, product.offers[0].price, product.offers[0].currency, product.offers[0].availability) == (
        "Kasse One",
        1299.0,
        "EUR",
        "OutOfStock",
    )
    assert page.structured.types == {"Product": 1, "Offer": 1}


# --- prices ---


@pytest.mark.parametrize(
    ("words", "amount", "currency", "period", "unit", "billed"),
    [
        ("$29 / month", 29, "$", "month", "", ""),
        ("US$1,299.00 per year", 1299, "USD", "year", "", ""),
        ("29,99 € pro Monat", 29.99, "EUR", "month", "", ""),
        ("€ 1.299", 1299, "EUR", "", "", ""),
        ("1 299,50 € einmalig", 1299.5, "EUR", "", "", ""),
        ("CHF 1'250.00", 1250, "CHF", "", "", ""),
        ("£8 per user per month, billed annually", 8, "GBP", "month", "user", "annually"),
        ("$12/user/mo billed yearly", 12, "$", "month", "user", "yearly"),
        ("$290, billed annually", 290, "$", "", "", "annually"),
        ("49 USD once", 49, "USD", "once", "", ""),
        ("¥1200/mo", 1200, "JPY", "month", "", ""),
        ("R$ 59,90 por mês", 59.9, "BRL", "", "", ""),
        ("from $0.0145", 0.0145, "$", "", "", ""),
    ],
)
def test_prices_in_words(words: str, amount: float, currency: str, period: str, unit: str, billed: str) -> None:
    price = parse_prices(words)[0]
    assert (price.amount, price.currency, price.period, price.unit, price.billed) == (
        amount,
        currency,
        period,
        unit,
        billed,
    )


@pytest.mark.parametrize(
    "words", ["29 days", "version 2.5", "100%", "call 555 867 5310", "EURO 2024", "10,000 users", "#29", "A4 paper"]
)
def test_other_numbers_are_no_prices(words: str) -> None:
    assert parse_prices(words) == []


def test_several_prices_of_a_line_have_their_own_periods() -> None:
    assert [(one.amount, one.period) for one in parse_prices("$10 a month or $100 a year")] == [
        (10, "month"),
        (100, "year"),
    ]


def test_a_price_whose_parts_stand_on_lines_of_their_own() -> None:
    html = (
        "<h3>Pro</h3><div>$</div><div>49</div><div>/ seat / month</div><h3>Max</h3><div>€99</div><div>per month</div>"
    )
    prices = read_page(html, "").prices
    assert [(one.plan, one.amount, one.currency, one.unit, one.period) for one in prices] == [
        ("Pro", 49, "$", "seat", "month"),
        ("Max", 99, "EUR", "", "month"),
    ]


def test_the_prices_of_a_pricing_page() -> None:
    prices = read_page(upstream.PRICING, "https://acme.example/pricing").prices
    assert [(one.plan, one.amount, one.currency, one.period, one.unit, one.source) for one in prices] == [
        ("Acme Desk Team", 29.0, "USD", "month", "", "json"),
        ("Team – Storage add-on", 4.9, "EUR", "", "", "table"),
        ("Enterprise – Storage add-on", 2.0, "EUR", "", "", "table"),
        ("Starter", 0.0, "", "", "", "text"),
        ("Team", 29.0, "USD", "month", "user", "text"),
        ("Enterprise", None, "", "", "", "text"),
    ]


@pytest.mark.parametrize(
    ("url", "words", "kind"),
    [
        ("https://e.com/", "", "home"),
        ("https://e.com/en/pricing.html", "", "pricing"),
        ("https://e.com/p/17", "Plans & pricing".replace("& ", "and "), "pricing"),
        ("https://e.com/preise/", "", "pricing"),
        ("https://e.com/blog", "Blog", "news"),
        ("https://e.com/blog/our-pricing-story", "", "other"),
        ("https://e.com/blog/pricing-is-hard", "Team news of May", "other"),
    ],
)
def test_pages_are_known_by_address_or_words(url: str, words: str, kind: str) -> None:
    assert kind_of(url, words) == kind
