"""Geometry of the drawings: numbers in, places on a canvas out. Pure; the templates draw them as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.dashboard.runs import RunStep

# of a Gantt chart: all of it, what the names have, one row
_WIDTH: Final = 1000.0
_NAMES: Final = 230.0
_ROW: Final = 20.0
_LEAST: Final = 2.0  # the width of a bar that would be too small to be seen
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
