"""How a server, or all of them together, went over time: by runs, or by days. Pure: histories in, figures out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.dashboard.statuses import STATUSES, ShownStatus
from mcpfactory_pipeline.dashboard.values import shorten
from mcpfactory_pipeline.state.state import Event

__all__ = ["FailureCause", "FailureLane", "Series", "TrendMark", "TrendsPage", "trends_page"]

_POINTS: Final = 90  # shown, the newest
_MARKS: Final = 40  # shown, the newest
_CAUSES: Final = 10  # shown, the most frequent
_TEXT: Final = 200  # characters of a cause

_Figures = dict[str, float]
_Point = tuple[str, _Figures]


@dataclass(frozen=True, slots=True)
class Series:
    """One figure over time: a value for each moment of `TrendsPage.at`, None where there was none, or none was known yet.

    `missing` says what has to happen before there is a first value. `from_zero` says that the figure counts from zero.
    """

    name: str
    unit: str
    about: str
    missing: str
    from_zero: bool
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class FailureLane:
    """How many steps ended in one way other than well, at each moment of `TrendsPage.at`."""

    status: ShownStatus
    total: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Why steps of a stage ended other than well: `number` times, at so many `servers`, `last` when. Numbers in the text are `n`."""

    stage: str
    status: ShownStatus
    cause: str
    number: int
    servers: int
    last: str


@dataclass(frozen=True, slots=True)
class TrendMark:
    """What moved: `kind` is `promoted`, `rolled-back` or `published`; `number` is how many, where many of a day are one mark."""

    at: str
    kind: str
    about: str
    number: int


@dataclass(frozen=True, slots=True)
class TrendsPage:
    """Figures over time, oldest first. `server` is "" for the whole workspace, where `at` are days. `channel` is that which lead time leads to."""

    workspace: str
    server: str
    channel: str
    at: tuple[str, ...]
    series: tuple[Series, ...]
    failures: tuple[FailureLane, ...]
    causes: tuple[FailureCause, ...]
    marks: tuple[TrendMark, ...]


_RAN: Final = ("stage.finished", "stage.interrupted")
_FAILURES: Final = ("failed", "errored", "interrupted", "inconclusive")
_MOVES: Final = ("promoted", "rolled-back", "published")

# Name, unit, what it is of one server, what of all together, what it waits for, and whether it counts from zero.
_SERIES: Final = (
    ("score", "of 100", "what the validation gave", "the mean over all servers that have one", "It comes with the first validation.", False),
    ("duration", "s", "what the stages of a run took together", "what all stages of the day took together", "It comes with the first run.", True),
    ("flakiness", "%", "steps that ended otherwise than before, though nothing that they read had changed, of all in the run",
     "steps that ended otherwise than before, though nothing that they read had changed, of all of the day",
     "It comes with the first run.", True),
    ("tools", "", "tools of the candidate", "of all servers together", "It comes with the first candidate that says how many.", False),
    ("tokens", "", "tokens of all tools together, in every conversation", "of all servers together",
     "It comes with the first candidate that says how many.", False),
    ("lead time", "h", "from the beginning of the run that built a candidate until {channel} offered it first",
     "the median from the beginning of the run that built a candidate until {channel} offered it first",
     "It comes with the first promotion to {channel}.", True),
)  # fmt: skip


