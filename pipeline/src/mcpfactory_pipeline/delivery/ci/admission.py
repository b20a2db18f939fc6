"""Rules for the events that CI accepts from a job.

A job runs server code, so its events are not trusted. A stage, for example, may start only if all required stages have
passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError, RefusedError
from mcpfactory_pipeline.base.hashing import ABSENT
from mcpfactory_pipeline.base.ids import AUTOMATION, id_creation_time, parse_time
from mcpfactory_pipeline.plan.fingerprint import SHOWN_FILE, shown_state_hashes
from mcpfactory_pipeline.plan.gates import closed_gates
from mcpfactory_pipeline.plan.plan import needed_stages, required_checks
from mcpfactory_pipeline.plan.policy import describe_failed_checks, version_reuse_fault
from mcpfactory_pipeline.plan.stage import (
    OUTCOMES,
    Stage,
    candidate_id,
    describe_missing_approvals,
    shown_content_rejections,
)
from mcpfactory_pipeline.state.event_schema import Event, describe_invalid_order
from mcpfactory_pipeline.state.state import ServerState, extend, fold
from mcpfactory_pipeline.workspace.policy import ChannelPolicy

# Code of a refusal → message. docs/how-to/run-in-ci.md also lists these codes.
REFUSALS: Final[Mapping[str, str]] = {
    "server": "a history of a server that the job was not assigned",
    "history": "a history that cannot be read, or has a future event",
    "changed": "an event that differs from the workspace's event of the same ID",
    "kind": "an event that a job must not submit: decisions come only from the branch",
    "run": "an event of another run",
    "time": "an event from before its run",
    "order": "an event that cannot follow the earlier events",
    "stage": "an unknown stage, an approval stage, or a stage that cannot have this event",
    "candidate": "a candidate that no build made, or with an ID that does not match its files",
    "channel": "a move of a channel that its stage cannot have made",
    "files": "files that differ from the events, or are missing",
}
RUN_EVENTS: Final = frozenset({"stage.finished", "stage.interrupted", "rolled-back", "held"})
RELEASE_EVENTS: Final = RUN_EVENTS | {"promoted", "publish.started", "published"}
_SKEW: Final = 600.0  # seconds; maximum clock difference between CI machines
HINT: Final = "do not use results of this job: check its log, and the code that ran in it"


class ShardResultError(RefusedError):
    """Error for a refused job result. `code` is a key of `REFUSALS`."""

    def __init__(self, code: str, message: str, *, hint: str = HINT) -> None:
        super().__init__(f"{code}: {message}", hint=hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Conditions for the admission of events.

    Attributes:
        run: ID of the run to which all events must belong.
        kinds: admitted types of events.
        files: `file:PATH` → hash, for the files that approval stages show.
        details: function that adds the details in an event's manifest (`with_details`).
    """

    run: str
    stages: Mapping[str, Stage]
    kinds: frozenset[str] = RUN_EVENTS
    files: Mapping[str, str] = field(default_factory=dict)
    details: Callable[[Event], Event] = lambda event: event

    def checks(self, channel: ChannelPolicy) -> tuple[str, ...]:
        """Return the stages that check candidates for the first channel."""
        return required_checks(tuple(self.stages.values()), channel, (channel,))


@dataclass(slots=True)
class _AdmissionState:
    rules: AdmissionRules
    branch: ServerState
    state: ServerState
    known: Sequence[Event]


