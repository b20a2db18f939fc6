"""Comparison of two snapshots of a page: prices, title and description, sections, technology.

Text that changes on every visit (dates, "3 days ago", counters, years in footers) is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from .page import Page
from .prices import Price

__all__ = ["Change", "compare_snapshots", "show_price", "snapshot"]

_NOISE: Final = re.compile(
    r"\b\d{4}-\d\d?-\d\d?(?:[T ][\d:.]+Z?)?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:,?\s+\d{4})?\b|\b(?:19|20)\d\d\b"
    r"|\b\d+\s+(?:second|minute|hour|day|week|month|year)s?\s+ago\b|\b(?:yesterday|just now|today)\b"
    r"|\b[\d.,]+[km]?\s+(?:views?|visitors?|online|likes?|stars?|followers?|downloads?)\b",
    re.IGNORECASE,
)
_MOST_LINES: Final = 400  # lines per section in a snapshot
_LONGEST: Final = 5_000  # characters per line
_SHOWN: Final = 12  # lines shown per change

Kind = Literal["price", "title", "description", "section", "technology"]


class Change(BaseModel):
    """A change of a page."""

    kind: Kind
    what: Literal["added", "removed", "changed"]
    where: str = Field(default="", description="plan, section heading, or technology")
    before: str = ""
    after: str = ""


def snapshot(page: Page) -> dict[str, Any]:
    """Return the snapshot of a page."""
    sections = [
        {"heading": one.heading, "level": one.level, "lines": [line[:_LONGEST] for line in one.lines[:_MOST_LINES]]}
        for one in page.sections[:300]
    ]
    return {
        "title": page.metadata.title,
        "description": page.metadata.description,
        "sections": sections,
        "prices": [price.model_dump() for price in page.prices],
        "technology": [one.name for one in page.technology],
    }


def compare_snapshots(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the changes between two snapshots, prices first."""
    return [
        *_prices(before.get("prices", ()), after.get("prices", ())),
        *_texts(before, after),
        *_sections(before.get("sections", ()), after.get("sections", ())),
        *_technology(before.get("technology", ()), after.get("technology", ())),
    ]


def _prices(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Change]:
    old, new = _by_key(before), _by_key(after)
    for key, prices in new.items():
        was, now = _shown(old.get(key, [])), _shown(prices)
        if was != now:
            yield Change(kind="price", what="changed" if was else "added", where=prices[0].plan, before=was, after=now)
    for key, prices in old.items():
        if key not in new:
            yield Change(kind="price", what="removed", where=prices[0].plan, before=_shown(prices))


def _by_key(prices: Sequence[Any]) -> dict[tuple[str, ...], list[Price]]:
    found: dict[tuple[str, ...], list[Price]] = {}
    for one in prices:
        price = Price.model_validate(one)
        found.setdefault(price.key, []).append(price)
    return found


def _shown(prices: Sequence[Price]) -> str:
    return "; ".join(show_price(price) for price in prices)


def show_price(price: Price) -> str:
    """Format a price, such as "29 USD a month for each user"."""
    if price.amount is None:
        return "on request"
    if price.amount == 0 and not price.currency:
        return "free"
    amount = f"{price.amount:g}" if price.amount == int(price.amount) and price.amount < 1e6 else f"{price.amount:.2f}"
    highest = f"–{price.highest:g}" if price.highest is not None else ""
    words = [f"{amount}{highest}", price.currency]
    words += [price.period if price.period == "once" else f"a {price.period}"] if price.period else []
    words += [f"for each {price.unit}"] if price.unit else []
    words += [f"(billed {price.billed})"] if price.billed else []
    return " ".join(word for word in words if word)


def _texts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    kinds: tuple[Kind, ...] = ("title", "description")
    for kind in kinds:
        was, now = str(before.get(kind, "")), str(after.get(kind, ""))
        if _quiet(was) != _quiet(now):
            yield Change(
                kind=kind, what="changed" if was and now else "added" if now else "removed", before=was, after=now
            )


def _sections(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Change]:
    old, new = _by_heading(before), _by_heading(after)
    for heading, lines in new.items():
        if heading not in old:
            yield Change(kind="section", what="added", where=heading[0], after=_lines(lines))
        elif any(removed_added := _difference(old[heading], lines)):
            removed, added = removed_added
            yield Change(kind="section", what="changed", where=heading[0], before=_lines(removed), after=_lines(added))
    for heading, lines in old.items():
        if heading not in new:
            yield Change(kind="section", what="removed", where=heading[0], before=_lines(lines))


def _by_heading(sections: Sequence[Any]) -> dict[tuple[str, int], list[str]]:
    """Return the lines of each section by heading and its index among equal headings."""
    found: dict[tuple[str, int], list[str]] = {}
    counts: dict[str, int] = {}
    for section in sections:
        heading = str(section["heading"])
        key = _quiet(heading)
        counts[key] = counts.get(key, 0) + 1
        found[heading if counts[key] == 1 and heading == key else key or heading, counts[key]] = [
            str(line) for line in section["lines"]
        ]
    return found


def _difference(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    removed: list[str] = []
    added: list[str] = []
    matcher = SequenceMatcher(None, [_quiet(line) for line in before], [_quiet(line) for line in after], autojunk=False)
    for tag, start, end, begin, stop in matcher.get_opcodes():
        if tag != "equal":
            removed += before[start:end]
            added += after[begin:stop]
    return removed, added


def _technology(before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    for name in sorted(set(after) - set(before)):
        yield Change(kind="technology", what="added", where=name)
    for name in sorted(set(before) - set(after)):
        yield Change(kind="technology", what="removed", where=name)


def _quiet(text: str) -> str:
    return " ".join(_NOISE.sub("#", text).split())


def _lines(lines: list[str]) -> str:
    more = [f"… and {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
    return "\n".join([*(line[:300] for line in lines[:_SHOWN]), *more])
