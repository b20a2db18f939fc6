"""Pages about runs: list of runs, page of a run, and Gantt chart."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from mcpfactory_pipeline.base.ids import format_time, id_creation_time
from mcpfactory_pipeline.dashboard.facts import (
    STATUSES,
    DisplayedStatus,
    Pager,
    RunFacts,
    ShownStatus,
    outcome_status,
    paginate,
    shorten,
)
from mcpfactory_pipeline.plan.stage import RUN_ENDED
from mcpfactory_pipeline.state.event_schema import RUN_DIED, STAGE_START, Event

_SILENT: Final = "the stage started, but its end was not recorded"
_LINES: Final = 40  # maximum number of runs per page; with the longest texts, a page stays below 100 kB
_NAMED: Final = 3  # maximum number of servers and of failures of a run in the list
_TEXT: Final = 120  # maximum number of characters of a failure in the list
_SERVERS: Final = 12  # maximum number of servers per page; with the longest texts, a page stays below 100 kB


@dataclass(frozen=True, slots=True)
class StageAttempt:
    """An attempt at a stage of a server.

    Attributes:
        start: seconds between the start of the run and the start of the attempt.
        seconds: duration, or None if unknown. For a running step, `seconds` is the time until now.
        log: end of the step's output. Pages about several servers omit the output of finished steps.
        kept: True for a finished step whose log exists.
    """

    server: str
    stage: str
    attempt: int
    status: ShownStatus
    at: str
    start: float
    seconds: float | None
    reasons: tuple[str, ...]
    message: str
    candidate: str
    log: str
    working: bool = False
    kept: bool = False

    @property
    def name(self) -> str:
        """Return the step's unique name within the run."""
        return f"{self.server}/{self.stage}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """The number of steps with one outcome."""

    status: ShownStatus
    number: int


@dataclass(frozen=True, slots=True)
class RunWait:
    """A server that a run waits for. `run` is the run that blocks the server, or "" if unknown."""

    server: str
    run: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run, or the part of a run about one `server`.

    Attributes:
        going: True if the run is active on the dashboard's machine.
        seconds: time from the first to the last event. For an active run, `seconds` is the time until now.
        cut_short: "cancelled" if a person canceled the run, "broke off" if the run's process died, otherwise "".
        unreached: stages that were skipped because a required stage did not pass.
    """

    workspace: str
    run: str
    server: str
    status: ShownStatus
    going: bool
    started: str
    seconds: float
    actor: str
    servers: int
    outcomes: tuple[OutcomeCount, ...]
    pager: Pager
    steps: tuple[StageAttempt, ...]
    waits: tuple[RunWait, ...] = ()
    cut_short: str = ""
    unreached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list of all runs. `names` are its first servers, and `failed` its first failures."""

    run: str
    status: ShownStatus
    started: str
    seconds: float
    actor: str
    servers: int
    steps: int
    names: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunsPage:
    """The list of runs, newest first."""

    workspace: str
    pager: Pager
    runs: tuple[RunRow, ...]


def run_rows(
    histories: Mapping[str, Sequence[Event]], at_work: Set[tuple[str, str, str]] = frozenset()
) -> tuple[RunRow, ...]:
    """Return all runs in the histories, newest first. `at_work` has (run, server, stage) of running steps."""
    known = group_events_by_run(histories)
    return tuple(_line(run, known[run], at_work) for run in sorted(known, reverse=True))


def group_events_by_run(histories: Mapping[str, Sequence[Event]]) -> Mapping[str, Mapping[str, list[Event]]]:
    """Return the events by run and server."""
    found: dict[str, dict[str, list[Event]]] = {}
    for server, events in histories.items():
        for event in events:
            if event.get("run"):
                found.setdefault(str(event["run"]), {}).setdefault(server, []).append(event)
    return found


def runs_page(workspace: str, runs: Sequence[RunRow], *, page: str = "1") -> RunsPage:
    """Return one page of the list of runs."""
    shown, pager = paginate(runs, page, _LINES)
    return RunsPage(workspace, pager, shown)


def run_page(facts: RunFacts, *, server: str = "", page: str = "1") -> RunPage:
    """Return the page of a run. With `server`, the page has only the steps for this server, with logs."""
    began, steps, line = _whole_run(facts)
    names, pager = paginate(tuple(steps), page, _SERVERS)
    every = [step for some in steps.values() for step in some]
    numbers = Counter(step.status.key for step in every)
    return RunPage(
        workspace=facts.workspace,
        run=facts.run,
        server=server,
        status=_worst(every) if every else line.status,
        going=facts.going,
        started=line.started,
        seconds=max(line.seconds, round(facts.now - began, 3)) if facts.going else line.seconds,
        actor=line.actor,
        servers=len(steps),
        outcomes=tuple(OutcomeCount(one, numbers[key]) for key, one in STATUSES.items() if numbers[key]),
        pager=pager,
        steps=tuple(step for name in names for step in steps[name]),
        waits=tuple(RunWait(name, other) for name, other in facts.waits.items()),
        cut_short="" if facts.going else _cut_short(steps.values()),
        unreached=() if facts.going else tuple(_unreached(facts.needs, steps.values())),
    )


@functools.lru_cache(maxsize=2)
def _whole_run(facts: RunFacts) -> tuple[float, Mapping[str, tuple[StageAttempt, ...]], RunRow]:
    ids = (str(event["id"]) for events in facts.events.values() for event in events)
    began = id_creation_time(min(ids, default=facts.run))
    steps = {name: _steps(facts, name, events, began) for name, events in facts.events.items()}
    worst = {name: _worst(some).rank for name, some in steps.items()}
    ordered = {name: steps[name] for name in sorted(steps, key=lambda name: (worst[name], name))}
    return began, ordered, _line(facts.run, facts.events)


def _line(run: str, events: Mapping[str, Sequence[Event]], at_work: Set[tuple[str, str, str]] = frozenset()) -> RunRow:
    every = [event for some in events.values() for event in some]
    if not every:
        at = format_time(datetime.fromtimestamp(id_creation_time(run), UTC))
        return RunRow(run, STATUSES["running"], at, 0.0, "", 0, 0)
    first, last = min(every, key=_id), max(every, key=_id)
    ends = [event for event in every if event["event"] != STAGE_START]
    latest = {(run, server, str(one.get("stage", ""))): one for server, some in events.items() for one in some}
    statuses = {step: _last_status(event, working=step in at_work) for step, event in latest.items()}
    worst = min(statuses.values(), key=lambda status: status.rank)
    bad = [step for step, status in statuses.items() if status.tone == "bad"][:_NAMED]
    causes = {step: str(latest[step].get("message") or statuses[step].word) for step in bad}
    failed = tuple(f"{server} {stage}: {shorten(causes[run, server, stage], _TEXT)}" for _, server, stage in bad)
    spent = round(id_creation_time(_id(last)) - id_creation_time(_id(first)), 3)
    seconds = max(spent, max((float(e.get("seconds", 0)) for e in ends), default=0.0))
    return RunRow(
        run,
        worst,
        str(first["at"]),
        seconds,
        str(first.get("actor", "")),
        len(events),
        len(ends),
        tuple(sorted(events))[:_NAMED],
        failed,
    )


def _last_status(last: Event, *, working: bool) -> DisplayedStatus:
    """Return the status of a stage's last event. A stage that started but is not running counts as interrupted."""
    if last["event"] == STAGE_START:
        return STATUSES["running" if working else "interrupted"]
    return _ended(last)


