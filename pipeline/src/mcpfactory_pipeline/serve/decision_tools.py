"""Tools for decisions: only those that the channel's policy permits to agents, each confirmed by a person.

The order: check the policy, rehearse the decision (so that we never ask about an impossible one), ask the person,
then apply the decision to the candidate named in the question, provided that nothing has changed since the question.
The history records the agent as actor, and the person who confirmed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.text import LONGEST_REASON, on_one_line, printable
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.basis import StaleDecisionError, basis_changes
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.decisions.stage_decision import approve_stage, reject_stage
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, person
from mcpfactory_pipeline.serve.results import DecisionResult, StageDecisionResult
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.types import Json

Name = Annotated[str, Field(description="The server's name.", examples=["bookshop"])]
Channel = Annotated[str, Field(description="The channel's name.")]
Candidate = Annotated[str, Field(description="The beginning of a candidate's ID; by default the next candidate.")]
StageName = Annotated[str, Field(description="The name of a stage of kind approval.")]
Reason = Annotated[
    str,
    Field(
        description=(
            f"The reason, {LONGEST_REASON} characters at most; it is kept in the history and shown to the person "
            "who is asked."
        ),
        min_length=1,
    ),
]

Expect = Annotated[
    str,
    Field(
        description=(
            "`expect` of the inbox or the status: the decision is refused if the state has changed since it was read."
        )
    ),
]

_ASKED: Final = 3  # times that a person is asked while things change
_FORM: Final[Json] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes, do it"}},
    "required": ["yes"],
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A decision: what does it, the question, whether it is about a candidate, and its command where that has another name."""

    function: Callable[..., Json]
    question: str
    candidate: bool = True
    command: str = ""


_KINDS: Final = {
    "approve": _Kind(decision.approve, "Approve {what} for {channel}?"),
    "reject": _Kind(decision.reject, "Reject {what} for {channel}?"),
    "promote": _Kind(promote, "Promote {what} to {channel}? Who installs from there gets it."),
    "rollback": _Kind(rollback, "Bring {what} back into {channel}? The channel is held then."),
    "hold": _Kind(decision.hold, "Hold {channel} of {server}? Nothing moves it until it is released.", candidate=False),
    "release": _Kind(
        decision.release, "Release {channel} of {server}? It may move again then.", candidate=False, command="unhold"
    ),
}


_OF_STAGES: Final[dict[str, Callable[..., Json]]] = {"approve": approve_stage, "reject": reject_stage}


