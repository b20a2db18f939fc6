"""Tests of price texts: amounts, currencies, and amounts that are not prices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from competitor_research_mcp.amounts import read_money
from competitor_research_mcp.html import parse_html
from competitor_research_mcp.page import read_page
from competitor_research_mcp.prices import parse_prices
from competitor_research_mcp.structured import read_structured

Row = tuple[str, list[tuple[float, float | None, str]]]

TEXTS: tuple[Row, ...] = (
    # number formats
    ("₹1,29,999", [(129999, None, "INR")]),
    ("₹ 1,00,000.00 per year", [(100000, None, "INR")]),
    ("₹999", [(999, None, "INR")]),
    ("1,299.00 $", [(1299, None, "$")]),
    ("kr 1.299,-", [(1299, None, "kr")]),
    ("1.299,-- €", [(1299, None, "EUR")]),
    ("€ 1.299", [(1299, None, "EUR")]),
    ("€ 1.299,5", [(1299.5, None, "EUR")]),
    ("1\u00a0299,50 €", [(1299.5, None, "EUR")]),
    ("CHF 1’250.00", [(1250, None, "CHF")]),
    ("$1,299,000", [(1299000, None, "$")]),
    ("$0.0015 per request", [(0.0015, None, "$")]),
    ("US$ 49.90", [(49.9, None, "USD")]),
    ("99 SEK", [(99, None, "SEK")]),
    ("49 €/Monat", [(49, None, "EUR")]),
    # abbreviated thousands
    ("$1.5k/mo", [(1500, None, "$")]),
    ("from €20k a year", [(20000, None, "EUR")]),
    ("₹1.5 lakh", [(150000, None, "INR")]),
    # ranges
    ("from 10 to 20 EUR", [(10, 20, "EUR")]),
    ("10–20 €", [(10, 20, "EUR")]),
    ("$9 - $19 per month", [(9, 19, "$")]),
    ("$10-20", [(10, 20, "$")]),
    ("$29 – 5 users", [(29, None, "$")]),
    ("since 2024 - 20 EUR", [(20, None, "EUR")]),
    # amounts that are not prices
    ("$10M raised", []),
    ("$4 million in revenue", []),
    ("Save $50 today", []),
    ("Spare 20 €", []),
    ("$30 off", []),
    ("Spend $200 and get a mug", []),
    ("$50 credit for new teams", []),
    ("Raised $900,000 from friends", []),
    # former prices
    ("~~$99~~ $79/mo", [(79, None, "$")]),
    ("Original price was: $99. Current price is: $79.", [(79, None, "$")]),
    ("UVP 59,99 € 39,99 €", [(39.99, None, "EUR")]),
    # several prices
    ("$29 monthly or $290 yearly", [(29, None, "$"), (290, None, "$")]),
    ("Buy 10 $20 cards", [(20, None, "$")]),
    ("3 seats, 12 € each", [(12, None, "EUR")]),
    ("version 1.2 of EUR rules", []),
    ("call 030 1234", []),
    ("MSRP $99", [(99, None, "$")]),
    ("Regular $29 a month", [(29, None, "$")]),
    # written before the code, as an independent sample
    ("₹12,34,567.50", [(1234567.5, None, "INR")]),
    ("Rs. 4,999 per year", [(4999, None, "INR")]),
    ("2 499 kr/mån", [(2499, None, "kr")]),
    ("kr. 99,95", [(99.95, None, "kr")]),
    ("1.299,- EUR", [(1299, None, "EUR")]),
    ("€49,-", [(49, None, "EUR")]),
    ("$2.5K per year", [(2500, None, "$")]),
    ("€1,2k", [(1200, None, "EUR")]),
    ("valued at $2 billion", []),
    ("We raised €30M in Series B", []),
    ("$20 off your first month", []),
    ("Get 15 € Rabatt", []),
    ("was $120, now $90", [(90, None, "$")]),
    ("statt 199 € nur 149 €", [(149, None, "EUR")]),
    ("~~$1,200~~ $999 a year", [(999, None, "$")]),
    ("$15-$25 per user", [(15, 25, "$")]),
    ("€10–20 / Monat", [(10, 20, "EUR")]),
    ("zwischen 10 und 20 EUR", [(10, 20, "EUR")]),
    ("199 zł miesięcznie", [(199, None, "PLN")]),
    ("1 290 Kč", [(1290, None, "CZK")]),
    ("USD 1,000,000", [(1000000, None, "USD")]),
    ("49$ / month", [(49, None, "$")]),
    ("MX$199", [(199, None, "MXN")]),
    ("¥128,000", [(128000, None, "JPY")]),
    ("30 users for $29", [(29, None, "$")]),
    ("Windows 11 Pro 199,00 €", [(199, None, "EUR")]),
    ("Free shipping on orders over $50", []),
    ("$100 in free credits", []),
    ("$0.002 per credit", [(0.002, None, "$")]),
    ("Basic $9 Pro $29 Max $99", [(9, None, "$"), (29, None, "$"), (99, None, "$")]),
)


def read(text: str) -> list[tuple[float | None, float | None, str]]:
    return [(one.amount, one.highest, one.currency) for one in parse_prices(text)]


@pytest.mark.parametrize(("text", "prices"), TEXTS, ids=[text for text, _ in TEXTS])
def test_the_prices_of_a_text(text: str, prices: list[tuple[float, float | None, str]]) -> None:
    assert read(text) == prices


@pytest.mark.parametrize("form", ["<del>$99</del> $79/mo", "<s>$99</s> $79/mo", "<strike>$99</strike> $79/mo"])
@pytest.mark.parametrize(
    "around", ["<h2>Team</h2><p>{}</p>", "<table><tr><th>Plan<th>Solo<th>Team<tr><td>Price<td>$9<td>{}</table>"]
)
def test_what_a_page_strikes_out_is_the_former_price(form: str, around: str) -> None:
    prices = [one for one in read_page(around.format(form), "").prices if one.plan == "Team"]
    assert [(one.amount, one.former, one.period) for one in prices] == [(79, 99, "month")]


def test_a_price_that_a_style_strikes_out_alone_is_left_out() -> None:
    html = "<h2>Team</h2><p style='text-decoration: line-through'>£1,500</p><p>£1,200</p>"
    assert [one.amount for one in read_page(html, "").prices] == [1200]


@pytest.mark.parametrize(
    ("offer", "price", "currency"),
    [
        ({"price": "1.299,00", "priceCurrency": "EUR"}, 1299, "EUR"),
        ({"price": "$1,299"}, 1299, "$"),
        ({"price": "1,299.00 EUR"}, 1299, "EUR"),
        ({"price": "1.299", "priceCurrency": "EUR"}, 1.299, "EUR"),  # schema.org: the point is the decimal separator
        ({"price": "1299,5", "priceCurrency": "EUR"}, 1299.5, "EUR"),
        ({"price": "1,29,999", "priceCurrency": "INR"}, 129999, "INR"),
        ({"price": 1299, "priceCurrency": "EUR"}, 1299, "EUR"),
        ({"price": "Free"}, None, ""),
        ({"price": "-5", "priceCurrency": "EUR"}, None, "EUR"),
    ],
)
def test_prices_of_json_ld_in_the_forms_that_shops_write(
    offer: dict[str, Any], price: float | None, currency: str
) -> None:
    source = json.dumps({"@type": "Offer", **offer})
    (found,) = read_structured(parse_html(f'<script type="application/ld+json">{source}</script>')).offers
    assert (found.price, found.currency) == (price, currency)


def test_what_the_next_line_counts_makes_a_price_no_credit() -> None:
    html = "<h2>Pro</h2><p>$20</p><p>Unlimited credits</p><h2>Max</h2><p>$99 credit</p>"
    assert [(one.plan, one.amount) for one in read_page(html, "").prices] == [("Pro", 20)]


def test_a_number_that_no_price_is_is_none() -> None:
    assert [read_money(text)[0] for text in ("1e999", "-5", "1e12", "19.5")] == [None, None, None, 19.5]
