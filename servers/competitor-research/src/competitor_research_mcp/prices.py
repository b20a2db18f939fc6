"""Extraction of prices from a page: amount, currency, period, and plan.

Sources are structured data, tables whose first row has the plans, and text below headings. Nothing is guessed: a `$` without a
country stays `$` unless the page names the dollar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

from pydantic import BaseModel, Field

from .amounts import AFTER, AMOUNT, BEFORE, currency_of, read_amount
from .html import Element
from .structured import Offer, StructuredData
from .text import Section, clean, is_hidden, visible_text

__all__ = ["PlanTable", "Price", "find_plan_tables", "find_prices", "parse_prices"]

_TIMES: Final = {"k": 1e3, "tsd": 1e3, "lakh": 1e5, "lac": 1e5, "crore": 1e7}
_DASH: Final = "[-–—]"
_MANY: Final = r"(?:\s?(?P<{}>[kK]|Tsd\.|lakh|lac|crore)(?!\w))?"
_ENDED: Final = rf"(?:[.,]{_DASH}{{1,2}})?"  # 1.299,-
_PRICE: Final = re.compile(
    rf"(?<![\w$€£.,])(?:(?P<before>{BEFORE})\s?(?P<first>{AMOUNT}){_ENDED}{_MANY.format('many')}"
    rf"(?P<range>(?:\s?{_DASH}\s?(?:{BEFORE})\s?|\s(?:to|bis)\s(?:(?:{BEFORE})\s?)?|{_DASH})(?P<high>{AMOUNT})(?!\s?%))?"
    rf"|(?:(?P<low>{AMOUNT})(?:\s?{_DASH}\s?|\s(?:to|bis|and|und|à)\s))?(?P<second>{AMOUNT}){_ENDED}{_MANY.format('much')}\s?(?P<after>{AFTER}))"
)
# Words around an amount that is not a price: savings, credits, minimum orders, investments, former prices.
_NONE_BEFORE: Final = re.compile(
    r"\b(?:sav(?:e|es|ing|ings)|sparen?(?: sie)?|spend|rais(?:ed|ing)|valued at|valuation of|over|above|under|below|worth|get|win|earn"
    r"|(?:minimum|discount|credit|orders?|rabatt)(?: of| von)?)(?:\s(?:up to|bis zu|about|more than))?\s*$",
    re.IGNORECASE,
)
_NONE_AFTER: Final = re.compile(
    r"\s?(?:(?:[mMbB]n?|mill?ion|billion|trillion|mio|mrd)\b"
    r"|(?:off|raised|saved|less|cheaper|günstiger|gespart)\b"
    r"|(?:in |of )?(?:(?!per|an?|each|for|every|pro|\d)\w+ ){0,2}(?:discount|rabatt|credits?|funding|revenue|savings?|cash ?back|valuation|coupon|gutschein)\b)",
    re.IGNORECASE,
)
_FORMER: Final = re.compile(
    r"\b(?:was|were|formerly|instead of|statt|original(?:ly)? price|originally|regular price|regularly|vorher|bisher|früher)"
    r"(?: was| is)?:?\s*$",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(
    r"\b(?:uvp|rrp|msrp|list price):?\s*$", re.IGNORECASE
)  # a former price if another price follows
_ALONE: Final = re.compile(BEFORE)
_STRUCK: Final = re.compile(r"~~(.+?)~~")
_PERIODS: Final = (
    (
        re.compile(
            r"(?:/|\bper\b|\ba\b|\beach\b|\bpro\b|\bpar\b)\s*(?:mo\b|month|monat|mois)|\bmonthly\b|\bmonatlich\b|/mo\b",
            re.IGNORECASE,
        ),
        "month",
    ),
    (
        re.compile(
            r"(?:/|\bper\b|\ba\b|\beach\b|\bpro\b|\bpar\b)\s*(?:yr\b|year|annum|jahr|an\b)|\byearly\b|\bannually\b|\bjährlich\b",
            re.IGNORECASE,
        ),
        "year",
    ),
    (re.compile(r"(?:/|\bper\b|\ba\b)\s*(?:wk\b|week)|\bweekly\b", re.IGNORECASE), "week"),
    (re.compile(r"(?:/|\bper\b|\ba\b)\s*day\b|\bdaily\b", re.IGNORECASE), "day"),
    (re.compile(r"(?:/|\bper\b|\ban\b)\s*(?:hr\b|hour)", re.IGNORECASE), "hour"),
    (re.compile(r"\bone[- ]time\b|\blifetime\b|\bonce\b", re.IGNORECASE), "once"),
)
_UNIT: Final = re.compile(
    r"(?:/|\bper\b)\s*(user|seat|member|agent|editor|contact|employee|site|device|host|GB|TB|1[,.]?000 \w+)",
    re.IGNORECASE,
)
_BILLED: Final = re.compile(r"\bbilled\s+(annually|yearly|monthly|quarterly)\b", re.IGNORECASE)
_REQUEST: Final = re.compile(
    r"\b(contact (?:us|sales)|talk to (?:us|sales)|custom pricing|get a quote|on request|request a quote|auf anfrage)\b",
    re.IGNORECASE,
)
_FREE: Final = re.compile(r"^(?:free(?: forever| plan)?|kostenlos|gratis)[.!]?$", re.IGNORECASE)
# A row with the price of the plan itself.
_PRICE_ROW: Final = re.compile(r"price|cost|monthly|annual|yearly|per (?:month|year)|preis|prix|precio", re.IGNORECASE)
_TABLE_ROW: Final = re.compile(r"^\| .* \|$")
_MOST: Final = 200  # prices per page
_MOST_TABLES: Final = 50
_LONGEST: Final = 5_000  # characters per line to search
_AROUND: Final = 80  # characters after an amount to search for period and unit

Source = Literal["json", "table", "text"]


class Price(BaseModel):
    """A price on a page."""

    plan: str = Field(default="", description="product, plan or heading of the price")
    amount: float | None = Field(default=None, description="null if the price is on request")
    highest: float | None = Field(default=None, description="upper end of a range; `amount` is the lower end")
    former: float | None = Field(default=None, description="former price, struck out or marked as such")
    currency: str = Field(default="", description="ISO 4217 code, or an ambiguous symbol")
    period: str = Field(default="", description="month, year, once …; empty if unknown")
    unit: str = Field(default="", description="user, seat …")
    billed: str = Field(default="", description="billing interval, such as annually")
    text: str = Field(default="", description="text around the price on the page")
    source: Source = Field(
        default="text",
        description="json: structured data; table: a table of plans; text: text below a heading",
    )

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of the price over time: everything but the amount."""
        return self.plan.casefold(), self.period, self.unit.casefold(), self.billed


