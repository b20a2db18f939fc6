"""Plan of the stages to run, with reasons.

The plan depends only on the stages, their current inputs and the state. A stage is up to date if it passed and its
inputs have not changed since. The rules, in order:

0. the server is retired → held
1. a required stage did not pass and will not run → blocked
2. a required stage is held or waiting → held, waiting
3. forced; never run; last outcome errored, interrupted or inconclusive; an input changed; a required stage will run;
   a rejection restarts this stage → run
4. last outcome failed, and no input changed since → blocked: the same inputs give the same result
5. otherwise → up to date

An approval stage is blocked if a person rejected the content that it shows. An approval stage waits until it has all
approvals. A stage that awaits a channel waits until the channel offers the newest candidate.

A stage that fills a channel is held if the channel has a hold. A stage that fills a channel is blocked if a gate of the
channel is closed. A stage that fills a channel also runs if the channel does not offer the newest candidate.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import JsonRecord
from mcpfactory_pipeline.base.hashing import ABSENT
from mcpfactory_pipeline.plan.gates import closed_gates
from mcpfactory_pipeline.plan.policy import describe_decision
from mcpfactory_pipeline.plan.stage import Stage, describe_missing_approvals, shown_content_rejections
from mcpfactory_pipeline.state.state import ServerState, StageRecord
from mcpfactory_pipeline.workspace.policy import ApprovalPolicy, ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import setting_error

RUN: Final = "run"
UP_TO_DATE: Final = "up-to-date"
BLOCKED: Final = "blocked"
HELD: Final = "held"
WAITING: Final = "waiting"
BROKEN: Final = "broken"
_STOPS: Final = {HELD: "is held", WAITING: "waits"}
_AGAIN: Final = ("errored", "interrupted", "inconclusive")


@dataclass(frozen=True, slots=True)
class PlanStep(JsonRecord):
    """One stage of one server. `verdict` is `run`, `up-to-date`, `blocked`, `held` or `waiting`.

    For a server with unreadable files, `verdict` is `broken` and `stage` is empty.
    """

    server: str
    stage: str
    verdict: str
    reasons: tuple[str, ...] = ()


def broken_step(server: str, message: str, hint: str) -> PlanStep:
    """Return the step of a server with unreadable files."""
    return PlanStep(server, "", BROKEN, (message, f"hint: {hint}"))


def plan(
    stages: Sequence[Stage],
    state: ServerState,
    inputs: Mapping[str, Mapping[str, str]],
    *,
    force: Container[str] = (),
    present: bool = True,
) -> tuple[PlanStep, ...]:
    """Return a step for each stage, in the order of the stages.

    Each stage must follow the stages that it needs. `inputs` are the current inputs of each stage. `force` names stages
    that run even if they are up to date. If `present` is False, the candidate's files are missing on this machine, and
    are built again if a stage needs them.
    """
    steps = _steps(stages, state, inputs, force, ())
    reading = {stage.name for stage in stages if "candidate" in stage.reads}
    if present or not any(step.verdict == RUN and step.stage in reading for step in steps):
        return steps
    writing = {stage.name for stage in stages if "candidate" in stage.writes}
    missing = {step.stage for step in steps if step.stage in writing and step.verdict == UP_TO_DATE}
    if not missing:
        return steps
    return _steps(stages, state, inputs, force, missing)


def _steps(
    stages: Sequence[Stage],
    state: ServerState,
    inputs: Mapping[str, Mapping[str, str]],
    force: Container[str],
    missing: Container[str],
) -> tuple[PlanStep, ...]:
    verdicts: dict[str, str] = {}
    steps = []
    for stage in stages:
        verdict, reasons = _verdict_of(stage, state, inputs[stage.name], force, verdicts)
        if stage.name in missing and verdict == UP_TO_DATE:
            verdict, reasons = RUN, ("the candidate's files are not on this machine",)
        verdicts[stage.name] = verdict
        steps.append(PlanStep(state.server, stage.name, verdict, reasons))
    return tuple(steps)


def _verdict_of(
    stage: Stage, state: ServerState, now: Mapping[str, str], force: Container[str], verdicts: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    if state.retired is not None:
        return HELD, (describe_decision("retired", state.retired),)
    barred = tuple(f"needs {name}, {_failure_reason(name, state)}" for name in stage.needs if verdicts[name] == BLOCKED)
    if barred:
        return BLOCKED, barred
    for verdict in (HELD, WAITING):
        if stopped := tuple(
            f"needs {name}, which {_STOPS[verdict]}" for name in stage.needs if verdicts[name] == verdict
        ):
            return verdict, stopped
    pending = tuple(f"stage {name} will run" for name in stage.needs if verdicts[name] == RUN)
    if stage.approval is not None:
        return _approval_verdict(stage.name, stage.approval, state, now, pending)
    if stage.awaits and stage.channel is not None:
        missing = _offers_other(stage.channel, state)
        return (WAITING, (*pending, *missing)) if pending or missing else (UP_TO_DATE, ())
    record = state.stages.get(stage.name)
    reasons = ["forced"] if stage.name in force else []
    reasons += _reasons(record, now)
    reasons += pending
    if sender := state.sent_back.get(stage.name):
        reasons.append(f"{describe_decision('sent back', sender)} ({sender['stage']})")
    if record is not None and record.outcome == "passed" and stage.channel is not None:
        reasons += _offers_other(stage.channel, state)
    if reasons:
        return _unless_held(stage.channel, state, tuple(reasons), verdicts)
    if record is not None and record.outcome == "failed":
        return BLOCKED, ("failed, and nothing that it reads has changed since",)
    return UP_TO_DATE, ()


def _approval_verdict(
    name: str, policy: ApprovalPolicy, state: ServerState, shown: Mapping[str, str], pending: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict of an approval stage. `pending` are earlier stages that may change the shown content."""
    made = state.decisions.get(name)
    said, missing = shown_content_rejections(made, shown), describe_missing_approvals(policy, made, shown)
    if pending:
        return (WAITING if said or missing else RUN), pending
    if said:
        return BLOCKED, tuple(describe_decision("rejected", {"actor": who, "reason": why}) for who, why in said)
    return (WAITING, (missing,)) if missing else (UP_TO_DATE, ())


