"""Tests of totals, changes, opportunities and competing pages."""

from __future__ import annotations

from datetime import date

import pytest

from google_search_console_mcp.days import Period, earlier, latest
from google_search_console_mcp.figures import Figures, changes, competing, opportunities, read_rows, total


def test_a_total_weighs_positions_by_how_often_they_were_seen() -> None:
    assert total([Figures(1, 10, 0.1, 2.0), Figures(3, 30, 0.1, 6.0)]) == Figures(4, 40, 0.1, 5.0)
    assert total([]) == Figures(0, 0, 0.0, 0.0)


def test_rows_are_read_by_their_keys() -> None:
    answer = {"rows": [{"keys": ["tea"], "clicks": 2.0, "impressions": 8.0, "ctr": 0.25, "position": 3.14159}]}
    assert read_rows(answer) == {("tea",): Figures(2, 8, 0.25, 3.14)}
    assert read_rows({"responseAggregationType": "byPage"}) == {}


def test_changes_know_what_came_and_what_went() -> None:
    one, two = Figures(5, 50, 0.1, 1.0), Figures(2, 20, 0.1, 1.0)
    found = changes({("new",): one, ("same",): two}, {("gone",): one, ("same",): two})
    assert [(change.key, change.clicks_change) for change in found] == [("new", 5), ("same", 0), ("gone", -5)]
    assert (found[0].before, found[2].now) == (None, None)


def test_opportunities_are_between_the_positions_and_often_seen() -> None:
    rows = {
        ("a", "/a"): Figures(0, 100, 0, 3.99),
        ("b", "/b"): Figures(0, 60, 0, 4.0),
        ("c", "/c"): Figures(0, 90, 0, 20.0),
        ("d", "/d"): Figures(0, 49, 0, 10.0),
    }
    assert [one.query for one in opportunities(rows, first=4, last=20, least=50)] == ["c", "b"]


def test_a_page_competes_with_a_tenth_of_the_impressions() -> None:
    rows = {
        ("tea", "/a"): Figures(1, 90, 0, 2.0),
        ("tea", "/b"): Figures(1, 10, 0, 9.0),
        ("oolong", "/a"): Figures(1, 95, 0, 2.0),
        ("oolong", "/b"): Figures(1, 5, 0, 9.0),
    }
    (found,) = competing(rows, least=100)
    assert (found.query, [(page.page, page.share) for page in found.pages]) == ("tea", [("/a", 0.9), ("/b", 0.1)])
    assert competing(rows, least=101) == []


def test_the_latest_days_are_complete_and_a_year_ago_has_the_same_days_of_the_week() -> None:
    period = latest(7, date(2026, 11, 23))
    assert (period, period.days) == (Period(date(2026, 11, 14), date(2026, 11, 20)), 7)
    assert earlier(period, "previous") == Period(date(2026, 11, 7), date(2026, 11, 13))
    assert earlier(period, "year") == Period(date(2025, 11, 15), date(2025, 11, 21))
    assert earlier(period, "year").first.weekday() == period.first.weekday()
    with pytest.raises(ValueError, match="before it begins"):
        Period(date(2026, 1, 2), date(2026, 1, 1))
