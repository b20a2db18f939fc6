"""Figures of Search Analytics: summed, compared, and searched for what is worth doing. Pure."""

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

_PART: Final = 0.1  # of a query's impressions: a page with less does not compete


@dataclass(frozen=True, slots=True)
class Figures:
    """Clicks, impressions, clicks by impressions (0 to 1), and the average position, 1 being the first."""

    clicks: int
    impressions: int
    ctr: float
    position: float


@dataclass(frozen=True, slots=True)
class Change:
    """One query, page, country or device in two periods; what is missing in one has no figures there."""

    key: str
    clicks: int
    clicks_change: int
    now: Figures | None
    before: Figures | None


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A query that is nearly on the first page, with its page."""

    query: str
    page: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class PageShare:
    """One of several pages for a query; `share` is its part of the query's impressions, 0 to 1."""

    page: str
    share: float
    figures: Figures


@dataclass(frozen=True, slots=True)
class CompetingPages:
    """A query for which several pages of the property are shown."""

    query: str
    impressions: int
    pages: list[PageShare]


def read_rows(answer: Mapping[str, Any]) -> dict[tuple[str, ...], Figures]:
    """Return the rows of an answer by their keys."""
    rows = answer.get("rows") or ()
    return {tuple(row.get("keys") or ()): _figures([row]) for row in rows if isinstance(row, Mapping)}


def total(rows: Iterable[Figures]) -> Figures:
    """Sum figures; a position counts as often as it was seen."""
    return _figures([{"clicks": one.clicks, "impressions": one.impressions, "position": one.position} for one in rows])


def changes(now: Mapping[tuple[str, ...], Figures], before: Mapping[tuple[str, ...], Figures]) -> list[Change]:
    """Return what is in either period, by how many clicks it won or lost, and then by its name."""
    found = []
    for key in now.keys() | before.keys():
        one, other = now.get(key), before.get(key)
        clicks = one.clicks if one else 0
        found.append(Change(key[0], clicks, clicks - (other.clicks if other else 0), one, other))
    return sorted(found, key=lambda change: (-change.clicks_change, change.key))


def opportunities(
    rows: Mapping[tuple[str, ...], Figures], *, first: float, last: float, least: int
) -> list[Opportunity]:
    """Return rows of (query, page) between two positions with at least so many impressions, most impressions first."""
    found = [
        Opportunity(query, page, figures)
        for (query, page), figures in rows.items()
        if first <= figures.position <= last and figures.impressions >= least
    ]
    return sorted(found, key=lambda one: (-one.figures.impressions, one.query, one.page))


def competing(rows: Mapping[tuple[str, ...], Figures], *, least: int) -> list[CompetingPages]:
    """Return the queries of (query, page) rows for which two pages or more have a tenth of the impressions each."""
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