def _offers_other(channel: ChannelPolicy, state: ServerState) -> list[str]:
    offered = state.offered(channel.name)
    return [] if offered and offered == state.candidate else [f"{channel.name} offers {offered or 'nothing'}"]


def _unless_held(
    channel: ChannelPolicy | None, state: ServerState, reasons: tuple[str, ...], verdicts: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict "run", or another verdict because of a hold or closed gates of the channel."""
    if channel is None:
        return RUN, reasons
    if hold := state.holds.get(channel.name):
        return HELD, (describe_decision("held", hold),)
    known = state.candidates.get(state.candidate or "")
    if known is not None and RUN not in verdicts.values():  # gates are read only after the checks have run
        shut = tuple(closed_gates(channel.gates, known, state.channels.get(channel.name)).values())
        if shut:
            return BLOCKED, shut
    return RUN, reasons


def _failure_reason(name: str, state: ServerState) -> str:
    record = state.stages.get(name)
    if (made := state.decisions.get(name)) and made.rejections:
        return "which was rejected"
    return "which failed" if record and record.outcome == "failed" else "which is blocked"


def _reasons(record: StageRecord | None, now: Mapping[str, str]) -> list[str]:
    if record is None:
        return ["never run"]
    if record.outcome in _AGAIN:
        return [f"last outcome {record.outcome}"]
    before = record.inputs
    changed = (name for name in {**now, **before} if before.get(name) != now.get(name))
    return [describe_input_change(name, before.get(name), now.get(name)) for name in changed]


def describe_input_change(name: str, before: str | None, after: str | None) -> str:
    """Describe the change of an input.

    `before` is None for a new input. `after` is None if the stage no longer reads the input.
    """
    if before is None:
        return f"{name} is read now"
    if after is None:
        return f"{name} is no longer read"
    if _is_content(before) and _is_content(after):
        if before == ABSENT:
            return f"{name} added"
        return f"{name} removed" if after == ABSENT else f"{_NAMES.get(name, name)} changed"
    return f"{name} {before} → {after}"


_NAMES: Final = {"generated": "generated files"}  # names of inputs that users would not understand


def _is_content(value: str) -> bool:
    return value == ABSENT or value.startswith("#")


def sort_stages(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Sort the stages so that each stage follows the stages that it needs. The sort is stable.

    If a stage names another stage in `before`, the other stage needs the first stage.

    Raises:
        ConfigError: two stages have one name, a needed stage is unknown, or stages form a cycle.
    """
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise setting_error(f"stage {twice} already exists", "give it another name")
    waits = {stage.name: list(stage.needs) for stage in stages}
    for stage in stages:
        for field, others in (("needs", stage.needs), ("before", stage.before)):
            if missing := [name for name in others if name not in names]:
                raise setting_error(
                    f"stage {stage.name}: '{field}' contains the unknown stage {missing[0]!r}",
                    did_you_mean(missing[0], [name for name in names if name != stage.name], "stages"),
                )
        for name in stage.before:
            waits[name].append(stage.name)
    left = [replace(stage, needs=tuple(dict.fromkeys(waits[stage.name]))) for stage in stages]
    placed: list[Stage] = []
    while left:
        done = {stage.name for stage in placed}
        following = next((stage for stage in left if done.issuperset(stage.needs)), None)
        if following is None:
            circle = ", ".join(stage.name for stage in left)
            raise setting_error(
                f"stages depend on each other in a cycle: {circle}", "remove one entry of needs or before"
            )
        placed.append(following)
        left.remove(following)
    return tuple(placed)


def needed_stages(stages: Sequence[Stage], name: str) -> set[str]:
    """Return the names of all stages that a stage needs, directly or indirectly."""
    by_name = {stage.name: stage for stage in stages}
    found: set[str] = set()
    todo = list(by_name[name].needs)
    while todo:
        current = todo.pop()
        if current not in found and current in by_name:
            found.add(current)
            todo += by_name[current].needs
    return found


def channels_needed_before(stages: Sequence[Stage], name: str) -> set[str]:
    """Return the names of the channels that must offer the candidate before a stage runs."""
    needed = needed_stages(stages, name)
    return {stage.channel.name for stage in stages if stage.name in needed and stage.channel}


def channels_passed_before(channels: Sequence[ChannelPolicy], name: str) -> set[str]:
    """Return the channels that a candidate must pass before the channel `name`."""
    sources = {channel.name: channel.source for channel in channels}
    found: set[str] = set()
    source = sources.get(name)
    while source is not None and source not in found:
        found.add(source)
        source = sources.get(source)
    return found


def required_stages(
    stages: Sequence[Stage], channel: ChannelPolicy, channels: Sequence[ChannelPolicy]
) -> tuple[Stage, ...]:
    """Return the checks and approvals that a candidate needs for a channel.

    A stage that needs a channel counts only if the candidate has to pass that channel first. If the channel has a list
    of `checks`, a stage that needs a channel must also be in this list.
    """
    allowed, found = channels_passed_before(channels, channel.name), []
    for stage in stages:
        before = channels_needed_before(stages, stage.name)
        if not stage.check or not before <= allowed:
            continue
        if before and channel.checks is not None and stage.name not in channel.checks:
            continue
        found.append(stage)
    return tuple(found)


def required_checks(
    stages: Sequence[Stage], channel: ChannelPolicy, channels: Sequence[ChannelPolicy]
) -> tuple[str, ...]:
    """Return the names of the checks that a channel requires and that read the candidate."""
    found = required_stages(stages, channel, channels)
    return tuple(stage.name for stage in found if "candidate" in stage.reads and not stage.approval)