class DecisionTools:
    """The tools, on one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offers the tools."""
        mild = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
        grave = {**mild, "destructiveHint": True}  # what people install, or what somebody said, is replaced
        for tool, title, hints in (
            (self.approve, "Approve a candidate", mild),
            (self.reject, "Reject a candidate", grave),
            (self.approve_stage, "Approve what a stage shows", mild),
            (self.reject_stage, "Reject what a stage shows", grave),
            (self.promote, "Promote a candidate", grave),
            (self.rollback, "Roll a channel back", grave),
            (self.hold, "Hold a channel", mild),
            (self.release, "Release a channel", mild),
        ):
            server.tool(title=title, annotations=hints)(tool)

    async def approve(
        self,
        ctx: Context,
        server: Name,
        reason: Reason,
        channel: Channel = "production",
        candidate: Candidate = "",
        *,
        expect: Expect = "",
    ) -> DecisionResult:
        """Say that a candidate may go into a channel; it is not moved yet. A person is asked first."""
        return await self._decide(ctx, "approve", server, channel, reason=reason, candidate=candidate, expect=expect)

    async def reject(
        self,
        ctx: Context,
        server: Name,
        reason: Reason,
        channel: Channel = "production",
        candidate: Candidate = "",
        *,
        expect: Expect = "",
    ) -> DecisionResult:
        """Reject a candidate for a channel, which removes its approvals. A person is asked first."""
        return await self._decide(ctx, "reject", server, channel, reason=reason, candidate=candidate, expect=expect)

    async def approve_stage(
        self, ctx: Context, server: Name, stage: StageName, reason: Reason, expect: Expect = ""
    ) -> StageDecisionResult:
        """Approve the output of an approval stage. A person is asked first, and sees that output."""
        return await self._decide_stage(ctx, "approve", server, stage, reason=reason, expect=expect)

    async def reject_stage(
        self, ctx: Context, server: Name, stage: StageName, reason: Reason, expect: Expect = ""
    ) -> StageDecisionResult:
        """Reject the output of an approval stage. A person is asked first, and sees that output."""
        return await self._decide_stage(ctx, "reject", server, stage, reason=reason, expect=expect)

    async def promote(
        self,
        ctx: Context,
        server: Name,
        reason: Reason,
        channel: Channel = "production",
        candidate: Candidate = "",
        *,
        expect: Expect = "",
    ) -> DecisionResult:
        """Move a candidate into a channel when the channel's policy allows it. A person is asked first."""
        return await self._decide(ctx, "promote", server, channel, reason=reason, candidate=candidate, expect=expect)

    async def rollback(
        self,
        ctx: Context,
        server: Name,
        reason: Reason,
        channel: Channel = "production",
        candidate: Candidate = "",
        *,
        expect: Expect = "",
    ) -> DecisionResult:
        """Bring back what a channel offered before, and hold the channel. A person is asked first."""
        return await self._decide(ctx, "rollback", server, channel, reason=reason, candidate=candidate, expect=expect)

    async def hold(
        self, ctx: Context, server: Name, reason: Reason, channel: Channel = "production", expect: Expect = ""
    ) -> DecisionResult:
        """Freeze a channel until it is released. A person is asked first."""
        return await self._decide(ctx, "hold", server, channel, reason=reason, expect=expect)

    async def release(
        self, ctx: Context, server: Name, reason: Reason, channel: Channel = "production", expect: Expect = ""
    ) -> DecisionResult:
        """Lift a hold: the channel may move again. A person is asked first."""
        return await self._decide(ctx, "release", server, channel, reason=reason, expect=expect)

    def _refuse_unknown(self, ctx: Context) -> None:
        """Raise `ToolError` where nothing shows who calls: any program of this machine reaches a port."""
        if not self._access.local and ctx.principal is None:
            raise ToolError(
                "Over HTTP, decisions require callers that are identified, but this server has no "
                "authorization.\nhint: mcpfactory serve --http --token env:NAME, or serve on stdio"
            )

    async def _decide(
        self, ctx: Context, name: str, server: str, channel: str, *, reason: str, expect: str, candidate: str = ""
    ) -> DecisionResult:
        self._refuse_unknown(ctx)
        kind, who = _KINDS[name], agent(ctx)
        await self._access.read(_refuse_agents, name, channel)

        def decide(space: Workspace, wanted: str, confirmed: str | None, *, expect: str, dry_run: bool) -> Json:
            about = {"candidate": wanted or None} if kind.candidate else {}
            with ids.acting_as(who, confirmed):
                return kind.function(space, server, channel, reason=reason, dry_run=dry_run, expect=expect, **about)

        def ask(rehearsed: Json) -> str:
            what = f"{server} {rehearsed['version']} (candidate {rehearsed['candidate'] or ''})"
            question = kind.question.format(what=what, channel=channel, server=server)
            return "\n".join(
                [
                    f"{who} asks: {question}",
                    *rehearsed.get("proof", ()),
                    f"Its reason: {printable(on_one_line(reason))}",
                ]
            )

        async def rehearse(expect: str) -> Json:
            return await self._access.read(decide, candidate, person(ctx), expect=expect, dry_run=True)

        async def perform(rehearsed: Json, confirmed: str) -> Json | StaleDecisionError:
            chosen, token = rehearsed["candidate"] or "", rehearsed["expect"]
            return await self._access.read(_or_stale, decide, chosen, confirmed, expect=token, dry_run=False)

        question = _Question(f"{name}-{server}-{channel}", rehearse, ask, perform)
        made, confirmed = await question.decide(ctx, expect)
        return DecisionResult(name, server, channel, made["candidate"], made["version"], who, confirmed)

    async def _decide_stage(
        self, ctx: Context, name: str, server: str, stage: str, *, reason: str, expect: str
    ) -> StageDecisionResult:
        self._refuse_unknown(ctx)
        who, function = agent(ctx), _OF_STAGES[name]
        await self._access.read(_refuse_agents_at_stage, name, stage)

        def decide(space: Workspace, confirmed: str | None, *, expect: str, dry_run: bool) -> Json:
            with ids.acting_as(who, confirmed):
                return function(space, server, stage, reason=reason, dry_run=dry_run, expect=expect)

        def ask(rehearsed: Json) -> str:
            shown = [" ".join(filter(None, (one["part"], one["text"], one["file"]))) for one in rehearsed["shown"]]
            question = f"{who} asks: {name.capitalize()} what {stage} of {server} shows?"
            return "\n".join(
                [question, *(f"It shows {one}" for one in shown), f"Its reason: {printable(on_one_line(reason))}"]
            )

        async def rehearse(expect: str) -> Json:
            return await self._access.read(decide, person(ctx), expect=expect, dry_run=True)

        async def perform(rehearsed: Json, confirmed: str) -> Json | StaleDecisionError:
            return await self._access.read(_or_stale, decide, confirmed, expect=rehearsed["expect"], dry_run=False)

        question = _Question(f"{name}-{server}-{stage}", rehearse, ask, perform)
        made, confirmed = await question.decide(ctx, expect)
        return StageDecisionResult(name, server, stage, made["candidate"], made["missing"], who, confirmed)


