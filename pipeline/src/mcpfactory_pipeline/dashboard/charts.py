"""Geometry of the drawings: numbers in, places on a canvas out. Pure; the templates draw them as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mcpfactory_pipeline.dashboard.runs import RunStep
from mcpfactory_pipeline.dashboard.trends import TrendMark

__all__ = [
    "AxisTick",
    "Bar",
    "ChartMark",
    "GanttChart",
    "LaneChart",
    "LineChart",
    "TimeAxis",
    "figure",
    "gantt",
    "lanes",
    "line",
    "time_axis",
]

# of a Gantt chart: all of it, what the names have, one row
_WIDTH: Final = 1000.0
_NAMES: Final = 230.0
_ROW: Final = 20.0
_LEAST: Final = 2.0  # the width of a bar that would be too small to be seen
_CHART: Final = (330.0, 110.0)  # of a line chart: as many pixels as it has on a page, so that its text has its size
_LANE: Final = 30.0  # the height of a row of bars
_BAR: Final = 5.0  # the width of one of them
_SIGN: Final = 12.0  # the width of a mark, with what is between two
_ROWS: Final = 4  # of marks
_DAY: Final = 86_400.0  # seconds
_TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A place on an axis, with its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One step on a Gantt chart."""

    step: RunStep
    x: float
    y: float
    width: float
    label: str  # "" where the row above is of the same server


@dataclass(frozen=True, slots=True)
class GanttChart:
    """A Gantt chart: one row a step."""

    width: float
    height: float
    left: float
    row: float
    bars: tuple[Bar, ...]
    ticks: tuple[AxisTick, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """A line chart: `path` through the values that are known, `dots` at each, `ticks` of the vertical axis."""

    width: float
    height: float
    path: str
    dots: tuple[tuple[float, float], ...]
    ticks: tuple[AxisTick, ...]


@dataclass(frozen=True, slots=True)
class LaneChart:
    """A row of bars: each its place from the left and from the top, its height, and its number."""

    width: float
    height: float
    bar: float
    bars: tuple[tuple[float, float, float, int], ...]


@dataclass(frozen=True, slots=True)
class ChartMark:
    """Something that happened, on the axis of time. `row` counts from the axis up: what would lie upon others is above them."""

    x: float
    mark: TrendMark
    row: int = 0


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Where each moment is, from left to right in time; its ticks, and the marks on it."""

    places: tuple[float, ...]
    ticks: tuple[AxisTick, ...]
    marks: tuple[ChartMark, ...]

    @property
    def rows(self) -> int:
        """How many rows of marks there are."""
        return 1 + max((one.row for one in self.marks), default=0)


def gantt(steps: Sequence[RunStep], seconds: float) -> GanttChart:
    """Return the steps of a run that took so many seconds, from left to right in time."""
    scale = (_WIDTH - _NAMES) / max(seconds, 0.001)
    bars, before = [], ""
    for number, step in enumerate(steps):
        x = min(_NAMES + step.start * scale, _WIDTH - _LEAST)
        length = step.seconds if step.seconds is not None else max(0.0, seconds - step.start)
        width = min(max(length * scale, _LEAST), _WIDTH - x)
        bars.append(
            Bar(step, round(x, 1), number * _ROW, round(width, 1), "" if step.server == before else step.server)
        )
        before = step.server
    ticks = tuple(
        AxisTick(round(_NAMES + (_WIDTH - _NAMES) * part / _TICKS, 1), f"{seconds * part / _TICKS:.1f} s")
        for part in range(_TICKS + 1)
    )
    return GanttChart(_WIDTH, len(bars) * _ROW + _ROW, _NAMES, _ROW, tuple(bars), ticks)


def time_axis(at: Sequence[str], marks: Sequence[TrendMark] = ()) -> TimeAxis:
    """Return where moments (or days) are that are not empty; one alone is in the middle. What is marked later makes the axis longer."""
    moments, marked = [_seconds(one) for one in at], [_seconds(mark.at) for mark in marks]
    first, last = min(moments), max(*moments, *marked, moments[0])
    width, span = _CHART[0], last - first

    def place(moment: float) -> float:
        return round((moment - first) / span * width, 1) if span else width / 2

    ends = [first, (first + last) / 2, last] if span else [first]
    days = all(len(one) == len("2026-01-01") for one in at)
    style = "%Y-%m-%d" if days or span > 2 * _DAY else "%m-%d %H:%M"
    texts = [datetime.fromtimestamp(moment, UTC).strftime(style) for moment in ends]
    ticks = {text: AxisTick(place(moment), text) for moment, text in zip(ends, texts, strict=True)}
    places = tuple(place(moment) for moment in moments)
    spots = [place(one) for one in marked]
    return TimeAxis(places, tuple(ticks.values()), tuple(map(ChartMark, spots, marks, _rows(spots))))


def _rows(spots: Sequence[float]) -> list[int]:
    """Return for each mark the lowest row in which it lies upon no other; where there is none, that with the most room."""
    ends, rows = [-_SIGN] * _ROWS, [0] * len(spots)
    for number in sorted(range(len(spots)), key=spots.__getitem__):
        x = spots[number]
        free = (row for row, end in enumerate(ends) if x - end >= _SIGN)
        rows[number] = row = next(free, min(range(_ROWS), key=ends.__getitem__))
        ends[row] = x
    return rows


def _seconds(at: str) -> float:
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def line(places: Sequence[float], values: Sequence[float | None], *, from_zero: bool = False) -> LineChart:
    """Return values at their places, from the lowest (or zero) to the highest that is known; None is passed over."""
    width, height = _CHART
    known = [(x, value) for x, value in zip(places, values, strict=True) if value is not None]
    low, high = (min(value for _, value in known), max(value for _, value in known)) if known else (0.0, 0.0)
    low = min(low, 0.0) if from_zero else low
    flat = high == low

    def above(value: float) -> float:
        return round(height * (0.5 if flat and not from_zero else 1 - (value - low) / ((high - low) or 1.0)), 1)

    dots = tuple((x, above(value)) for x, value in known)
    path = "L".join(f"{x} {y}" for x, y in dots)
    ticks = tuple(AxisTick(above(value), figure(value)) for value in sorted({low, high}))
    return LineChart(width, height, f"M{path}" if dots else "", dots, ticks if known else ())


def figure(value: float) -> str:
    """Return a figure in as many digits as say something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{round(value, 2):g}"


def lanes(places: Sequence[float], values: Sequence[int]) -> LaneChart:
    """Return a bar for each number that is not zero, the highest as high as the row."""
    most = max(values, default=0) or 1
    bars = []
    for x, value in zip(places, values, strict=True):
        high = round(max(_LEAST, value / most * (_LANE - 4)), 1)
        if value:
            bars.append((round(x - _BAR / 2, 1), round(_LANE - high, 1), high, value))
    return LaneChart(_CHART[0], _LANE, _BAR, tuple(bars))
