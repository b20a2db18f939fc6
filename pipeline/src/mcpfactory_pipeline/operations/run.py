from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from pydantic import Field

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.operations.operation import (
    Omitted,
    Operation,
    OperationContext,
    OperationResult,
    Servers,
    param,
)
from mcpfactory_pipeline.plan.plan import PlanStep
from mcpfactory_pipeline.run.run import RunOutcome, plan_servers, run_pipeline

_HERE: Final[Omitted] = {
    "dashboard": "the dashboard's machine determines the value",
    "mcp": "the machine of the agent's server determines the value",
}


@dataclass(frozen=True, slots=True)
class StageRun:
    """Run of a stage with an outcome such as `passed`. `log` is the end of its log."""

    server: str
    stage: str
    outcome: str
    message: str
    seconds: float
    log: list[str] = field(default_factory=list)


class RunResult(OperationResult):
    """Result of a run: worst outcome of each server, executed stages, and errors before the first stage."""

    passed: bool
    servers: dict[str, str]
    steps: list[StageRun] = Field(default=[])
    server_errors: list[str] = Field(default=[])


class Run(Operation):
    """Run the stages that are not up to date.

    The default stages generate, build, test and validate servers, and promote them to staging.
    """

    command: ClassVar[str] = "pipeline run"
    title: ClassVar[str] = "Run"
    idempotent: ClassVar[bool] = True
    json_help: ClassVar[str] = "Print the events of the run, one JSON object per line"
    result: ClassVar[type[OperationResult]] = RunResult

    servers: Servers = ()
    until: str = param("Stop after this stage", "", metavar="STAGE", names="stages")
    again: str = param(
        "Run this stage and its dependents again, even if the inputs are unchanged",
        "",
        metavar="STAGE",
        names="stages",
    )
    force: bool = param("Also run stages that are up to date", False)
    jobs: int = param(
        "Run this number of servers in parallel (0: as many as cores and memory allow)",
        0,
        ge=0,
        flags=("--jobs", "-j"),
        metavar="N",
        omit=_HERE,
    )
    executor: str = param(
        "Run stages in local processes, on a new dask cluster, or on the dask cluster at ADDRESS",
        "",
        metavar="local|dask|ADDRESS",
        omit=_HERE,
    )

    def plan(self, context: OperationContext) -> list[PlanStep]:
        """Return the steps of the run without running them."""
        return plan_servers(
            context.workspace,
            self.servers or None,
            until=self.until or None,
            again=self.again or None,
            force=self.force,
            stages=context.stages,
        )

    def carry_out(self, context: OperationContext) -> RunOutcome:
        """Run the stages, and report their events to the context's reporter."""
        return run_pipeline(
            context.workspace,
            self.servers or None,
            until=self.until or None,
            again=self.again or None,
            force=self.force,
            jobs=self.jobs or None,
            executor=self.executor or None,
            reporter=context.reporter,
            stages=context.stages,
            stop=context.stop,
            run_id=context.run_id,
        )

    def run(self, context: OperationContext) -> RunResult:
        """Run the stages; in a dry run, return the servers that have stages to run."""
        if context.dry_run:
            due = [step.server for step in self.plan(context) if step.verdict == "run"]
            message = f"{pluralize(len(due), 'stage')} to run"
            return RunResult(message=message, passed=True, servers=dict.fromkeys(due, "would run"), dry_run=True)
        outcome = self.carry_out(context)
        passed = not (outcome.interrupted or outcome.errored or outcome.failed)
        return RunResult(message=f"{pluralize(outcome.ran, 'stage')} ran", passed=passed, servers=dict(outcome.servers))