def _or_stale(
    workspace: Workspace, decide: Callable[..., Json], *about: Any, **options: Any
) -> Json | StaleDecisionError:
    try:
        return decide(workspace, *about, **options)
    except StaleDecisionError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Question:
    """A question to a person: how to rehearse the decision with a token (or "" without), phrase it, and make it."""

    key: str
    rehearse: Callable[[str], Awaitable[Json]]
    words: Callable[[Json], str]
    perform: Callable[[Json, str], Awaitable[Json | StaleDecisionError]]

    async def decide(self, ctx: Context, expect: str) -> tuple[Json, str]:
        """Return the decision after a person confirmed it, and that person. After a change, explain it and ask again.

        The key of a question covers everything that is confirmed: the answer to a different question, from an earlier
        round, does not count.
        """
        rehearsed, changed = await self.rehearse(expect), ""
        for _ in range(_ASKED):
            asked = f"{changed}{self.words(rehearsed)}"
            answer = await ctx.elicit(asked, _FORM, key=f"{self.key}-{rehearsed['expect']}")
            if not (answer.accepted and answer.content.get("yes") is True):
                raise ToolError("The person did not confirm the decision, so nothing was changed.")
            confirmed = person(ctx)
            made = await self.perform(rehearsed, confirmed)
            if not isinstance(made, StaleDecisionError):
                return made, confirmed
            changes = basis_changes(rehearsed["expect"], made.basis, rehearsed["basis"])
            changed = "".join(f"Since you were asked, this has changed: {one.words}\n" for one in changes)
            rehearsed = await self.rehearse("")
        raise ToolError(f"{changed}The state changed each time while the person was asked, so no decision was made.")


def _refuse_agents_at_stage(workspace: Workspace, name: str, stage: str) -> None:
    """Leave any stage that is no approval stage to the decision itself, which raises the error."""
    known = {one.name: one.approval for one in workspace_stages(workspace)}
    policy = known.get(stage)
    if policy is not None and name not in policy.agents:
        raise PromotionError(
            f"the stage {stage} does not permit agents to {name}",
            hint=(
                f'agents = ["{name}"], or true, in the [[pipeline.stages]] named {stage} of {CONFIG} permits it. '
                "Only a person who is responsible for the workspace can set this, not an agent. Until then, ask a person to "
                f"type: mcpfactory pipeline {name} --stage {stage}"
            ),
        )


def _refuse_agents(workspace: Workspace, name: str, channel: str) -> None:
    policy = find_channel(read_channels(workspace), channel)
    if name not in policy.agents:
        raise PromotionError(
            f"the policy of channel {channel} does not permit agents to {name}",
            hint=(
                f'agents = ["{name}"], or true, in the [[pipeline.channels]] named {channel} of {CONFIG} permits '
                "it. Only a person who is responsible for the workspace can set this, not an agent. Until then, ask a person "
                f"to type: mcpfactory pipeline {_KINDS[name].command or name}"
            ),
        )
