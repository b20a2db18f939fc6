"""The table of templates in the reference: a row is drawn anew, the others stay, and what is no template any more goes."""

from __future__ import annotations

import re

import pytest

from benchmarks.exam.templates import LEAST, Made, drawn

PAGE = "before\n<!-- drawn by: python -m benchmarks.exam templates --page -->\n{}<!-- end -->\nafter\n"
GOOD = Made("time", "staging", 99, "12 passed", 41.6)


def test_a_row_is_drawn_and_those_of_other_templates_stay() -> None:
    page = drawn(PAGE.format(""), GOOD, ["app", "time"])
    page = drawn(page, Made("app", "test", 0, "1 of 5 tests failed: a", 3), ["app", "time"])
    page = drawn(page, GOOD._replace(score=98), ["app", "time"])
    rows = [re.sub(r" \| \d+ \| \d{4}-\d\d-\d\d \|$", "", line) for line in page.splitlines() if line.startswith("| `")]
    assert rows == ["| `app` | test | 0 | 1 of 5 tests failed: a | 3", "| `time` | staging | 98 | 12 passed | 42"]
    assert (page.startswith("before\n"), page.endswith("<!-- end -->\nafter\n")) == (True, True)


def test_the_row_of_a_template_that_is_gone_goes() -> None:
    page = drawn(PAGE.format(""), Made("old", "staging", 99, "1 passed", 1), ["old"])
    assert "`old`" not in drawn(page, GOOD, ["time"])


@pytest.mark.parametrize(
    ("stage", "score", "good"), [("staging", LEAST, True), ("staging", LEAST - 1, False), ("test", 99, False)]
)
def test_good_is_staging_with_the_score_that_is_wanted(stage: str, score: int, good: bool) -> None:
    assert Made("time", stage, score, "", 1).good == good
