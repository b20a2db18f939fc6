"""Tools of the agents' server that follow from operations: runs, and decisions that a person confirms.

The order: check the policy, try the operation (so that we never ask about an impossible one), ask the person, then
carry it out on the candidate named in the question, provided that nothing has changed since. The history
records the agent as actor, and the person who confirmed.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from threading import Event
from typing import Annotated, Any, Final

from pydantic import Field, create_model

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.errors import PromotionError
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
from mcpfactory_pipeline.base.text import on_one_line, printable
from mcpfactory_pipeline.decisions.precondition import StaleDecisionError, changed_facts
from mcpfactory_pipeline.operations.decisions import Decision
from mcpfactory_pipeline.operations.install import Install
from mcpfactory_pipeline.operations.operation import (
    ConfirmedOperation,
    Operation,
    OperationContext,
    OperationResult,
    Param,
)
from mcpfactory_pipeline.operations.publish import Publish
from mcpfactory_pipeline.operations.run import Run, RunResult, StepRun
from mcpfactory_pipeline.operations.table import CONFIRMED, DECISIONS, OPERATIONS
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, as_tool_error, in_stoppable_thread, person
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.types import Json


def tool_of(
    operation: type[Operation],
    perform: Callable[..., Awaitable[Any]],
    *,
    returns: type,
    about: str = "",
    dry_run: bool = False,
) -> Callable[..., Any]:
    """Return the tool of an operation as a function for `Server.tool`.

    Args:
        operation: its docstring is the description, its fields are the parameters.
        perform: carries out an operation for a caller, given the context and the operation.
        returns: the type of the result.
        about: more for the description.
        dry_run: whether the tool has a parameter `dry_run`, which `perform` receives.
    """

    async def tool(ctx: Context, **values: Any) -> Any:
        options = {"dry_run": values.pop("dry_run", False)} if dry_run else {}
        with as_tool_error():
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
    """Yield a parameter for each field; an agent gives a reason for each decision."""
    for name, info, param in operation.fields("mcp"):
        bounds = [one for one in info.metadata if not isinstance(one, Param)]
        texts = Field(description=info.description, examples=info.examples, min_length=1 if name == "reason" else None)
        required = info.is_required() or name == "reason" or (param.names == "servers" and info.annotation is str)
        default = inspect.Parameter.empty if required else info.default
        yield _parameter(name, Annotated[info.annotation, *bounds, texts], default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_ASKED: Final = 3  # times that a person is asked while things change
_FORM: Final[Json] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes, do it"}},
    "required": ["yes"],
}


class DecisionTools:
    """The tools, on one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offer a tool for each operation that a person confirms; `install` only on the machine of the client."""
        for operation in CONFIRMED:
            if operation is Install and not self._access.local:
                continue
            hints = {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": operation.destructive}
            hints["openWorldHint"] = operation not in DECISIONS
            returns = _confirmed_result(operation)

            async def perform(
                ctx: Context, asked: ConfirmedOperation, returns: type[OperationResult] = returns
            ) -> OperationResult:
                return await self._perform(ctx, asked, returns)

            tool = tool_of(operation, perform, returns=returns, about="A person is asked first.")
            server.tool(title=operation.title, annotations=hints)(tool)

    async def _perform(
        self, ctx: Context, asked: ConfirmedOperation, returns: type[OperationResult]
    ) -> OperationResult:
        """Return the result after a person confirmed it. After a change, explain it and ask again.

        The question key includes every confirmed value. An answer to an earlier version of the question therefore does
        not count.
        """
        if not self._access.local and ctx.principal is None:  # any program of this machine reaches a port
            raise ToolError(
                "Over HTTP, decisions require callers that are identified, but this server has no "
                "authorization.\nhint: mcpfactory serve --http --token env:NAME, or serve on stdio"
            )
        await self._access.read(_refuse_agents, asked)
        tried, changed, who = await self._try(ctx, asked), "", agent(ctx)
        for _ in range(_ASKED):
            reason = printable(on_one_line(getattr(asked, "reason", "")))
            shown = (printable(on_one_line(one)) for one in tried.details)
            its = [f"Its reason: {reason}"] * bool(reason)
            message = "\n".join((f"{changed}{who} asks: {asked.ask(tried)}", *shown, *its))
            answer = await ctx.elicit(message, _FORM, key=asked.subject(tried))
            if not (answer.accepted and answer.content.get("yes") is True):
                raise ToolError("The person did not confirm it, so nothing was changed.")
            confirmed = person(ctx)
            made = await self._access.read(_make, asked.bind(tried), who, confirmed)
            if isinstance(made, OperationResult):
                return returns.model_validate(
                    {**dict(made), "decision": asked.id(), "actor": who, "confirmed": confirmed}
                )
            changes = changed_facts(getattr(tried, "precondition", ""), made.facts, getattr(tried, "facts", {}))
            changed = "".join(f"Since you were asked, this has changed: {one.words}\n" for one in changes)
            tried = await self._try(ctx, asked.model_copy(update={"precondition": ""}))
        raise ToolError(f"{changed}The state changed each time while the person was asked, so nothing was changed.")

    async def _try(self, ctx: Context, asked: ConfirmedOperation) -> OperationResult:
        """Check an operation without carrying it out."""

        def check(workspace: Workspace) -> OperationResult:
            with ids.acting_as(agent(ctx), person(ctx)):
                return asked.run(OperationContext(workspace, dry_run=True))

        tried = await self._access.read(check)
        if refused := tried.errors():
            raise ToolError("\n".join(f"{message}\nhint: {hint}" for message, hint in refused))
        return tried


def _confirmed_result(operation: type[ConfirmedOperation]) -> type[OperationResult]:
    """Return the type of an operation's result, with who carried it out and who confirmed it."""
    name = f"Confirmed{operation.result.__name__}"
    about = f"{operation.result.__doc__} A person confirmed it."
    return create_model(name, __base__=operation.result, __doc__=about, decision=str, actor=str, confirmed=str)


def _make(
    workspace: Workspace, asked: ConfirmedOperation, who: str, confirmed: str
) -> OperationResult | StaleDecisionError:
    """Carry an operation out, or return the error that the facts have changed since the person was asked."""
    with ids.acting_as(who, confirmed):
        try:
            return asked.run(OperationContext(workspace))
        except StaleDecisionError as error:
            return error


def _refuse_agents(workspace: Workspace, asked: ConfirmedOperation) -> None:
    """Raise `PromotionError` unless the policy of the channel or stage leaves the operation to agents.

    For a stage that is not an approval stage, the decision itself raises the error. `install` is about no channel.
    """
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
            hint=f'ask a person: mcpfactory {asked.command} {asked.server}{option}. agents = ["{name}"] in the '
            f"[[pipeline.{table}]] named {what.partition(' ')[2]} of {CONFIG} permits it; that is for a person to "
            "write, not for an agent",
        )


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
