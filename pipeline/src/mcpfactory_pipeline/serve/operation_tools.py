"""Tools of the agents' server, one for each operation that agents may use.

The tool of a `ConfirmedOperation` checks the policy, makes a dry run, and asks a person. After the person's
confirmation, the tool executes the operation on the candidate in the question, unless the facts have changed. The
history records the agent, and the person who confirmed.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from mcpfactory_pipeline.base import events, ids
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.text import join_lines, printable
from mcpfactory_pipeline.decisions.precondition import StaleDecisionError, changed_facts
from mcpfactory_pipeline.operations.decisions import DECISIONS, Decision
from mcpfactory_pipeline.operations.install import Install
from mcpfactory_pipeline.operations.operation import (
    ConfirmedOperation,
    FieldPresentation,
    Operation,
    OperationContext,
    OperationResult,
)
from mcpfactory_pipeline.operations.publish import Publish
from mcpfactory_pipeline.operations.run import Run, RunResult, StageRun
from mcpfactory_pipeline.operations.table import OPERATIONS
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.serve.workspace_access import (
    WorkspaceAccess,
    agent_name,
    client_person,
    errors_as_tool_errors,
    run_in_stoppable_thread,
)
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.types import Json

# Maximum questions to a person about one operation. If the facts change, the person is asked again.
_ASKED: Final = 3
_FORM: Final[Json] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes, do it"}},
    "required": ["yes"],
}
_RUN: Final = (
    "It takes minutes, and reports each step. A failed stage is not an error of this tool: `findings` and `log` return "
    "the details. If canceled, the run ends cleanly, and finished results are kept."
)


class OperationTools:
    """Tools for the operations on one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Add a tool for each operation that agents may use. Add `install` only if the client is on this machine."""
        for operation in OPERATIONS:
            if "mcp" in operation.omit or (operation is Install and not self._access.local):
                continue
            hints = {"readOnlyHint": False, "destructiveHint": operation.destructive}
            hints |= {"idempotentHint": operation.idempotent, "openWorldHint": operation not in DECISIONS}
            task: Literal["optional"] | None = "optional" if operation is Run else None
            server.tool(title=operation.title, annotations=hints, task=task)(self._tool(operation))

    def _tool(self, operation: type[Operation]) -> Callable[..., Any]:
        if operation is Run:
            return make_operation_tool(Run, self._run, returns=RunResult, about=_RUN)
        if issubclass(operation, ConfirmedOperation):
            returns = _confirmed_result(operation)
            confirm = partial(self._confirm, returns=returns)
            return make_operation_tool(operation, confirm, returns=returns, about="A person is asked first.")
        return make_operation_tool(operation, self._execute, returns=operation.result, dry_run=True)

    async def _execute(self, ctx: Context, wanted: Operation, **options: Any) -> OperationResult:
        who = agent_name(ctx)

        def perform(stop: Event) -> OperationResult:
            with ids.acting_as(who):
                return wanted.run(OperationContext(self._access.workspace(), access=self._access, stop=stop, **options))

        return await run_in_stoppable_thread(perform)

    async def _run(self, ctx: Context, wanted: Run) -> OperationResult:
        reporter = _ProgressReporter(ctx)
        done = await self._execute(ctx, wanted, reporter=reporter)
        return done.model_copy(update={"steps": reporter.steps, "server_errors": reporter.server_errors})

    async def _confirm(
        self, ctx: Context, asked: ConfirmedOperation, *, returns: type[OperationResult]
    ) -> OperationResult:
        """Execute an operation after a person confirmed it. If the facts have changed, show the changes and ask again.

        The key of the question covers every confirmed value, so an answer to an earlier question does not count.
        """
        await self._access.read(_refuse_agents, asked)
        tried, changed, who = await self._try(ctx, asked), "", agent_name(ctx)
        for _ in range(_ASKED):
            reason = printable(join_lines(getattr(asked, "reason", "")))
            shown = (printable(join_lines(one)) for one in tried.details)
            its = [f"Its reason: {reason}"] * bool(reason)
            message = "\n".join((f"{changed}{who} asks: {asked.ask(tried)}", *shown, *its))
            answer = await ctx.elicit(message, _FORM, key=asked.subject(tried))
            if not (answer.accepted and answer.content.get("yes") is True):
                raise ToolError("Nothing was changed: the person did not confirm the action.")
            confirmed = client_person(ctx)
            made = await self._access.read(_make, asked.bind(tried), who, confirmed)
            if isinstance(made, OperationResult):
                return returns.model_validate(
                    {**dict(made), "decision": asked.id(), "actor": who, "confirmed": confirmed}
                )
            changes = changed_facts(getattr(tried, "precondition", ""), made.facts, getattr(tried, "facts", {}))
            changed = "".join(f"Since you were asked, this has changed: {one.words}\n" for one in changes)
            tried = await self._try(ctx, asked.model_copy(update={"precondition": ""}))
        raise ToolError(f"{changed}Nothing was changed: the state changed each time before the person answered.")

    async def _try(self, ctx: Context, asked: ConfirmedOperation) -> OperationResult:

        def check(workspace: Workspace) -> OperationResult:
            with ids.acting_as(agent_name(ctx), client_person(ctx)):
                return asked.run(OperationContext(workspace, dry_run=True))

        tried = await self._access.read(check)
        if refused := tried.errors():
            raise ToolError("\n".join(f"{message}\nhint: {hint}" for message, hint in refused))
        return tried


def make_operation_tool(
    operation: type[Operation],
    perform: Callable[..., Awaitable[Any]],
    *,
    returns: type,
    about: str = "",
    dry_run: bool = False,
) -> Callable[..., Any]:
    """Return the tool of an operation as a function for `Server.tool`.

    Args:
        operation: its docstring is the tool's description, and its fields are the tool's parameters.
        perform: executes the operation; gets the context of the call and the operation.
        returns: type of the result.
        about: text to append to the description.
        dry_run: True if the tool has a parameter `dry_run`, which is passed to `perform`.
    """

    async def tool(ctx: Context, **values: Any) -> Any:
        options = {"dry_run": values.pop("dry_run", False)} if dry_run else {}
        with errors_as_tool_errors():
            wanted = operation.read(values)
        return await perform(ctx, wanted, **options)

    tool.__name__ = operation.id()
    tool.__doc__ = f"{operation.help()}\n\n{about}".strip()
    parameters = [_parameter("ctx", Context), *_parameters(operation)]
    if dry_run:
        parameters.append(
            _parameter("dry_run", Annotated[bool, Field(description="Check everything; write nothing")], False)
        )
    tool.__signature__ = inspect.Signature(parameters, return_annotation=returns)  # type: ignore[attr-defined] # functions have it
    tool.__annotations__ = {**{one.name: one.annotation for one in parameters}, "return": returns}
    return tool


def _parameters(operation: type[Operation]) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field. The parameter `reason` is required."""
    for name, info, param in operation.fields("mcp"):
        bounds = [one for one in info.metadata if not isinstance(one, FieldPresentation)]
        texts = Field(description=info.description, examples=info.examples, min_length=1 if name == "reason" else None)
        required = info.is_required() or name == "reason" or (param.names == "servers" and info.annotation is str)
        default = inspect.Parameter.empty if required else info.default
        yield _parameter(name, Annotated[info.annotation, *bounds, texts], default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _confirmed_result(operation: type[ConfirmedOperation]) -> type[OperationResult]:
    """Return an operation's result type with additional members for decision, agent and confirming person."""
    name = f"Confirmed{operation.result.__name__}"
    about = f"{operation.result.__doc__} A person confirmed it."
    return create_model(name, __base__=operation.result, __doc__=about, decision=str, actor=str, confirmed=str)


def _make(
    workspace: Workspace, asked: ConfirmedOperation, who: str, confirmed: str
) -> OperationResult | StaleDecisionError:
    """Execute an operation. Return an error if the facts have changed since the person was asked."""
    with ids.acting_as(who, confirmed):
        try:
            return asked.run(OperationContext(workspace))
        except StaleDecisionError as error:
            return error


def _refuse_agents(workspace: Workspace, asked: ConfirmedOperation) -> None:
    """Raise `PromotionError` if the policy of the channel or stage does not permit agents to decide."""
    if not isinstance(asked, Decision | Publish):
        return
    name, stage = asked.id(), getattr(asked, "stage", "")
    if stage:
        known = {one.name: one.approval for one in workspace_stages(workspace)}.get(stage)
        permitted = known is None or name in known.agents
        what, table, option = f"stage {stage}", "stages", f" --stage {stage}"
    else:
        permitted = name in find_channel(read_channels(workspace), asked.channel).agents
        what, table, option = f"channel {asked.channel}", "channels", f" --channel {asked.channel}"
    if not permitted:
        raise PromotionError(
            f"{what} does not permit agents to {name}",
            hint=f"ask a person to run 'mcpfactory {asked.command} {asked.server}{option}', or to add agents = "
            f'["{name}"] to [[pipeline.{table}]] {what.partition(" ")[2]} in {CONFIG}',
        )


def add_log_to_stage(steps: list[StageRun], event: events.FailedStageLog) -> None:
    """Add a log to the step that wrote the log."""
    for number, step in reversed(list(enumerate(steps))):
        if (step.server, step.stage) == (event.server, event.stage):
            steps[number] = replace(step, log=list(event.lines))
            return


class _ProgressReporter(events.Reporter):
    """Reports the progress of a run to the client."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._done, self._total = 0, 0
        self.steps: list[StageRun] = []
        self.server_errors: list[str] = []

    def emit(self, event: events.RunEvent) -> None:
        if isinstance(event, events.RunStarted):
            self._total = 2 * len(event.servers) * len(event.stages)
            self._report(0, f"{len(event.servers)} servers, {len(event.stages)} stages")
        elif isinstance(event, events.StageStarted):
            self._report(event.attempt == 1, f"{event.server}: {event.stage} ({'; '.join(event.reasons)})")
        elif isinstance(event, events.StageFinished):
            self.steps.append(StageRun(event.server, event.stage, event.outcome, event.message, event.seconds))
            self._report(1, f"{event.server}: {event.stage} {event.outcome}: {event.message}")
        elif isinstance(event, events.StageSkipped):
            self._report(2, f"{event.server}: {event.stage} {event.verdict}")
        elif isinstance(event, events.FailedStageLog):
            add_log_to_stage(self.steps, event)
        elif isinstance(event, events.ServerUnusable):
            self.server_errors.append(
                f"{event.server}: {event.message}" + (f"\nhint: {event.hint}" if event.hint else "")
            )
        elif isinstance(event, events.RunWaiting):
            self._report(0, f"{event.server}: another process runs its stages; waiting")

    def _report(self, count: int, message: str) -> None:
        self._done += count
        self._ctx.report_progress(self._done, max(self._total, self._done) or None, message)
