"""One server's way through its stages: what is due runs, one stage after the other, and each result is recorded at once."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError, StateError
from mcpfactory_pipeline.base.events import (
    LogLines,
    RunEvent,
    ServerTrouble,
    StepFinished,
    StepSkipped,
    StepStarted,
    Waiting,
)
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.locks import run_lock
from mcpfactory_pipeline.channels.candidate import artifact_of, publish_candidate
from mcpfactory_pipeline.executors import Executor
from mcpfactory_pipeline.plan.fingerprint import InputReader, fingerprint, provenance, read_inputs, stage_inputs
from mcpfactory_pipeline.plan.plan import BLOCKED, RUN, UP_TO_DATE, PlanStep, plan
from mcpfactory_pipeline.plan.policy import describe_decision
from mcpfactory_pipeline.plan.stage import RETRIED, Artifact, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.job import make_job
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store, Transaction, unfinished_starts, verified_state
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["Runner", "ServerResult", "retry_delay", "server_plan"]

_SHOWN_LINES: Final = 15
_LONGEST_PAUSE: Final = 60.0  # seconds


@dataclass(slots=True)
class ServerResult:
    """How the run of one server ended: the worst outcome, and which stages ran."""

    server: str
    outcome: str = "passed"
    ran: list[str] = field(default_factory=list)


def server_plan(
    workspace: Workspace,
    server: WorkspaceServer,
    stages: Sequence[Stage],
    state: ServerState,
    force: Sequence[str] = (),
    *,
    inputs: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[PlanStep, ...]:
    """Return the plan of one server, from what is on disk now; `inputs` where they have been read already."""
    inputs = read_inputs(stages, InputReader(server, state)) if inputs is None else inputs
    artifact = artifact_of(workspace, state)
    present = artifact is None or all((artifact.folder / name).exists() for name in artifact.files)
    return plan(stages, state, inputs, force=force, present=present)


def retry_delay(attempt: int, backoff: float) -> float:
    """Seconds to wait before an attempt (the second is the first that waits): doubled each time, one minute at most."""
    return min(backoff * float(1 << max(0, attempt - 2)), _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Runner:
    """What the runs of all servers share."""

    workspace: Workspace
    stages: tuple[Stage, ...]
    store: Store
    executor: Executor
    emit: Callable[[RunEvent], None]
    run_id: str
    pid: int
    attempts: int
    backoff: float
    stopped: threading.Event

    def run(self, server: WorkspaceServer, *, force: bool = False) -> ServerResult:
        """Run the stages of one server that are due. What goes wrong is reported and is its outcome; other servers go on."""
        try:
            if not force and (done := self._up_to_date(server)):
                return done
            with run_lock(
                self.store.locks,
                server.name,
                self.run_id,
                waiting=lambda holder: self.emit(Waiting(server.name, holder)),
                stopped=self.stopped.is_set,
            ) as announce:
                self._recover(server)
                return self._steps(server, [stage.name for stage in self.stages] if force else [], announce)
        except InterruptedError:
            return ServerResult(server.name, "interrupted")
        except PipelineError as error:
            self.emit(ServerTrouble(server.name, str(error), error.hint))
            return ServerResult(server.name, "errored")

    def _up_to_date(self, server: WorkspaceServer) -> ServerResult | None:
        """Return the result for a server that is settled and where all is up to date: no lock, no history."""
        state = verified_state(self.store, server.name)
        if state is None:
            return None
        steps = server_plan(self.workspace, server, self.stages, state)
        if any(step.verdict != UP_TO_DATE for step in steps):
            return None
        for step in steps:
            self.emit(StepSkipped(server.name, step.stage, step.verdict, step.reasons))
        return ServerResult(server.name)

    def _recover(self, server: WorkspaceServer) -> None:
        """Record stages that were started and never ended: we hold the run lock, so whoever ran them is gone."""
        with self.store.transaction(server.name) as transaction:
            for event in unfinished_starts(transaction.events):
                transaction.append(
                    "stage.interrupted",
                    stage=event["stage"],
                    run=event["run"],
                    message="the run died while this stage ran",
                )
        shutil.rmtree(self._work(server), ignore_errors=True)

    def _steps(self, server: WorkspaceServer, force: list[str], announce: Callable[[str], None]) -> ServerResult:
        result = ServerResult(server.name)
        while not self.stopped.is_set():
            state = self.store.derived(server.name)
            steps = server_plan(self.workspace, server, self.stages, state, force)
            step = self._next(steps, result.ran)
            if step is None:
                self._report_rest(steps, result)
                return result
            if step.stage in force:
                force.remove(step.stage)
            announce(step.stage)
            self._run_step(server, step)
            result.ran.append(step.stage)
        result.outcome = "interrupted"
        return result

    def _next(self, steps: Sequence[PlanStep], ran: Sequence[str]) -> PlanStep | None:
        """Return the first step that is due, was not run yet, and whose needs are satisfied."""
        verdicts = {step.stage: step.verdict for step in steps}
        needs = {stage.name: stage.needs for stage in self.stages}
        return next(
            (
                step
                for step in steps
                if step.verdict == RUN
                and step.stage not in ran
                and all(verdicts[name] == UP_TO_DATE for name in needs[step.stage])
            ),
            None,
        )

    def _report_rest(self, steps: Sequence[PlanStep], result: ServerResult) -> None:
        """Report what did not run, and take the worst outcome: a stage that still must run did not pass."""
        state = self.store.derived(result.server)
        found = set()
        for step in steps:
            record = state.stages.get(step.stage)
            if (
                step.verdict != UP_TO_DATE
                and record is not None
                and (step.stage in result.ran or step.verdict == BLOCKED)
            ):
                found.add(record.outcome)
            if step.stage in result.ran:
                continue
            verdict = BLOCKED if step.verdict == RUN else step.verdict
            self.emit(StepSkipped(result.server, step.stage, verdict, step.reasons))
            if verdict == BLOCKED:
                found.add("blocked")
        order = ("interrupted", "errored", "failed", "inconclusive", "blocked")
        result.outcome = next((outcome for outcome in order if outcome in found), "passed")

    def _run_step(self, server: WorkspaceServer, step: PlanStep) -> None:
        stage = next(stage for stage in self.stages if stage.name == step.stage)
        for attempt in range(1, self.attempts + 1):
            if attempt > 1 and self.stopped.wait(retry_delay(attempt, self.backoff)):
                return
            state = self.store.derived(server.name)
            before = stage_inputs(stage, InputReader(server, state))
            self._record(
                server, "stage.started", stage=stage.name, run=self.run_id, pid=self.pid, reasons=list(step.reasons)
            )
            self.emit(StepStarted(server.name, stage.name, step.reasons, attempt))
            started = time.monotonic()
            outputs = self._execute(server, stage, artifact_of(self.workspace, state))
            seconds = round(time.monotonic() - started, 3)
            self._finish(server, stage, before, outputs, seconds)
            if outputs.outcome not in RETRIED or self.stopped.is_set():
                return

    def _execute(self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None) -> StageOutputs:
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
            )
            return self.executor.run(make_job(stage, inputs), log=self._log(server, stage))
        except OSError as error:
            return StageOutputs("errored", f"{error.strerror}: {error.filename}; hint: free space, or make it writable")
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _finish(
        self, server: WorkspaceServer, stage: Stage, before: dict[str, str], outputs: StageOutputs, seconds: float
    ) -> None:
        message = self._without_paths(outputs.message)
        outputs = replace(outputs, message=message)
        if outputs.outcome == "interrupted":
            self._record(server, "stage.interrupted", stage=stage.name, run=self.run_id, message=message)
        else:
            outputs = self._record_finished(server, stage, before, outputs, seconds)
        self.emit(StepFinished(server.name, stage.name, outputs.outcome, outputs.message, seconds))
        if outputs.outcome in {"failed", "errored", "inconclusive"}:
            log = self._log(server, stage)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
            where = log.relative_to(self.workspace.root).as_posix()
            self.emit(LogLines(server.name, stage.name, where, tuple(lines[-_SHOWN_LINES:])))

    def _record_finished(
        self, server: WorkspaceServer, stage: Stage, before: dict[str, str], outputs: StageOutputs, seconds: float
    ) -> StageOutputs:
        """Record how a stage ended, and move the channel that it fills; what came of it may be another outcome."""
        state = self.store.derived(server.name)
        after = stage_inputs(stage, InputReader(server, state))
        inputs = {name: after[name] if name in stage.writes else value for name, value in before.items()}
        candidate = artifact_of(self.workspace, state) if "candidate" in stage.reads else None
        built = outputs.built
        made = {"version": built.version, "files": dict(built.files), "facts": dict(built.facts)} if built else None
        origin = provenance(InputReader(server, state)) if built else None
        with self.store.transaction(server.name) as transaction:
            if stage.channel and candidate:
                outputs = self._move(transaction, stage.channel.name, candidate, outputs)
            transaction.append(
                "stage.finished",
                stage=stage.name,
                run=self.run_id,
                outcome=outputs.outcome,
                message=outputs.message,
                seconds=seconds,
                inputs=inputs,
                fingerprint=fingerprint(inputs),
                summary=dict(outputs.summary),
                artifacts=self._artifacts(server, stage, candidate),
                candidate=built.id if built else candidate and candidate.id,
                built=made,
                made_from=origin,
                channel=outputs.channel,
                version=candidate.version if outputs.channel and candidate else None,
            )
        return outputs

    def _move(self, transaction: Transaction, channel: str, candidate: Artifact, outputs: StageOutputs) -> StageOutputs:
        """Move a channel, unless it was held, or the server retired, while the stage ran."""
        if not outputs.channel:
            return outputs
        state = transaction.state
        stopped = state.retired or state.holds.get(channel)
        if stopped:
            word = "retired" if state.retired else "held"
            return StageOutputs("inconclusive", f"while the stage ran, it was {describe_decision(word, stopped)}")
        try:
            publish_candidate(self.workspace, channel, candidate, build=False)
        except StateError as error:
            return StageOutputs("errored", self._without_paths(f"{error}; hint: {error.hint}"))
        return outputs

    def _artifacts(self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None) -> dict[str, str]:
        """Return the log and the kept reports of a stage with their hashes, by their path below the server's artifacts."""
        root, kept = self.workspace.artifacts / server.name, self._keep(server, stage, candidate)
        files = [self._log(server, stage), *(sorted(kept.rglob("*")) if kept.is_dir() else [])]
        return {file.relative_to(root).as_posix(): hash_file(file) for file in files if file.is_file()}

    def _keep(self, server: WorkspaceServer, stage: Stage, candidate: Artifact | None) -> Path:
        return self.workspace.artifacts / server.name / (candidate.id if candidate else "reports") / stage.name

    def _log(self, server: WorkspaceServer, stage: Stage) -> Path:
        return self.workspace.artifacts / server.name / "logs" / f"{stage.name}.log"

    def _work(self, server: WorkspaceServer) -> Path:
        return self.workspace.artifacts / ".work" / server.name

    def _record(self, server: WorkspaceServer, kind: str, **facts: object) -> None:
        with self.store.transaction(server.name) as transaction:
            transaction.append(kind, **facts)

    def _without_paths(self, message: str) -> str:
        """State is tracked and shared: no path of this machine in it."""
        for path, short in ((str(self.workspace.root), "."), (str(Path.home()), "~")):
            if len(path) > 1:
                message = message.replace(path, short)
        return message
