"""How score, duration, tools and tokens went over time: of one server by its runs, of a workspace by days. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.state.state import Event

__all__ = ["Series", "TrendsPage", "trends_page"]

_POINTS: Final = 90  # shown, the newest

_Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One figure over time: a value for each moment of `Trends.at`, None where it was not known yet."""

    name: str
    unit: str
    about: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TrendsPage:
    """Figures over time, oldest first. `server` is "" for the whole workspace, where `at` are days."""

    workspace: str
    server: str
    at: tuple[str, ...]
    series: tuple[Series, ...]


def trends_page(workspace: str, histories: Mapping[str, Sequence[Event]], *, server: str = "") -> TrendsPage:
    """Return the trends of one server, or of all together."""
    points = _of_runs(histories.get(server, ())) if server else _of_days(histories)
    shown = points[-_POINTS:]
    about = _ONE if server else _ALL
    return TrendsPage(
        workspace,
        server,
        tuple(at for at, _ in shown),
        tuple(Series(key, unit, text, tuple(figures.get(key) for _, figures in shown)) for key, unit, text in about),
    )


_ONE: Final = (
    ("score", "of 100", "what the validation gave"),
    ("duration", "s", "what the stages of a run took together"),
    ("tools", "", "tools of the candidate"),
    ("tokens", "", "tokens of all tools together, in every conversation"),
)
_ALL: Final = (
    ("score", "of 100", "the mean over all servers that have one"),
    ("duration", "s", "what all stages of the day took together"),
    ("tools", "", "of all servers together"),
    ("tokens", "", "of all servers together"),
)


def _of_runs(events: Iterable[Event]) -> list[tuple[str, _Figures]]:
    """Return a point for each run of a server, with the newest figures that were known at its end."""
    points: dict[str, tuple[str, _Figures]] = {}
    known: _Figures = {}
    for event in events:
        run = str(event.get("run") or "")
        if event["event"] != "stage.finished" or not run:
            continue
        known |= _found(event)
        spent = points.get(run, ("", {}))[1].get("duration", 0.0) + float(event.get("seconds") or 0.0)
        points[run] = (str(event["at"]), {**known, "duration": round(spent, 3)})
    return list(points.values())


def _of_days(histories: Mapping[str, Sequence[Event]]) -> list[tuple[str, _Figures]]:
    """Return a point for each day on which something ran, with what was known of all servers at its end."""
    days: dict[str, list[tuple[str, Event]]] = {}
    for server, events in histories.items():
        for event in events:
            if event["event"] == "stage.finished":
                days.setdefault(str(event["at"])[:10], []).append((server, event))
    known: dict[str, _Figures] = {}
    points = []
    for day in sorted(days):
        for server, event in days[day]:
            known.setdefault(server, {}).update(_found(event))
        spent = sum(float(event.get("seconds") or 0.0) for _, event in days[day])
        points.append((day, {**_together(known.values()), "duration": round(spent, 3)}))
    return points


def _together(servers: Iterable[_Figures]) -> _Figures:
    """Return the figures of all servers as one: the mean score, the sums of tools and tokens; what no server has is left out."""
    values: dict[str, list[float]] = {}
    for figures in servers:
        for key, value in figures.items():
            values.setdefault(key, []).append(value)
    found: _Figures = {key: sum(values[key]) for key in ("tools", "tokens") if key in values}
    if "score" in values:
        found["score"] = round(sum(values["score"]) / len(values["score"]), 1)
    return found


def _found(event: Event) -> _Figures:
    """Return the figures that the end of a stage brings."""
    facts: Mapping[str, Any] = (event.get("built") or {}).get("facts") or {}
    summary: Mapping[str, Any] = event.get("summary") or {}
    found = {key: facts[key] for key in ("tools", "tokens") if key in facts}
    if "score" in summary:
        found["score"] = summary["score"]
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}