def admit_job_events(
    server: str, known: Sequence[Event], theirs: Sequence[Event], rules: AdmissionRules
) -> list[Event]:
    """Return the job's events that the workspace lacks, oldest first. `known` has the workspace's events.

    Raises:
        ShardResultError: the job submitted an event that jobs must not submit.
    """
    have = {str(event["id"]): event for event in known}
    for event in theirs:
        if have.get(str(event["id"]), event) != event:
            raise ShardResultError(
                "changed", f"event {event['id']} of {server} differs from the event in the workspace"
            )
    new = sorted((event for event in theirs if str(event["id"]) not in have), key=lambda event: str(event["id"]))
    if not new:
        return []
    before = [event for event in known if str(event["id"]) < str(new[0]["id"])]
    admission = _AdmissionState(rules, fold(server, known), fold(server, before), known)
    for event in new:
        try:
            _check(admission, event)
            admission.state = extend(admission.state, [event])
        except ShardResultError:
            raise
        except (PipelineError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ShardResultError("order", f"event {event['id']} of {server} is not valid: {error}") from error
    if words := next(describe_invalid_order(sorted([*known, *new], key=lambda event: str(event["id"]))), ""):
        raise ShardResultError("order", f"an event of {server} is not valid: {words}")
    return new


def _check(admission: _AdmissionState, event: Event) -> None:
    kind, words = str(event["event"]), f"{event['event']} ({event['id']}) of {admission.state.server}"
    if kind not in admission.rules.kinds:
        raise ShardResultError("kind", f"{words} must not come from a job: {REFUSALS['kind']}")
    oldest = id_creation_time(admission.rules.run) - _SKEW
    for moment in (id_creation_time(str(event["id"])), parse_time(str(event["at"])).timestamp()):
        if moment < oldest:
            raise ShardResultError("time", f"{words} is older than its run: {event['at']}")
    if kind in _RULES:
        if "stage" not in event and not kind.startswith("stage."):
            raise ShardResultError("kind", f"{words} must not come from a job: {REFUSALS['kind']}")
        if str(event["stage"]) not in admission.rules.stages:
            raise ShardResultError("stage", f"{words}: unknown stage {event['stage']!r}")
        stage = admission.rules.stages[str(event["stage"])]
        if stage.approval is not None or stage.awaits:
            raise ShardResultError("stage", f"{words}: {stage.name} is decided by people, not run")
        _RULES[kind](admission, event, words)
    elif str(event["candidate"]) not in admission.state.candidates:
        raise ShardResultError("candidate", f"{words} is about {event['candidate']}, which was never built")


def _of_run(admission: _AdmissionState, event: Event, words: str) -> None:
    if event["run"] != admission.rules.run:
        raise ShardResultError(
            "run", f"{words} belongs to run {event['run']}, but the job was assigned run {admission.rules.run}"
        )


def _has_needs(admission: _AdmissionState, event: Event, words: str) -> None:
    for name in admission.rules.stages[str(event["stage"])].needs:
        need = admission.rules.stages.get(name)
        if need is not None and not _passed(admission, need):
            raise ShardResultError("order", f"{words}: {event['stage']} needs {name}, which did not pass")


def _passed(admission: _AdmissionState, stage: Stage) -> bool:
    state = admission.state
    if stage.awaits and stage.channel is not None:
        release = state.channels.get(stage.channel.name)
        return release is not None and release.candidate == state.candidate
    if stage.approval is None:
        record = state.stages.get(stage.name)
        return record is not None and record.outcome == "passed"
    shown = _shown(admission, stage)
    made = state.decisions.get(stage.name)
    return (
        made is not None
        and not shown_content_rejections(made, shown)
        and not describe_missing_approvals(stage.approval, made, shown)
    )


def _shown(admission: _AdmissionState, stage: Stage) -> dict[str, str]:
    files = {name: admission.rules.files.get(name, ABSENT) for name in stage.reads if name.startswith(SHOWN_FILE)}
    return shown_state_hashes(stage, admission.state) | files


def _may_finish(admission: _AdmissionState, event: Event, words: str) -> None:
    _of_run(admission, event, words)
    _has_needs(admission, event, words)
    stage = admission.rules.stages[str(event["stage"])]
    if event["outcome"] not in OUTCOMES:
        raise ShardResultError("order", f"{words}: {event['outcome']!r} is not a valid outcome")
    newest = admission.state.candidate if admission.state.candidate in admission.state.candidates else None
    expected = newest if "candidate" in stage.reads else None
    _may_keep(stage, expected, event, admission.rules.details(event), words)
    if event.get("built") is not None:
        _may_build(stage, event, words)
        return
    if event.get("candidate") != expected:
        raise ShardResultError(
            "candidate", f"{words} is about {event.get('candidate')}, but the newest candidate is {expected}"
        )
    if event.get("channel") is not None:
        _may_move(admission, stage, event, words)


def _may_keep(stage: Stage, candidate: str | None, event: Event, details: Event, words: str) -> None:
    """Refuse files other than the stage's own log and reports, and a manifest that does not have the event's files."""
    log, reports = f"logs/{stage.name}.log", f"{candidate or 'reports'}/{stage.name}/"
    kept: Mapping[str, str] = details.get("artifacts", {})
    if ("manifest" in event and details is event) or event.get("artifacts", {}).items() - kept.items():
        raise ShardResultError("files", f"{words}: its manifest is missing, or differs from the event")
    for path in kept:
        if path != log and not path.startswith(reports):
            raise ShardResultError("files", f"{words} names {path!r}, which is neither {log} nor below {reports}")


def _may_build(stage: Stage, event: Event, words: str) -> None:
    files = event["built"]["files"]
    if "candidate" not in stage.writes or event["outcome"] != "passed" or event.get("channel") is not None:
        raise ShardResultError("stage", f"{words}: {stage.name} does not create a candidate")
    if not files or any(not name or "/" in name or name.startswith(".") for name in files):
        raise ShardResultError("candidate", f"{words}: {', '.join(files) or 'no files'}")
    if event["candidate"] != candidate_id(files):
        raise ShardResultError(
            "candidate", f"{words}: {event['candidate']} is not the id of its files, which is {candidate_id(files)}"
        )


def _may_move(admission: _AdmissionState, stage: Stage, event: Event, words: str) -> None:
    if stage.channel is None or stage.channel.name != event["channel"] or event["outcome"] != "passed":
        raise ShardResultError("channel", f"{words}: {stage.name} does not promote to {event['channel']}")
    known = admission.state.candidates.get(str(event["candidate"]))
    if known is None or event["version"] != known.version:
        raise ShardResultError("channel", f"{words}: {event['candidate']} does not have the version {event['version']}")
    closed = closed_gates(stage.channel.gates, known, admission.state.channels.get(stage.channel.name))
    fault = version_reuse_fault(stage.channel, known, str(event["candidate"]), admission.known)
    failed = describe_failed_checks(admission.rules.checks(stage.channel), known)
    if wrong := [*failed, *closed.values(), *filter(None, [fault])]:
        raise ShardResultError("channel", f"{words}: {wrong[0]}")
    if admission.branch.retired or stage.channel.name in admission.branch.holds:
        raise ShardResultError(
            "channel",
            f"{words}: {stage.channel.name} was held or the server was retired during the job",
            hint="run the job again",
        )
    if who := _rejected_meanwhile(admission, stage, str(event["candidate"])):
        raise ShardResultError(
            "channel",
            f"{words}: {who} rejected it during the job",
            hint="list the pending decisions with 'mcpfactory inbox'",
        )
    for name in stage.needs:
        record = admission.state.stages.get(name)
        if record is not None and record.candidate not in {None, event["candidate"]}:
            raise ShardResultError("channel", f"{words}: {name} passed for another candidate, {record.candidate}")


def _rejected_meanwhile(admission: _AdmissionState, stage: Stage, candidate: str) -> str:
    """Return the people who rejected the candidate, or the content of an approval stage, while the job was running."""
    known = admission.branch.candidates.get(candidate)
    found = dict(known.rejections.get(stage.channel.name, {})) if known and stage.channel else {}
    for name in needed_stages(tuple(admission.rules.stages.values()), stage.name):
        need = admission.rules.stages[name]
        if need.approval is not None:
            found |= dict(shown_content_rejections(admission.branch.decisions.get(name), _shown(admission, need)))
    return ", ".join(sorted(found))


def _may_go_back(admission: _AdmissionState, event: Event, words: str) -> None:
    """Refuse a rollback or hold, unless a stage with `rollback` failed for the channel's candidate."""
    stage, channel = admission.rules.stages[str(event["stage"])], str(event["channel"])
    record, release = admission.state.stages.get(stage.name), admission.state.channels.get(channel)
    failed = record is not None and release is not None and record.outcome == "failed"
    if event["actor"] != AUTOMATION or not stage.rollback or stage.watches != channel or not failed:
        raise ShardResultError("kind", f"{words} must not come from a job: {REFUSALS['kind']}")
    assert record is not None and release is not None  # noqa: PT018 - for the type checker
    if record.candidate != release.candidate or event.get("candidate") not in {None, *release.before}:
        raise ShardResultError("channel", f"{words}: {channel} did not offer {event.get('candidate')}")


_RULES: Final[Mapping[str, Callable[[_AdmissionState, Event, str], None]]] = {
    "stage.finished": _may_finish,
    "stage.interrupted": _of_run,
    "rolled-back": _may_go_back,
    "held": _may_go_back,
}