def _steps(facts: RunFacts, server: str, events: Iterable[Event], began: float) -> tuple[StageAttempt, ...]:
    steps: list[StageAttempt] = []
    starts: dict[str, Event] = {}
    attempts: Counter[str] = Counter()
    for event in events:
        stage = str(event.get("stage", ""))
        if event["event"] == STAGE_START:
            starts[stage] = event
            continue
        attempts[stage] += 1
        log = facts.logs.get((server, stage), "") if event["event"] == "stage.finished" else ""
        start = starts.pop(stage, None)
        made = _step(server, attempts[stage], start, event, began=began, status=_ended(event), log=log)
        steps.append(replace(made, kept=str(event["id"]) in facts.kept))
    for stage, start in starts.items():
        status = _last_status(start, working=stage in facts.running.get(server, ()))
        log = facts.logs.get((server, stage), "") if status.key == "running" else ""
        made = _step(server, attempts[stage] + 1, start, None, began=began, status=status, log=log)
        if status.key == "running" and facts.now:
            made = replace(made, seconds=round(max(0.0, facts.now - began - made.start), 3), working=True)
        steps.append(made)
    return tuple(steps)


def _step(
    server: str,
    attempt: int,
    start: Event | None,
    end: Event | None,
    *,
    began: float,
    status: DisplayedStatus,
    log: str = "",
) -> StageAttempt:
    known = end or start or {}
    reported = known.get("seconds")
    seconds = float(reported) if reported is not None else None
    at = id_creation_time(str(start["id"])) if start else id_creation_time(str(known["id"])) - (seconds or 0.0)
    if start and end and seconds is None:
        seconds = max(0.0, id_creation_time(str(end["id"])) - at)
    silent = "" if end or status.key == "running" else _SILENT
    return StageAttempt(
        server=server,
        stage=str(known.get("stage", "")),
        attempt=attempt,
        status=status,
        at=str((start or known)["at"]),
        start=round(max(0.0, at - began), 3),
        seconds=round(seconds, 3) if seconds is not None else None,
        reasons=tuple(map(str, (start or {}).get("reasons", ()))),
        message=silent or str(known.get("message", "")),
        candidate=str(known.get("candidate", "")),
        log=log,
    )


