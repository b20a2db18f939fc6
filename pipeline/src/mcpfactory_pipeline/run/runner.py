from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base import events
from mcpfactory_pipeline.base.errors import PipelineError, PromotionError, StateError
from mcpfactory_pipeline.base.hashing import ABSENT, hash_file
from mcpfactory_pipeline.base.ids import AUTOMATION, Clock, acting_as
from mcpfactory_pipeline.base.locks import Starts, run_lock
from mcpfactory_pipeline.base.text import MAX_REASON_LENGTH, format_duration, join_lines, truncate
from mcpfactory_pipeline.channels.candidate import copy_into_channel, find_artifact
from mcpfactory_pipeline.decisions.decision import hold
from mcpfactory_pipeline.decisions.promote import rollback
from mcpfactory_pipeline.decisions.signatures import drop_unsigned_stage_approvals
from mcpfactory_pipeline.decisions.stage_decision import shown_artifacts
from mcpfactory_pipeline.plan.fingerprint import (
    InputReader,
    read_stage_inputs,
    source_provenance_inputs,
    stage_inputs,
)
from mcpfactory_pipeline.plan.plan import BLOCKED, HELD, RUN, UP_TO_DATE, WAITING, PlanStep, plan
from mcpfactory_pipeline.plan.policy import describe_decision, version_reuse_fault
from mcpfactory_pipeline.plan.stage import RETRIED, Artifact, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.executor import Executor
from mcpfactory_pipeline.run.job import make_job
from mcpfactory_pipeline.state.event_schema import RUN_DIED, STAGE_START, Event, describe_invalid_order
from mcpfactory_pipeline.state.manifest import MANIFESTS, write_manifest
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store, Transaction
from mcpfactory_pipeline.state.timeline import seconds_in_channel
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

_SHOWN: Final = 15  # lines of a log to show
_WHOLE: Final = 200  # maximum lines to show, if fewer lines would cut a traceback


def failed_stage_log_excerpt(lines: Sequence[str], gates: Collection[str]) -> list[str]:
    """Return the lines of a log about closed gates; if no gate is closed, return the last lines.

    The lines begin and end at unindented lines of the log, so that no traceback is cut.
    """
    found: list[str] = []
    about = False  # True if the previous lines began the description of a gate
    margin = 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        rule, marked, _ = line.strip().partition(" [gate]")
        if marked and not set(gates).isdisjoint(rule.split(", ")):
            about, margin = True, indent
        elif indent <= margin:
            about = False
        if about:
            found.append(line)
    if found:
        return found[: _first_unindented(found, range(_SHOWN, min(len(found), _WHOLE)), _WHOLE)]
    last = max(0, len(lines) - _SHOWN)
    return list(lines[_first_unindented(lines, range(last, max(0, len(lines) - _WHOLE) - 1, -1), last) :])


def _first_unindented(lines: Sequence[str], numbers: Iterable[int], default: int) -> int:
    return next((number for number in numbers if number < len(lines) and not lines[number][:1].isspace()), default)


def apply_soak_time(
    stage: Stage, outputs: StageOutputs, candidate: str, events: Sequence[Event], clock: Clock
) -> StageOutputs:
    """Set the outcome of a passed stage to `inconclusive` until the watched channel's soak time is over.

    The message omits the remaining time, because the state contains no clock times.
    """
    if not stage.soak or outputs.outcome != "passed":
        return outputs
    if seconds_in_channel(events, stage.watches, candidate, clock()) >= stage.soak:
        return outputs
    words = f"{outputs.message}; soaks until {stage.watches} has offered it for {format_duration(stage.soak)}"
    return replace(outputs, outcome="inconclusive", message=words, summary={**outputs.summary, "soaking": True})


