"""Tests of changes between snapshots, and of ignored noise."""

from __future__ import annotations

import pytest
import upstream

from competitor_research_mcp.changes import compare_snapshots, snapshot
from competitor_research_mcp.page import read_page

PRICING = upstream.PRICING


def changes(before: str, after: str) -> list[tuple[str, str, str, str, str]]:
    first, second = (snapshot(read_page(html, "https://acme.example/pricing")) for html in (before, after))
    return [(one.kind, one.what, one.where, one.before, one.after) for one in compare_snapshots(first, second)]


def test_the_same_page_has_not_changed() -> None:
    assert changes(PRICING, PRICING) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Updated 2 days ago", "Updated 3 days ago"),
        ("Today is Nov 3, 2026", "Today is Nov 4, 2026"),
        ("2026-11-03 10:00", "2026-11-04 11:30"),
        ("1,204 stars", "1,301 stars"),
        ("© 2025 Acme", "© 2026 Acme"),
    ],
)
def test_noise_is_no_change(before: str, after: str) -> None:
    assert changes(f"<h1>A</h1><p>{before}</p>", f"<h1>A</h1><p>{after}</p>") == []


def test_a_price_that_changed_is_told_first_with_both_amounts() -> None:
    found = changes(PRICING, PRICING.replace("<span>29</span>", "<span>35</span>"))
    assert found[0] == (
        "price",
        "changed",
        "Team",
        "29 USD a month for each user (billed annually)",
        "35 USD a month for each user (billed annually)",
    )
    assert ("section", "changed", "Team", "$29", "$35") in found


def test_a_plan_that_is_gone_and_one_that_is_new() -> None:
    found = changes(PRICING, PRICING.replace("<h2>Starter</h2>", "<h2>Solo</h2>"))
    assert ("price", "removed", "Starter", "free", "") in found
    assert ("price", "added", "Solo", "", "free") in found
    assert ("section", "removed", "Starter", "Free\n- 2 people", "") in found


def test_words_of_a_section_and_the_title() -> None:
    found = changes(
        "<title>A</title><h2>Features</h2><p>one</p><p>two</p>",
        "<title>B</title><h2>Features</h2><p>one</p><p>three</p>",
    )
    assert found == [("title", "changed", "", "A", "B"), ("section", "changed", "Features", "two", "three")]


def test_two_sections_of_one_heading_are_kept_apart() -> None:
    page = "<h2>FAQ</h2><p>one</p><h2>FAQ</h2><p>{}</p>"
    assert changes(page.format("two"), page.format("three")) == [("section", "changed", "FAQ", "two", "three")]


def test_technology() -> None:
    script = '<script src="https://js.stripe.com/v3/"></script>'
    assert changes("<h1>A</h1>", f"<h1>A</h1>{script}") == [("technology", "added", "Stripe", "", "")]


def test_a_long_change_is_cut() -> None:
    lines = "".join(f"<p>line {'x' * number}</p>" for number in range(40))
    assert changes("<h1>A</h1>", f"<h1>A</h1>{lines}")[0][4].endswith("… and 28 more lines")
