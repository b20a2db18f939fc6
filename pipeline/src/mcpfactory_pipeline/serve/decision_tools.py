"""Operations that a person confirms, as tools: decisions and `publish` if the policy permits them, and `install`.

The order: check the policy, try the operation (so that we never ask about an impossible one), ask the person, then
carry it out on the candidate named in the question, provided that nothing has changed since. The history
records the agent as actor, and the person who confirmed.
"""

from __future__ import annotations

from typing import Final

from pydantic import create_model

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.text import on_one_line, printable
from mcpfactory_pipeline.decisions.precondition import StaleDecisionError, changed_facts
from mcpfactory_pipeline.operations.decisions import Decision
from mcpfactory_pipeline.operations.install import Install
from mcpfactory_pipeline.operations.operation import ConfirmedOperation, OperationContext, OperationResult
from mcpfactory_pipeline.operations.publish import Publish
from mcpfactory_pipeline.operations.table import CONFIRMED, DECISIONS
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, person
from mcpfactory_pipeline.serve.operation_tool import tool_of
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.types import Json

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