def rollback_and_hold_failed_channels(
    workspace: Workspace, stages: Sequence[Stage], state: ServerState, store: Store
) -> list[str]:
    """Roll back and hold each channel whose candidate failed a stage with `on_failure = "rollback"`.

    Return a description of each change. A channel without an earlier release is only held. A channel with a hold is
    skipped, so a repeated call changes nothing.
    """
    done = []
    for stage in stages:
        record, release = state.stages.get(stage.name), state.channels.get(stage.watches)
        if not stage.rollback or record is None or record.outcome != "failed" or state.retired:
            continue
        if release is None or release.candidate != record.candidate or stage.watches in state.holds:
            continue
        reason = f"{stage.name} failed on {release.version} ({release.candidate}): {record.message}"
        reason = truncate(join_lines(reason), MAX_REASON_LENGTH)  # messages of stages may be long
        with acting_as(AUTOMATION):
            try:
                moved = rollback(
                    workspace,
                    state.server,
                    stage.watches,
                    reason=reason,
                    stages=stages,
                    clock=store.clock,
                    stage=stage.name,
                    store=store,
                )
                done.append(f"{stage.watches} is back at {moved['version']} ({moved['candidate']}), and held: {reason}")
            except PromotionError as error:
                reason = truncate(join_lines(f"it was not moved back: {error}; {reason}"), MAX_REASON_LENGTH)
                hold(
                    workspace, state.server, stage.watches, reason=reason, stages=stages, stage=stage.name, store=store
                )
                done.append(f"{stage.watches} is held: {reason}")
    return done


_LONGEST_PAUSE: Final = 60.0  # maximum seconds between two attempts; the pause doubles after each attempt


@dataclass(slots=True)
class ServerRunResult:
    """Result of the run of one server: the worst outcome, the stages that ran, and the first failed stage."""

    server: str
    outcome: str = "passed"
    ran: list[str] = field(default_factory=list)
    failed: str = ""


@dataclass(frozen=True, slots=True)
class _StartedStage:
    """A running stage, with its inputs before the start."""

    step: PlanStep
    stage: Stage
    inputs: Mapping[str, str]