class PlanTable(BaseModel):
    """A table that compares plans."""

    plans: list[str]
    rows: list[list[str]] = Field(description="feature, then its value in each plan")


def find_prices(sections: list[Section], data: StructuredData, tables: list[PlanTable]) -> list[Price]:
    """Return the prices of a page without duplicates, those of structured data first."""
    dollars = {one.currency for one in _offers_of(data) if one.currency in ("USD", "CAD", "AUD", "NZD", "SGD", "HKD")}
    dollar = dollars.pop() if len(dollars) == 1 else "$"
    found = [*_of_data(data), *_of_tables(tables, dollar), *_of_sections(sections, dollar)]
    seen: dict[tuple[object, ...], Price] = {}
    for price in found:
        seen.setdefault((*price.key[:2], price.amount, price.currency), price)
    return list(seen.values())[:_MOST]


def parse_prices(text: str, dollar: str = "$", within: int = 0) -> list[Price]:
    """Return the prices in a line of text.

    Args:
        text: the line.
        dollar: currency of a plain `$`.
        within: prices must start before this character; 0 for no limit.
    """
    text = text[:_LONGEST]
    struck = [match.span() for match in _STRUCK.finditer(text)]
    matches = list(_PRICE.finditer(_STRUCK.sub(lambda match: f"  {match[1]}  ", text)))
    found: list[Price] = []
    former: float | None = None
    for number, match in enumerate(matches):
        amount, highest, end = _amounts(match)
        around = text[max(match.start() - 40, 0) : match.start()]
        last = number + 1 == len(matches)
        past = any(begin <= match.start() < stop for begin, stop in struck) or _FORMER.search(around)
        if past or (_LISTED.search(around) and not last):
            former = amount
            continue
        if _NONE_BEFORE.search(around) or _NONE_AFTER.match(text, end, within or len(text)):
            continue
        if within and match.start() >= within:
            break
        following = len(text) if last else matches[number + 1].start()
        tail = text[end : min(following, end + _AROUND)]
        price = _price(tail, currency_of(match["before"] or match["after"]), dollar)
        price.amount, price.highest, price.former, former = amount, highest, former, None
        price.text = clean(text[max(match.start() - 20, 0) : end + len(tail)])[:160]
        found.append(price)
    if former is not None and found and found[-1].former is None:
        found[-1].former = former  # $79, was $99
    return found


