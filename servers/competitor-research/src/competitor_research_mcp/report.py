"""Markdown reports: one competitor, all competitors, and a comparison table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .changes import Change, show_price
from .prices import Price
from .profile import Profile

__all__ = ["ReportPage", "compare_table", "report_all", "report_one"]

_MOST: Final = 40  # rows per list


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A watched page with its newest snapshot, and its changes as (time, changes), the newest first."""

    url: str
    kind: str
    checked: str
    problem: str
    snapshot: dict[str, Any] = field(default_factory=dict)
    changes: Sequence[tuple[str, Sequence[Change]]] = ()


def report_one(competitor: str, pages: Sequence[ReportPage]) -> str:
    """Return the report on one competitor: prices, changes, pages, technology, sources."""
    prices = [Price.model_validate(one) for page in pages for one in page.snapshot.get("prices", ())]
    changes = sorted(
        ((when, page.url, change) for page in pages for when, some in page.changes for change in some),
        key=_when,
        reverse=True,
    )
    technology = sorted({name for page in pages for name in page.snapshot.get("technology", ())})
    lines = [f"# {_plain(competitor)}", ""]
    lines += ["## Prices", "", *(_price_lines(prices) or ["The watched pages show no prices."]), ""]
    lines += ["## Changes", "", *(_change_line(*one) for one in changes[:_MOST])]
    lines += ["" if changes else "None seen since the pages are watched.\n", "## Pages", ""]
    for page in pages:
        title = _plain(str(page.snapshot.get("title", ""))) or page.url
        lines.append(f"- **{page.kind}**: {title}. {_plain(str(page.snapshot.get('description', '')))}".rstrip())
    lines += ["", "## Technology", "", ", ".join(technology) or "Nothing that the pages give away.", ""]
    lines += ["## Sources", "", *(f"- <{page.url}>, {_state(page)}" for page in pages)]
    return "\n".join(lines) + "\n"


def report_all(competitors: Sequence[tuple[str, Sequence[ReportPage]]]) -> str:
    """Return an overview of all watched competitors."""
    lines = [
        "# Competitors",
        "",
        "| competitor | pages | lowest price | last change | last check |",
        "|---|---|---|---|---|",
    ]
    for name, pages in competitors:
        prices = [Price.model_validate(one) for page in pages for one in page.snapshot.get("prices", ())]
        paid = sorted((one for one in prices if one.amount), key=lambda one: one.amount or 0.0)
        last = max((when for page in pages for when, _ in page.changes), default="none seen")
        checked = max((page.checked for page in pages), default="") or "never"
        lowest = show_price(paid[0]) if paid else "–"
        lines.append(f"| {_cell(name)} | {len(pages)} | {_cell(lowest)} | {last} | {checked} |")
    if not competitors:
        lines = ["# Competitors", "", "Nothing is watched yet; the tool watch_competitor begins it."]
    return "\n".join(lines) + "\n"


def compare_table(profiles: Sequence[Profile]) -> str:
    """Return a table that compares competitors."""
    rows: list[tuple[str, list[str]]] = [
        ("site", [one.url for one in profiles]),
        ("headline", [one.headline or one.title for one in profiles]),
        ("description", [one.description for one in profiles]),
        ("prices", ["; ".join(_named(price) for price in one.prices[:8]) for one in profiles]),
        ("free plan", ["yes" if any(price.amount == 0 for price in one.prices) else "not shown" for one in profiles]),
        (
            "price on request",
            ["yes" if any(price.amount is None for price in one.prices) else "not shown" for one in profiles],
        ),
        ("products", [", ".join(product.name for product in one.products[:5]) for one in profiles]),
        ("pages", [", ".join(page.kind for page in one.pages if not page.problem) for one in profiles]),
        ("technology", [", ".join(tech.name for tech in one.technology) for one in profiles]),
        ("language", [one.language for one in profiles]),
    ]
    head = f"| | {' | '.join(_cell(one.name) for one in profiles)} |"
    body = [
        f"| {name} | {' | '.join(_cell(value)[:400] or '–' for value in values)} |"
        for name, values in rows
        if any(values)
    ]
    return "\n".join([head, f"|---{'|---' * len(profiles)}|", *body]) + "\n"


def _price_lines(prices: Sequence[Price]) -> list[str]:
    if not prices:
        return []
    rows = [f"| {_cell(one.plan) or '–'} | {_cell(show_price(one))} |" for one in prices[:_MOST]]
    return ["| plan | price |", "|---|---|", *dict.fromkeys(rows)]


def _named(price: Price) -> str:
    return f"{price.plan}: {show_price(price)}" if price.plan else show_price(price)


def _change_line(when: str, url: str, change: Change) -> str:
    where = f" “{_plain(change.where)}”" if change.where else ""
    detail = (
        f": {_short(change.before) or '–'} → {_short(change.after) or '–'}" if change.before or change.after else ""
    )
    return f"- {when[:10]} {change.kind}{where} {change.what}{detail} (<{url}>)"


def _state(page: ReportPage) -> str:
    if page.problem:
        return f"could not be read on {page.checked[:10]}: {_short(page.problem)}"
    return f"read {page.checked[:16].replace('T', ' ')}" if page.checked else "not read yet"


def _when(one: tuple[str, str, Change]) -> str:
    return one[0]


def _short(text: str) -> str:
    plain = _plain(text)
    return plain if len(plain) <= 160 else f"{plain[:159]}…"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _plain(text).replace("|", "/")
