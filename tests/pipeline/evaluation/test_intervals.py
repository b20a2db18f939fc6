"""Intervals hold what they promise, and neither repetitions nor luck make them narrower than the questions allow."""

from __future__ import annotations

from math import comb

import pytest

from mcpfactory_pipeline.checks.evaluation.model_report import mean_rate, pass_rate_difference, wilson_pass_rate
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "passed, tried, lower, upper",
    [  # from published tables of the Wilson score interval
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_of_a_share_is_wilsons(passed, tried, lower, upper):
    found = wilson_pass_rate(passed, tried)
    assert (round(found.lower, 4), round(found.upper, 4)) == (lower, upper)
    assert found.rate == passed / tried


@pytest.mark.parametrize("truth", [0.3, 0.6, 0.9])
def test_about_95_of_100_intervals_hold_the_truth(truth):
    held = sum(
        comb(40, passed) * truth**passed * (1 - truth) ** (40 - passed)
        for passed in range(41)
        if wilson_pass_rate(passed, 40).lower <= truth <= wilson_pass_rate(passed, 40).upper
    )
    assert 0.92 < held < 0.98


def test_asking_a_question_more_often_does_not_narrow_the_interval_and_more_questions_do():
    assert mean_rate([1.0] * 8) == wilson_pass_rate(8, 8)
    assert mean_rate([2 / 3] * 9).lower == pytest.approx(wilson_pass_rate(6, 9).lower)
    assert mean_rate([1.0] * 30).lower > mean_rate([1.0] * 8).lower > mean_rate([1.0] * 7 + [0.9]).lower


@pytest.mark.parametrize(
    ("both", "first", "second", "neither", "lower", "upper"),
    [
        (36, 12, 2, 0, 0.0569, 0.3404),  # an example of Newcombe (1998), squares and sums
        (2, 14, 14, 20, -0.2028, 0.2028),  # as often one way as the other: the same on both sides
    ],
)
def test_the_difference_of_pairs_is_newcombes(*, both, first, second, neither, lower, upper):
    after = [1.0] * (both + first) + [0.0] * (second + neither)
    before = [1.0] * both + [0.0] * first + [1.0] * second + [0.0] * neither
    found = pass_rate_difference(before, after)
    assert (round(found.lower, 2), round(found.upper, 2)) == (round(lower, 2), round(upper, 2))
    assert found.sure is (lower > 0 or upper < 0)


def test_what_did_not_change_may_be_chance_and_what_turned_over_is_not():
    same = pass_rate_difference([1, 1, 0, 1], [1, 1, 0, 1])
    assert (same.change, same.sure) == (0.0, False)
    assert pass_rate_difference([1.0] * 12, [0.0] * 12).sure
    assert not pass_rate_difference([], []).sure
