"""The verdict about a template in the examination."""

from __future__ import annotations

import pytest

from benchmarks.exam.templates import LEAST, Made


@pytest.mark.parametrize(
    ("stage", "score", "good"), [("staging", LEAST, True), ("staging", LEAST - 1, False), ("test", 99, False)]
)
def test_good_is_staging_with_the_score_that_is_wanted(stage: str, score: int, good: bool) -> None:
    assert Made("time", stage, score, "", 1).good == good
