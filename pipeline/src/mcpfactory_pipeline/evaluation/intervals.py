"""Intervals of shares: within what bounds the truth lies when so many of so many passed. Pure.

A question is what was sampled, and not each time that it was asked: answers to one question are alike, so repetitions make the
share of one question surer and do not narrow the interval of all of them. More questions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, StatisticsError, correlation
from typing import Final

from mcpfactory_pipeline.base.records import JsonRecord

__all__ = ["PassRate", "RateDifference", "difference", "mean_rate", "wilson"]

_CONFIDENCE: Final = 0.95
_Z: Final = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)


class _Rounded(JsonRecord):
    __slots__ = ()

    def to_json(self) -> dict[str, float]:
        """Return the figures with four decimals."""
        return {name: round(value, 4) for name, value in super().to_json().items()}


@dataclass(frozen=True, slots=True)
class PassRate(_Rounded):
    """A share between 0 and 1, and the interval that holds it with 95 %; `questions` is how many it rests on."""

    rate: float
    lower: float
    upper: float
    questions: int

    @property
    def words(self) -> str:
        """As people read it: `83% (55–95%)`."""
        return f"{self.rate:.0%} ({100 * self.lower:.0f}–{self.upper:.0%})"


@dataclass(frozen=True, slots=True)
class RateDifference(_Rounded):
    """How much higher the newer of two shares is, with the interval of the difference; `questions` are those that both answered."""

    change: float
    lower: float
    upper: float
    questions: int

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.lower > 0 or self.upper < 0

    @property
    def words(self) -> str:
        """As people read it: `+12 points (-3 to +27)`."""
        return f"{100 * self.change:+.0f} points ({100 * self.lower:+.0f} to {100 * self.upper:+.0f})"


def wilson(passed: float, tried: int) -> PassRate:
    """Return the share of `passed` among `tried` with its Wilson interval; nothing tried says nothing: 0 to 1."""
    if tried <= 0:
        return PassRate(0.0, 0.0, 1.0, 0)
    share, square = passed / tried, _Z * _Z
    middle = (share + square / (2 * tried)) / (1 + square / tried)
    half = _Z / (1 + square / tried) * sqrt(share * (1 - share) / tried + square / (4 * tried * tried))
    return PassRate(share, max(0.0, middle - half), min(1.0, middle + half), tried)


def mean_rate(shares: Sequence[float]) -> PassRate:
    """Return the mean of the shares of several questions: Wilson's interval over the questions."""
    return wilson(sum(shares), len(shares))


def difference(before: Sequence[float], after: Sequence[float]) -> RateDifference:
    """Return how the shares of the same questions, in the same order, differ (Newcombe's interval for pairs)."""
    old, new = mean_rate(before), mean_rate(after)
    if not before:
        return RateDifference(0.0, -1.0, 1.0, 0)
    try:
        tied = correlation(before, after)
    except StatisticsError:  # of one question, or one of the rows never changes
        tied = 0.0
    change = new.rate - old.rate
    down, up = (new.rate - new.lower, old.upper - old.rate), (new.upper - new.rate, old.rate - old.lower)
    return RateDifference(
        change, max(-1.0, change - _joined(*down, tied)), min(1.0, change + _joined(*up, tied)), len(before)
    )


def _joined(first: float, second: float, tied: float) -> float:
    return sqrt(max(0.0, first * first - 2 * tied * first * second + second * second))