def trends_page(
    workspace: str,
    histories: Mapping[str, Sequence[Event]],
    *,
    server: str = "",
    channel: str = "production",
    listed: Mapping[tuple[str, str], Mapping[str, int]] = MappingProxyType({}),
) -> TrendsPage:
    """Return the trends of one server, or of all together. `channel` is the last one, to which lead time leads.

    `listed` are `tools` and `tokens` by server and candidate, of those whose build did not count them.
    """
    known = {server: histories.get(server, ())} if server else histories
    steps = sorted(
        (
            _EndedStep(name, event, flaky, listed.get((name, str(event.get("candidate"))), {}))
            for name, events in known.items()
            for event, flaky in _steps(events)
        ),
        key=lambda step: str(step.event["at"]),
    )
    arrivals = {name: dict(_arrivals(events, channel)) for name, events in known.items()}
    points = (_of_runs(steps, arrivals[server]) if server else _of_days(steps, arrivals))[-_POINTS:]
    at = tuple(moment for moment, _ in points)
    shown = [step for step in steps if at and _moment(step, server) >= at[0]]
    return TrendsPage(
        workspace,
        server,
        channel,
        at,
        tuple(
            Series(
                name,
                unit,
                (one if server else every).format(channel=channel),
                missing.format(channel=channel),
                zero,
                tuple(figures.get(name) for _, figures in points),
            )
            for name, unit, one, every, missing, zero in _SERIES
        ),
        tuple(_lanes(points)),
        tuple(_causes(shown)),
        tuple(_marks(known, at[0] if at else "", whole=not server)),
    )


@dataclass(frozen=True, slots=True)
class _EndedStep:
    """The end of a stage of a server, whether it ended otherwise than before though nothing had changed, and what its candidate listed."""

    server: str
    event: Event
    flaky: bool
    listed: Mapping[str, int]


def _moment(step: _EndedStep, server: str) -> str:
    return str(step.event["at"]) if server else str(step.event["at"])[:10]


def _steps(events: Iterable[Event]) -> Iterator[tuple[Event, bool]]:
    """Yield the ends of stages. One is flaky whose stage read the same before, and ended otherwise; a soak that ends is not."""
    last: dict[str, tuple[object, str]] = {}
    for event in events:
        if event["event"] not in _RAN:
            continue
        stage, outcome, read = str(event.get("stage")), _outcome(event), event.get("fingerprint")
        before = last.get(stage)
        same = bool(read) and before is not None and before[0] == read
        yield event, same and before is not None and before[1] != outcome and "inconclusive" not in {before[1], outcome}
        if read:
            last[stage] = (read, outcome)


def _outcome(event: Event) -> str:
    return "interrupted" if event["event"] == "stage.interrupted" else str(event.get("outcome"))


def _went_wrong(event: Event) -> bool:
    return _outcome(event) in _FAILURES and not (event.get("summary") or {}).get("soaking")


def _arrivals(events: Iterable[Event], channel: str) -> Iterator[tuple[str, float]]:
    """Yield when the channel offered a candidate first, and how many hours that was after the beginning of the run that built it."""
    began: dict[str, str] = {}
    built: dict[str, str] = {}
    seen: set[str] = set()
    for event in events:
        run, candidate = str(event.get("run") or ""), str(event.get("candidate") or "")
        began.setdefault(run, str(event["at"]))
        if event.get("built") and run:
            built.setdefault(candidate, began[run])
        moved = event["event"] == "promoted" or (
            event["event"] == "stage.finished" and event.get("outcome") == "passed"
        )
        if moved and event.get("channel") == channel and candidate in built and candidate not in seen:
            seen.add(candidate)
            spent = parse_time(str(event["at"])) - parse_time(built[candidate])
            yield str(event["at"]), round(max(0.0, spent.total_seconds()) / 3600, 2)


def _of_runs(steps: Iterable[_EndedStep], arrivals: Mapping[str, float]) -> list[_Point]:
    """Return a point for each run of a server, with the newest figures that were known at its end, and one for each arrival in the channel."""
    runs: dict[str, list[_EndedStep]] = {}
    for step in steps:
        if run := str(step.event.get("run") or ""):
            runs.setdefault(run, []).append(step)
    points: list[_Point] = [(at, {"lead time": hours}) for at, hours in arrivals.items()]
    known: _Figures = {}
    for some in runs.values():
        for step in some:
            known |= _found(step)
        points.append((str(some[-1].event["at"]), {**known, **_spent(some)}))
    return sorted(points, key=lambda point: point[0])


