"""Tools of operations that need no confirmation: they move no channel but the one that runs fill."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Final

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.events import (
    LogLines,
    RunEvent,
    RunStarted,
    ServerTrouble,
    StepFinished,
    StepSkipped,
    StepStarted,
    Waiting,
)
from mcpfactory_pipeline.operations.operation import Operation, OperationContext, OperationResult
from mcpfactory_pipeline.operations.run import Run, RunResult, StepRun
from mcpfactory_pipeline.operations.table import CONFIRMED, OPERATIONS
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, in_stoppable_thread
from mcpfactory_pipeline.serve.operation_tool import tool_of
from mcpfactory_runtime import Context, Server


class PipelineTools:
    """The tools, on one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offer a tool for each operation that no person confirms."""
        for operation in OPERATIONS:
            if "mcp" in operation.omit or operation in CONFIRMED:
                continue
            hints = {"readOnlyHint": False, "destructiveHint": operation.destructive, "openWorldHint": True}
            hints["idempotentHint"] = operation.idempotent
            if operation is Run:
                run = tool_of(Run, self._run, returns=RunResult, about=_RUN)
                server.tool(title=Run.title, annotations=hints, task="optional")(run)
            else:
                tool = tool_of(operation, self._perform, returns=operation.result, dry_run=True)
                server.tool(title=operation.title, annotations=hints)(tool)

    async def _perform(self, ctx: Context, wanted: Operation, *, dry_run: bool) -> OperationResult:
        who = agent(ctx)

        def perform(stop: Event) -> OperationResult:
            with ids.acting_as(who):
                return wanted.run(
                    OperationContext(self._access.workspace(), dry_run=dry_run, access=self._access, stop=stop)
                )

        return await in_stoppable_thread(perform)

    async def _run(self, ctx: Context, wanted: Run) -> RunResult:
        reporter, who = _ProgressReporter(ctx), agent(ctx)

        def work(stop: Event) -> RunResult:
            with ids.acting_as(who):
                return wanted.run(OperationContext(self._access.workspace(), reporter=reporter, stop=stop))

        done = await in_stoppable_thread(work)
        return done.model_copy(update={"steps": reporter.steps, "troubles": reporter.troubles})


_RUN: Final = (
    "It takes minutes, and reports each step. A failed stage is not an error of this tool: `findings` and `log` return "
    "the details. If canceled, the run ends cleanly, and finished results are kept."
)


def add_log(steps: list[StepRun], event: LogLines) -> None:
    """Add a log to its step: servers run in parallel, so the last step may be another server's."""
    for number, step in reversed(list(enumerate(steps))):
        if (step.server, step.stage) == (event.server, event.stage):
            steps[number] = replace(step, log=list(event.lines))
            return


class _ProgressReporter:
    """A reporter that tells the client how far a run is. Events come from several threads, one at a time."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._done, self._total = 0, 0
        self.steps: list[StepRun] = []
        self.troubles: list[str] = []

    def emit(self, event: RunEvent) -> None:
        """Count a beginning and an end of each stage, and keep how it ended."""
        if isinstance(event, RunStarted):
            self._total = 2 * len(event.servers) * len(event.stages)
            self._report(0, f"{len(event.servers)} servers, {len(event.stages)} stages")
        elif isinstance(event, StepStarted):
            self._report(event.attempt == 1, f"{event.server}: {event.stage} ({'; '.join(event.reasons)})")
        elif isinstance(event, StepFinished):
            self.steps.append(StepRun(event.server, event.stage, event.outcome, event.message, event.seconds))
            self._report(1, f"{event.server}: {event.stage} {event.outcome}: {event.message}")
        elif isinstance(event, StepSkipped):
            self._report(2, f"{event.server}: {event.stage} {event.verdict}")
        elif isinstance(event, LogLines):
            add_log(self.steps, event)
        elif isinstance(event, ServerTrouble):
            self.troubles.append(f"{event.server}: {event.message}" + (f"\nhint: {event.hint}" if event.hint else ""))
        elif isinstance(event, Waiting):
            self._report(0, f"{event.server}: another process runs its stages; waiting")

    def _report(self, count: int, message: str) -> None:
        self._done += count
        self._ctx.report_progress(self._done, max(self._total, self._done) or None, message)

    def close(self) -> None:
        """Leave the rest to the answer of the tool."""