def _id(event: Event) -> str:
    return str(event["id"])


def _ended(event: Event) -> DisplayedStatus:
    return STATUSES["interrupted"] if event["event"] == "stage.interrupted" else outcome_status(event.get("outcome"))


def _cut_short(servers: Iterable[Iterable[StageAttempt]]) -> str:
    last = [step for steps in servers for step in {step.stage: step for step in steps}.values()]
    said = [step.message for step in last if step.status.key == "interrupted"]
    cancelled = any(message.startswith(RUN_ENDED) for message in said)
    # these messages mean that the whole run died
    died = any(message in {RUN_DIED, _SILENT} for message in said)
    return "cancelled" if cancelled else "broke off" if died else ""


def _unreached(needs: Mapping[str, Set[str]], servers: Iterable[Iterable[StageAttempt]]) -> Iterator[str]:
    # Later attempts replace earlier attempts.
    ended = [{step.stage: step.status.key for step in steps} for steps in servers]
    for stage, before in needs.items():
        if any(stage not in last and any(last.get(one, "passed") != "passed" for one in before) for last in ended):
            yield stage


def _worst(steps: Iterable[StageAttempt]) -> DisplayedStatus:
    last = {(step.server, step.stage): step.status for step in steps}
    return min(last.values(), key=lambda status: status.rank, default=STATUSES["never"])


# Gantt chart in pixels: total width, width of the names, height of a row.
_WIDTH: Final = 1000.0
_NAMES: Final = 230.0
_ROW: Final = 20.0
_LEAST: Final = 2.0  # minimum width of a bar in pixels
_TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A label on the time axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class GanttBar:
    """A step in a Gantt chart."""

    step: StageAttempt
    x: float
    y: float
    width: float
    label: str  # the server's name; "" if the previous row has the same server


@dataclass(frozen=True, slots=True)
class GanttChart:
    """A Gantt chart with one row per step."""

    width: float
    height: float
    left: float
    row: float
    bars: tuple[GanttBar, ...]
    ticks: tuple[AxisTick, ...]


def gantt_chart(steps: Sequence[StageAttempt], seconds: float) -> GanttChart:
    """Return the chart of a run that took `seconds`."""
    scale = (_WIDTH - _NAMES) / max(seconds, 0.001)
    bars, before = [], ""
    for number, step in enumerate(steps):
        x = min(_NAMES + step.start * scale, _WIDTH - _LEAST)
        length = step.seconds if step.seconds is not None else max(0.0, seconds - step.start)
        width = min(max(length * scale, _LEAST), _WIDTH - x)
        bars.append(
            GanttBar(step, round(x, 1), number * _ROW, round(width, 1), "" if step.server == before else step.server)
        )
        before = step.server
    ticks = tuple(
        AxisTick(round(_NAMES + (_WIDTH - _NAMES) * part / _TICKS, 1), f"{seconds * part / _TICKS:.1f} s")
        for part in range(_TICKS + 1)
    )
    return GanttChart(_WIDTH, len(bars) * _ROW + _ROW, _NAMES, _ROW, tuple(bars), ticks)