def _amounts(match: re.Match[str]) -> tuple[float, float | None, int]:
    """Return amount, upper end of a range, and end position of the match."""
    many = (match["many"] or match["much"] or "").lower().rstrip(".")
    times = _TIMES.get(many, 1)
    first, last = (match["first"], match["high"]) if match["before"] else (match["low"], match["second"])
    low, high = (read_amount(one) * times if one else None for one in (first, last))
    if low is not None and high is not None and low < high:
        return low, high, match.end()
    if match["before"]:
        return low or 0.0, None, match.start("range") if match["range"] else match.end()
    return high or 0.0, None, match.end()


def _price(tail: str, currency: str, dollar: str) -> Price:
    unit, billed = _UNIT.search(tail), _BILLED.search(tail)
    plain = _BILLED.sub(" ", tail)
    return Price(
        currency=dollar if currency == "$" else currency,
        period=next((name for pattern, name in _PERIODS if pattern.search(plain)), ""),
        unit=unit[1].lower() if unit else "",
        billed=billed[1].lower() if billed else "",
    )


def find_plan_tables(root: Element) -> list[PlanTable]:
    """Return tables that compare plans: a first row with at least two plans, and rows of the same width."""
    found = []
    for table in islice(root.find_all("table"), _MOST_TABLES):
        rows = [[clean(visible_text(cell))[:120] for cell in row if not is_hidden(cell)] for row in table.rows()]
        rows = [row for row in rows if any(row)]
        if len(rows) < 2 or not 3 <= len(rows[0]) <= 12:
            continue
        even = [row for row in rows[1:] if len(row) == len(rows[0])]
        if even and all(rows[0][1:]):
            found.append(PlanTable(plans=rows[0][1:], rows=even[:100]))
    return found[:10]


def _offers_of(data: StructuredData) -> list[Offer]:
    return [*data.offers, *(offer for product in data.products for offer in product.offers)]


def _of_data(data: StructuredData) -> Iterator[Price]:
    named = [(product.name, offer) for product in data.products for offer in product.offers]
    for name, offer in [*named, *(("", offer) for offer in data.offers)]:
        if offer.price is not None:
            words = offer.name if offer.name and offer.name != name else ""
            yield Price(
                plan=" – ".join(part for part in (name, words) if part),
                amount=offer.price,
                highest=offer.highest_price,
                currency=offer.currency,
                period=offer.period,
                source="json",
            )


def _of_tables(tables: list[PlanTable], dollar: str) -> Iterator[Price]:
    for table in tables:
        for row in table.rows:
            for plan, cell in zip(table.plans, row[1:], strict=True):
                for price in parse_prices(f"{cell} {row[0]}", dollar, len(cell) + 1):
                    whole = plan if _PRICE_ROW.search(row[0]) or not row[0] else f"{plan} – {row[0]}"
                    yield price.model_copy(update={"plan": whole, "source": "table", "text": f"{row[0]}: {cell}"})


def _of_sections(sections: list[Section], dollar: str) -> Iterator[Price]:
    for section in sections:
        lines = _joined([line for line in section.lines if not _TABLE_ROW.match(line)])
        found = False
        for number, line in enumerate(lines):
            following = lines[number + 1] if number + 1 < len(lines) and len(line) < 30 else ""
            following = "" if _PRICE.search(following) else f" {following[:60]}"
            prices = parse_prices(line + following, dollar, len(line) + 1)
            found = found or bool(prices)
            yield from (price.model_copy(update={"plan": section.heading}) for price in prices)
            if not prices and _FREE.match(line.removeprefix("- ")):
                found = True
                yield Price(plan=section.heading, amount=0.0, text=line)
        words = _REQUEST.search(" ".join(lines[:6])[:_LONGEST])
        if words and not found and section.heading and len(lines) <= 20:
            yield Price(plan=section.heading, text=words[0])


def _joined(lines: list[str]) -> list[str]:
    """Join a line that is only a currency with the amount on the next line, which is common for large figures."""
    found: list[str] = []
    for line in lines:
        alone = found and len(found[-1]) < 5 and _ALONE.fullmatch(found[-1]) and line[:1].isdigit()
        found[-1:] = [found[-1] + line] if alone else [*found[-1:], line]
    return found