def _of_days(steps: Iterable[_EndedStep], arrivals: Mapping[str, Mapping[str, float]]) -> list[_Point]:
    """Return a point for each day on which something ran or arrived, with what was known of all servers at its end."""
    days: dict[str, list[_EndedStep]] = {}
    for step in steps:
        days.setdefault(str(step.event["at"])[:10], []).append(step)
    leads: dict[str, list[float]] = {}
    for some in arrivals.values():
        for at, hours in some.items():
            leads.setdefault(at[:10], []).append(hours)
    known: dict[str, _Figures] = {}
    points: list[_Point] = []
    for day in sorted({*days, *leads}):
        for step in days.get(day, ()):
            known.setdefault(step.server, {}).update(_found(step))
        figures = {**_together(known.values()), **_spent(days[day])} if day in days else {}
        lead = {"lead time": round(median(leads[day]), 2)} if day in leads else {}
        points.append((day, {**figures, **lead}))
    return points


def _spent(steps: Sequence[_EndedStep]) -> _Figures:
    """Return the figures of some steps together: what they took, how many were flaky, and how many ended in each other way than well."""
    wrong = Counter(_outcome(step.event) for step in steps if _went_wrong(step.event))
    flaky = sum(step.flaky for step in steps)
    took = sum(float(step.event.get("seconds") or 0.0) for step in steps)
    return {"duration": round(took, 3), "flakiness": round(100 * flaky / len(steps), 1), **wrong}


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


def _found(step: _EndedStep) -> _Figures:
    """Return the figures that the end of a stage brings."""
    built = step.event.get("built")
    facts: Mapping[str, Any] = {**step.listed, **(built.get("facts") or {})} if built else {}
    summary: Mapping[str, Any] = step.event.get("summary") or {}
    found = {key: facts[key] for key in ("tools", "tokens") if key in facts}
    if "score" in summary:
        found["score"] = summary["score"]
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}


def _lanes(points: Sequence[_Point]) -> Iterator[FailureLane]:
    for outcome in _FAILURES:
        values = tuple(int(figures.get(outcome, 0)) for _, figures in points)
        if any(values):
            yield FailureLane(STATUSES[outcome], sum(values), values)


def _causes(steps: Iterable[_EndedStep]) -> Iterator[FailureCause]:
    """Yield why steps ended other than well, the most frequent cause first; what is of one server alone is left out of the words."""
    found: dict[tuple[str, str, str], list[_EndedStep]] = {}
    for step in steps:
        if _went_wrong(step.event):
            words = str(step.event.get("message") or "").strip().partition("\n")[0]
            words = re.sub(rf"(?<![\w-]){re.escape(step.server)}(?![\w-])", "…", words)
            cause = shorten(re.sub(r"\d+(?:[.,]\d+)*", "n", words), _TEXT)
            found.setdefault((str(step.event.get("stage")), _outcome(step.event), cause), []).append(step)
    often = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    for (stage, outcome, cause), some in often[:_CAUSES]:
        servers = len({step.server for step in some})
        yield FailureCause(stage, STATUSES[outcome], cause, len(some), servers, str(some[-1].event["at"]))


def _marks(histories: Mapping[str, Sequence[Event]], first: str, *, whole: bool) -> Iterator[TrendMark]:
    """Yield what moved since `first`, oldest first: of one server each time, of all together each day."""
    moves = [
        (str(event["at"]), server, event)
        for server, events in histories.items()
        for event in events
        if event["event"] in _MOVES and first and str(event["at"]) >= first
    ]
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for at, server, event in sorted(moves, key=lambda move: move[:2]):
        where = str(event.get("target") or event.get("channel") or "")
        key = (at[:10] if whole else at, str(event["event"]), where)
        grouped.setdefault(key, []).append(
            f"{server} {event.get('version', '')}".strip() if whole else str(event.get("version", ""))
        )
    for (at, kind, where), who in list(grouped.items())[-_MARKS:]:
        names = ", ".join(who[:3]) + (f" and {len(who) - 3} more" if len(who) > 3 else "")
        yield TrendMark(at, kind, f"{names} in {where}" if where else names, len(who))