def plan_server_stages(
    workspace: Workspace,
    server: WorkspaceServer,
    stages: Sequence[Stage],
    state: ServerState,
    force: Sequence[str] = (),
    *,
    inputs: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[PlanStep, ...]:
    """Return the plan of one server. The default `inputs` come from the files on disk."""
    inputs = read_stage_inputs(stages, InputReader(server, state)) if inputs is None else inputs
    state = drop_unsigned_stage_approvals(workspace, state, lambda: Store(workspace).history(server.name), stages)
    artifact = find_artifact(workspace, state)
    present = artifact is None or all((artifact.folder / name).exists() for name in artifact.files)
    return plan(stages, state, inputs, force=force, present=present)


def log_file(workspace: Workspace, server: str, stage: str) -> Path:
    """Return the path of a stage's log."""
    return workspace.artifacts / server / "logs" / f"{stage}.log"


@dataclass(frozen=True, slots=True)
class ServerRunner:
    """Runner of servers, with the state that all servers share.

    `slots` limits the jobs of all servers, and `width` limits the jobs of one server.
    """

    workspace: Workspace
    stages: tuple[Stage, ...]
    store: Store
    executor: Executor
    emit: Callable[[events.RunEvent], None]
    run_id: str
    attempts: int
    backoff: float
    slots: threading.Semaphore
    width: int
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, server: WorkspaceServer, forced: Sequence[str] = ()) -> ServerRunResult:
        """Run the stale and the `forced` stages of one server. Return errors as outcomes."""
        try:
            if not forced and (done := self._up_to_date(server)):
                return done
            with run_lock(
                self.store.locks,
                server.name,
                self.run_id,
                waiting=lambda holder: self.emit(events.RunWaiting(server.name, holder)),
                stopped=self.stopped.is_set,
            ) as announce:
                self._recover(server)
                return self._steps(server, list(forced), announce)
        except InterruptedError:
            return ServerRunResult(server.name, "interrupted")
        except PipelineError as error:
            self.emit(events.ServerUnusable(server.name, str(error), error.hint))
            return ServerRunResult(server.name, "errored")

    def _up_to_date(self, server: WorkspaceServer) -> ServerRunResult | None:
        """Return the result of an up-to-date server, else None. Neither take a lock nor read the history."""
        if not self.store.is_settled(server.name):
            return None
        steps = plan_server_stages(self.workspace, server, self.stages, self.store.state(server.name))
        if any(step.verdict != UP_TO_DATE for step in steps):
            return None
        for step in steps:
            self.emit(events.StageSkipped(server.name, step.stage, step.verdict, step.reasons))
        return ServerRunResult(server.name)

    def _recover(self, server: WorkspaceServer) -> None:
        """Record stages without an end as interrupted.

        The process of the stages is dead, because the current run holds the run lock.
        """
        with self.store.transaction(server.name) as transaction:
            for start in self.store.unfinished_starts(server.name):
                transaction.append("stage.interrupted", stage=start["stage"], run=start["run"], message=RUN_DIED)
        shutil.rmtree(self._work(server), ignore_errors=True)

    def _steps(self, server: WorkspaceServer, force: list[str], announce: Callable[[Starts], None]) -> ServerRunResult:
        result = ServerRunResult(server.name)
        while not self.stopped.is_set():
            state = self.store.state(server.name)
            if moved := rollback_and_hold_failed_channels(self.workspace, self.stages, state, self.store):
                for words in moved:
                    self.emit(events.ServerUnusable(state.server, words, "mcpfactory inbox"))
                continue
            steps = plan_server_stages(self.workspace, server, self.stages, state, force)
            due = self._due(steps, result.ran)
            if not due:
                self._report_rest(steps, result)
                return result
            self._run_steps(server, due, announce)
            names = [step.stage for step in due]
            force[:] = [name for name in force if name not in names]
            result.ran += names
        result.outcome = "interrupted"
        return result

    def _due(self, steps: Sequence[PlanStep], ran: Sequence[str]) -> list[PlanStep]:
        """Return the remaining steps whose required stages have passed."""
        verdicts = {step.stage: step.verdict for step in steps}
        needs = {stage.name: stage.needs for stage in self.stages}
        due = [
            step
            for step in steps
            if step.verdict == RUN
            and step.stage not in ran
            and all(verdicts[name] == UP_TO_DATE for name in needs[step.stage])
        ]
        return due[: self.width]

    def _report_rest(self, steps: Sequence[PlanStep], result: ServerRunResult) -> None:
        """Report the steps that did not run, and set the worst outcome."""
        state = self.store.state(result.server)
        found, waiting = set(), {name for name, record in state.stages.items() if record.summary.get("soaking")}
        needs = {stage.name: stage.needs for stage in self.stages}
        for step in steps:
            record = state.stages.get(step.stage)
            if step.stage in waiting and step.stage in result.ran:
                continue  # the stage only waits for the end of the soak time
            if (
                step.verdict != UP_TO_DATE
                and record is not None
                and (step.stage in result.ran or step.verdict == BLOCKED)
            ):
                found.add(record.outcome)
                result.failed = result.failed or (step.stage if record.outcome != "passed" else "")
            if step.stage in result.ran:
                continue
            verdict = BLOCKED if step.verdict == RUN else step.verdict
            if step.verdict == RUN and waiting.intersection(needs[step.stage]):
                verdict = WAITING
                waiting.add(step.stage)
            self.emit(events.StageSkipped(result.server, step.stage, verdict, step.reasons))
            if verdict in {BLOCKED, HELD}:
                found.add(verdict)
        order = ("interrupted", "errored", "failed", "inconclusive", BLOCKED, HELD)
        result.outcome = next((outcome for outcome in order if outcome in found), "passed")

    def _run_steps(
        self, server: WorkspaceServer, steps: Sequence[PlanStep], announce: Callable[[Starts], None]
    ) -> None:
        """Run independent steps in parallel with retries, and record their ends in order.

        A stage is announced before it starts, and stays announced until its end is recorded.
        """
        for attempt in range(1, self.attempts + 1):
            if attempt > 1 and self.stopped.wait(min(self.backoff * 2.0 ** (attempt - 2), _LONGEST_PAUSE)):
                return
            state = self.store.state(server.name)
            reader, begun = InputReader(server, state), []
            starts = [self._start(state, step) for step in steps]
            announce(starts)
            for step in steps:
                stage = next(stage for stage in self.stages if stage.name == step.stage)
                begun.append(_StartedStage(step, stage, stage_inputs(stage, reader)))
                self.emit(events.StageStarted(server.name, stage.name, step.reasons, attempt))
            again = []
            results = self._execute_all(server, [one.stage for one in begun], state)
            for started, (outputs, seconds) in zip(begun, results, strict=True):
                self._finish(server, started, outputs, seconds)
                del starts[0]
                with suppress(StateError):  # the ended stage is in the history, so ignore the error and continue
                    announce(starts)
                if outputs.outcome in RETRIED:
                    again.append(started.step)
            steps = again
            if not steps or self.stopped.is_set():
                return

    def _start(self, state: ServerState, step: PlanStep) -> Event:
        about = {"stage": step.stage, "run": self.run_id, "reasons": list(step.reasons)}
        return self.store.make_event(state.last, STAGE_START, **about)

    def _execute_all(
        self, server: WorkspaceServer, stages: Sequence[Stage], state: ServerState
    ) -> Iterator[tuple[StageOutputs, float]]:
        artifact = find_artifact(self.workspace, state)
        if len(stages) == 1:
            yield self._execute(server, stages[0], artifact, state)
            return
        with ThreadPoolExecutor(len(stages), thread_name_prefix=server.name) as pool:
            jobs = [pool.submit(copy_context().run, self._execute, server, one, artifact, state) for one in stages]
            yield from (job.result() for job in jobs)

    def _execute(
        self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None, state: ServerState
    ) -> tuple[StageOutputs, float]:
        with self.slots:
            started = time.monotonic()
            outputs = self._execute_job(server, stage, candidate, state)
            return outputs, round(time.monotonic() - started, 3)

    def _execute_job(
        self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None, state: ServerState
    ) -> StageOutputs:
        work = self._work(server) / f"{self.run_id}-{stage.name}"
        artifacts = self.workspace.artifacts
        if "candidate" not in stage.reads:
            candidate = None
        try:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            inputs = StageInputs(
                server=server.name,
                package=server.package,
                folder=server.folder,
                root=self.workspace.root,
                work=work,
                artifacts=artifacts,
                keep=self._keep(server, stage, candidate),
                candidate=candidate,
                settings=stage.settings,
                rejection=state.sent_back.get(stage.name, {}).get("reason", ""),
            )
            return self.executor.run(
                make_job(stage, inputs, adopted=server.adopted is not None), log=self._log(server, stage)
            )
        except OSError as error:
            return StageOutputs("errored", f"{error.strerror}: {error.filename}; hint: free space, or make it writable")
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _finish(self, server: WorkspaceServer, started: _StartedStage, outputs: StageOutputs, seconds: float) -> None:
        stage = started.stage
        message = self._without_paths(outputs.message)
        outputs = replace(outputs, message=message)
        if outputs.outcome == "interrupted":
            self._record(server, "stage.interrupted", stage=stage.name, run=self.run_id, message=message)
        else:
            outputs = self._record_finished(server, started, outputs, seconds)
        self.emit(events.StageFinished(server.name, stage.name, outputs.outcome, outputs.message, seconds))
        if outputs.outcome in {"failed", "errored", "inconclusive"}:
            log = self._log(server, stage)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
            where = log.relative_to(self.workspace.root).as_posix()
            shown = failed_stage_log_excerpt(lines, outputs.summary.get("gates", ()))
            self.emit(events.FailedStageLog(server.name, stage.name, where, tuple(shown)))

    def _record_finished(
        self, server: WorkspaceServer, started: _StartedStage, outputs: StageOutputs, seconds: float
    ) -> StageOutputs:
        """Record the end of a stage, and move the channel that the stage fills."""
        stage, state = started.stage, self.store.state(server.name)
        after = stage_inputs(stage, InputReader(server, state))
        read = {name: after[name] if name in stage.writes else value for name, value in started.inputs.items()}
        candidate = find_artifact(self.workspace, state) if "candidate" in stage.reads else None
        inputs = {name: value for name, value in read.items() if name != "candidate" or not candidate}
        built = outputs.built
        made = {"version": built.version, "files": dict(built.files), "facts": dict(built.facts)} if built else None
        origin = source_provenance_inputs(InputReader(server, state)) if built else {}
        artifacts, commit = self._artifacts(server, stage, candidate), origin.get("commit", ABSENT)
        details = {"artifacts": artifacts, "reasons": list(started.step.reasons), "made_from": origin}
        manifest = write_manifest(
            self.workspace.artifacts / server.name / MANIFESTS, {"stage": stage.name, "run": self.run_id, **details}
        )
        with self.store.transaction(server.name) as transaction:
            if stage.soak and candidate:
                outputs = apply_soak_time(stage, outputs, candidate.id, transaction.events, self.store.clock)
            if stage.channel and candidate:
                outputs = self._move(transaction, stage.channel, candidate, outputs)
            transaction.append(
                "stage.finished",
                stage=stage.name,
                run=self.run_id,
                outcome=outputs.outcome,
                message=outputs.message,
                seconds=seconds,
                inputs=inputs,
                summary=dict(outputs.summary) or None,
                artifacts=shown_artifacts(self.stages, stage, artifacts) or None,
                manifest=manifest,
                candidate=built.id if built else candidate and candidate.id,
                built=made,
                commit=None if commit == ABSENT else commit,
                channel=outputs.channel,
                version=candidate.version if outputs.channel and candidate else None,
            )
        return outputs

    def _move(
        self, transaction: Transaction, channel: ChannelPolicy, candidate: Artifact, outputs: StageOutputs
    ) -> StageOutputs:
        """Move a channel, unless it was held or the server was retired during the stage."""
        if not outputs.channel:
            return outputs
        state = transaction.state
        stopped = state.retired or state.holds.get(channel.name)
        if stopped:
            word = "retired" if state.retired else "held"
            return StageOutputs("inconclusive", f"while the stage ran, it was {describe_decision(word, stopped)}")
        if wrong := next(describe_invalid_order(transaction.events), ""):
            words = f"its history has events that no run can have recorded: {wrong}"
            return StageOutputs("failed", f"{words}; hint: mcpfactory pipeline verify {state.server}")
        if words := version_reuse_fault(channel, state.candidates[candidate.id], candidate.id, transaction.events):
            return StageOutputs("failed", f"{words}; hint: mcpfactory pipeline run {state.server} --again build")
        try:
            copy_into_channel(self.workspace, channel.name, candidate, build=False)
        except StateError as error:
            return StageOutputs("errored", self._without_paths(f"{error}; hint: {error.hint}"))
        return outputs

    def _artifacts(self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None) -> dict[str, str]:
        """Return the hashes of a stage's log and reports, by path below the server's artifacts."""
        root, kept = self.workspace.artifacts / server.name, self._keep(server, stage, candidate)
        files = [self._log(server, stage), *(sorted(kept.rglob("*")) if kept.is_dir() else [])]
        return {file.relative_to(root).as_posix(): hash_file(file) for file in files if file.is_file()}

    def _keep(self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None) -> Path:
        return self.workspace.artifacts / server.name / (candidate.id if candidate else "reports") / stage.name

    def _log(self, server: WorkspaceServer, stage: Stage) -> Path:
        return log_file(self.workspace, server.name, stage.name)

    def _work(self, server: WorkspaceServer) -> Path:
        return self.workspace.artifacts / ".work" / server.name

    def _record(self, server: WorkspaceServer, kind: str, **facts: object) -> None:
        with self.store.transaction(server.name) as transaction:
            transaction.append(kind, **facts)

    def _without_paths(self, message: str) -> str:
        """Return the message without paths of this machine, because the state is shared."""
        for path, short in ((str(self.workspace.root), "."), (str(Path.home()), "~")):
            if len(path) > 1:
                message = message.replace(path, short)
        return message
