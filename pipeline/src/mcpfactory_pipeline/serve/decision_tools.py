"""Decisions as tools: only those that the policy permits to agents, each confirmed by a person.

The order: check the policy, try the decision (so that we never ask about an impossible one), ask the person, then
make the decision about the candidate named in the question, provided that nothing has changed since. The history
records the agent as actor, and the person who confirmed.
"""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.text import on_one_line, printable
from mcpfactory_pipeline.decisions.precondition import StaleDecisionError, changed_facts
from mcpfactory_pipeline.operations.decisions import Decision, DecisionResult
from mcpfactory_pipeline.operations.operation import OperationContext
from mcpfactory_pipeline.operations.table import DECISIONS
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, person
from mcpfactory_pipeline.serve.operation_tool import tool_of
from mcpfactory_pipeline.serve.results import ConfirmedDecision
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
        """Offer a tool for each decision."""
        for operation in DECISIONS:
            hints = {"readOnlyHint": False, "idempotentHint": False, "openWorldHint": False}
            hints["destructiveHint"] = operation.destructive
            tool = tool_of(operation, self._decide, returns=ConfirmedDecision, about="A person is asked first.")
            server.tool(title=operation.title, annotations=hints)(tool)

    async def _decide(self, ctx: Context, asked: Decision) -> ConfirmedDecision:
        """Return the decision after a person confirmed it. After a change, explain it and ask again.

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
            reason = printable(on_one_line(asked.reason))
            shown = (printable(on_one_line(one)) for one in tried.details)
            message = "\n".join((f"{changed}{who} asks: {asked.ask(tried)}", *shown, f"Its reason: {reason}"))
            subject = "-".join((asked.id(), asked.server, tried.stage or asked.channel, tried.precondition))
            answer = await ctx.elicit(message, _FORM, key=subject)
            if not (answer.accepted and answer.content.get("yes") is True):
                raise ToolError("The person did not confirm the decision, so nothing was changed.")
            confirmed = person(ctx)
            made = await self._access.read(_make, asked.bind(tried), who, confirmed)
            if isinstance(made, DecisionResult):
                facts = {name: getattr(made, name) for name in DecisionResult.model_fields}
                return ConfirmedDecision(decision=asked.id(), actor=who, confirmed=confirmed, **facts)
            changes = changed_facts(tried.precondition, made.facts, tried.facts)
            changed = "".join(f"Since you were asked, this has changed: {one.words}\n" for one in changes)
            tried = await self._try(ctx, asked.model_copy(update={"precondition": ""}))
        raise ToolError(f"{changed}The state changed each time while the person was asked, so no decision was made.")

    async def _try(self, ctx: Context, asked: Decision) -> DecisionResult:
        """Check a decision without making it."""

        def check(workspace: Workspace) -> DecisionResult:
            with ids.acting_as(agent(ctx), person(ctx)):
                return asked.run(OperationContext(workspace, dry_run=True))

        return await self._access.read(check)


def _make(workspace: Workspace, asked: Decision, who: str, confirmed: str) -> DecisionResult | StaleDecisionError:
    """Make a decision, or return the error that the facts have changed since the person was asked."""
    with ids.acting_as(who, confirmed):
        try:
            return asked.run(OperationContext(workspace))
        except StaleDecisionError as error:
            return error


def _refuse_agents(workspace: Workspace, asked: Decision) -> None:
    """Raise `PromotionError` unless the policy of the channel or stage leaves the decision to agents.

    For a stage that is not an approval stage, the decision itself raises the error.
    """
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
