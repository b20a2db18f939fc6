"""Computations on Search Analytics rows: totals, changes, opportunities, and competing pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "Change",
    "CompetingPages",
    "Figures",
    "Opportunity",
    "PageShare",
    "changes",
    "competing",
    "opportunities",
    "read_rows",
    "total",
]

_PART: Final = 0.1  # minimum share of a query's impressions for a competing page


@dataclass(frozen=True, slots=True)
class Figures:
    """Clicks, impressions, click-through rate (0 to 1), and average position (1 is the first)."""

    clicks: int
    impressions: int
    ctr: float
    position: float


@dataclass(frozen=True, slots=True)
class Change:
    """A query, page, country or device in two periods; `now` or `before` is None if it is missing there."""

    key: str
    clicks: int
    clicks_change: int
    now: Figures | None
    before: Figures | None


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A query near the first page, with its page."""

    query: str
    page: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class PageShare:
    """A page of a query; `share` is its part of the query's impressions, 0 to 1."""

    page: str
    share: float
    figures: Figures


@dataclass(frozen=True, slots=True)
class CompetingPages:
    """A query for which several pages of the property appear."""

    query: str
    impressions: int
    pages: list[PageShare]


def read_rows(answer: Mapping[str, Any]) -> dict[tuple[str, ...], Figures]:
    """Return the rows of a response by their keys."""
    rows = answer.get("rows") or ()
    return {tuple(row.get("keys") or ()): _figures([row]) for row in rows if isinstance(row, Mapping)}


def total(rows: Iterable[Figures]) -> Figures:
    """Sum figures; positions are weighted by impressions."""
    return _figures([{"clicks": one.clicks, "impressions": one.impressions, "position": one.position} for one in rows])


def changes(now: Mapping[tuple[str, ...], Figures], before: Mapping[tuple[str, ...], Figures]) -> list[Change]:
    """Return the changes of all keys of both periods, the largest gain in clicks first."""
    found = []
    for key in now.keys() | before.keys():
        one, other = now.get(key), before.get(key)
        clicks = one.clicks if one else 0
        found.append(Change(key[0], clicks, clicks - (other.clicks if other else 0), one, other))
    return sorted(found, key=lambda change: (-change.clicks_change, change.key))


def opportunities(
    rows: Mapping[tuple[str, ...], Figures], *, first: float, last: float, least: int
) -> list[Opportunity]:
    """Return (query, page) rows between two positions with at least `least` impressions, most impressions first."""
    found = [
        Opportunity(query, page, figures)
        for (query, page), figures in rows.items()
        if first <= figures.position <= last and figures.impressions >= least
    ]
    return sorted(found, key=lambda one: (-one.figures.impressions, one.query, one.page))


def competing(rows: Mapping[tuple[str, ...], Figures], *, least: int) -> list[CompetingPages]:
    """Return the queries for which at least two pages have a tenth of the impressions each."""
    by_query: dict[str, list[tuple[str, Figures]]] = defaultdict(list)
    for (query, page), figures in rows.items():
        by_query[query].append((page, figures))
    found = []
    for query, pages in by_query.items():
        seen = sum(figures.impressions for _, figures in pages)
        shares = [
            PageShare(page, round(one.impressions / seen, 3), one)
            for page, one in pages
            if one.impressions >= _PART * seen > 0
        ]
        if len(shares) > 1 and seen >= least:
            found.append(CompetingPages(query, seen, sorted(shares, key=lambda one: (-one.share, one.page))))
    return sorted(found, key=lambda one: (-one.impressions, one.query))


def _figures(rows: Sequence[Mapping[str, Any]]) -> Figures:
    clicks, seen = (sum(float(row.get(name) or 0) for row in rows) for name in ("clicks", "impressions"))
    places = sum(float(row.get("position") or 0) * float(row.get("impressions") or 0) for row in rows)
    return Figures(
        round(clicks), round(seen), round(clicks / seen, 4) if seen else 0.0, round(places / seen, 2) if seen else 0.0
    )
