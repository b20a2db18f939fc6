"""Tool that compares metrics of two periods, and a check of times."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from mcpfactory_runtime import Context, ToolCall, ToolError

from .answers import amount, rows, time

__all__ = ["check_times", "compare_periods"]

_TIMES: Final = ("start", "end", "startTime", "endTime")
_FIGURES: Final = ("responses", "contacts", "bookings", "revenue")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of both periods; `change` is in percent, or None if the earlier figure is 0."""

    name: str
    now: float
    before: float
    change: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of two periods of equal length; both end days are included."""

    period: str
    period_before: str
    figures: list[Figure]


def check_times(call: ToolCall) -> None:
    """Refuse invalid times. CloseBot returns an unhelpful error or an empty result for them.

    Raises:
        ToolError: a time is not ISO 8601.
    """
    for name in _TIMES:
        value = call.arguments.get(name)
        if isinstance(value, str) and time(value) is None:
            raise ToolError(
                f"Nothing was asked: {name} is {value[:40]!r}.\nhint: a time has the form 2026-11-01T00:00:00Z"
            )


async def compare_periods(start: date, end: date, ctx: Context, sourceId: str = "") -> Comparison:
    """Compare answers, contacts, bookings, revenue and bookings per hundred contacts with the days just before.

    Args:
        start: first day of the period.
        end: last day of the period.
        sourceId: only figures of this source.
    """
    if end < start:  # the API would return an empty result, as if there had been no activity
        raise ToolError(f"The last day, {end}, is before the first, {start}.")
    days = (end - start).days + 1
    earlier = (start - timedelta(days), start - timedelta(1))

    async def summed(figure: str, first: date, last: date) -> float:
        asked: dict[str, Any] = {"sourceId": sourceId} if sourceId else {}
        series = await ctx.call(
            "get_metric",
            metric=figure,
            resolution="daily",
            start=f"{first}T00:00:00Z",
            end=f"{last + timedelta(1)}T00:00:00Z",
            **asked,
        )
        return float(sum(amount(point, "value") for point in rows(series, "get_metric")))

    sums = await asyncio.gather(*(summed(figure, *period) for figure in _FIGURES for period in ((start, end), earlier)))
    found = {name: (sums[2 * number], sums[2 * number + 1]) for number, name in enumerate(_FIGURES)}
    found["bookings per 100 contacts"] = (
        _share(found["bookings"][0], found["contacts"][0]),
        _share(found["bookings"][1], found["contacts"][1]),
    )
    figures = [
        Figure(name, now, before, round(100 * (now - before) / before, 1) if before else None)
        for name, (now, before) in found.items()
    ]
    return Comparison(f"{start} to {end}", f"{earlier[0]} to {earlier[1]}", figures)


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
