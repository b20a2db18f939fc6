"""Decisions about servers: approve, reject, promote, roll back, hold, unhold, retire, revive, waive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.decisions import decision, promote, stage_decision
from mcpfactory_pipeline.operations.operation import (
    BY_PEOPLE,
    Channel,
    ConfirmedOperation,
    FieldPresentation,
    Omitted,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    Reason,
    Server,
    param,
)
from mcpfactory_pipeline.reporting.line_reporter import pruned_lines

_KEY: Final = "a private key is on the person's own machine"
_SINGLY: Final[Omitted] = {
    "dashboard": "people select candidates in the inbox",
    "mcp": "a person confirms each decision of an agent",
}

Candidate = Annotated[
    str,
    param("Use the candidate with this ID prefix [default: candidate in the previous channel]", metavar="CANDIDATE"),
]
RequiredReason = Annotated[Reason, Field(min_length=1)]
SignWith = Annotated[
    Path | None,
    param(
        "Sign the decision with this SSH key, if the channel or stage requires a signature",
        metavar="KEY",
        omit={"dashboard": _KEY, "mcp": _KEY},
    ),
]
StageName = Annotated[
    str, param("Decide about this approval stage instead of a channel", metavar="STAGE", names="stages")
]


class DecisionResult(OperationResult):
    """A decision about a channel or an approval stage."""

    server: str
    channel: str = Field(default="", description="The channel; empty for a decision about a stage.")
    stage: str = Field(default="", description="The approval stage; empty for a decision about a channel.")
    candidate: str | None = None
    version: str | None = None
    already: bool = Field(default=False, description="The channel already offered the candidate.")
    precondition: str = Field(default="", description="Hash of the facts that the decision depends on.")
    facts: dict[str, str] = Field(default_factory=dict, description="The facts that the decision depends on, by name.")
    blockers: tuple[dict[str, Any], ...] = Field(
        default=(), description="Conditions of the channel that the candidate does not meet."
    )
    pruned: dict[str, int] = Field(default_factory=dict, description="Deleted files of old candidates, with bytes.")
    proof: tuple[str, ...] = Field(default=(), description="Results of tests and checks.")
    callers: str = Field(default="", description="Changes that break callers of the channel.")
    lifted: tuple[str, ...] = Field(default=(), description="Earlier rejections that the approval lifts.")
    skipped: dict[str, str] = Field(default_factory=dict, description="Candidates that a rollback skips, with reasons.")
    drift: tuple[str, ...] = Field(default=(), description="Reasons why `install` refuses the candidate.")
    question: str = Field(default="", description="Question of an approval stage.")
    shown: tuple[dict[str, Any], ...] = Field(default=(), description="Parts that an approval stage shows.")
    changes: tuple[dict[str, Any], ...] | None = Field(
        default=None, description="Changes of the tool list since the last approval; null before the first."
    )
    missing: str = Field(default="", description="Approvals that an approval stage still needs.")
    tools: tuple[dict[str, Any], ...] = Field(default=(), description="Tool list that an approval stage shows.")

    def lines(self) -> list[str]:
        """Return the text for stdout; after a decision about a stage, include the output of the stage."""
        if not self.stage:
            return super().lines()
        return [*self.details, *(json.dumps(tool, ensure_ascii=False) for tool in self.tools), *super().lines()]

    def notes(self) -> tuple[str, ...]:
        """Return the text for stderr."""
        return () if self.stage else self.details


class PromoteResult(DecisionResult):
    """Result of one promotion, or of all promotions that the policy allows now."""

    promoted: tuple[dict[str, Any], ...] = Field(default=(), description="With `due`: the promoted candidates.")
    waiting: tuple[dict[str, Any], ...] = Field(
        default=(), description="With `due`: candidates with unmet requirements, and a hint."
    )
    failed: tuple[dict[str, Any], ...] = Field(default=(), description="With `due`: servers with an error and a hint.")

    def errors(self) -> list[tuple[str, str]]:
        """Return the servers that could not be promoted."""
        return [(one["error"], one["hint"]) for one in self.failed]

    def lines(self) -> list[str]:
        """Return the text for stdout. If several candidates were promoted, each has its own line."""
        return super().lines() if self.server else list(self.details)

    def notes(self) -> tuple[str, ...]:
        """Return the text for stderr."""
        if self.server:
            return self.details
        none = f"no candidate to promote to {self.channel}; mcpfactory inbox lists what needs your attention"
        waiting = tuple(
            f"{one['server']} {one['version']} ({one['candidate']}) waits: {one['waits_for']}" for one in self.waiting
        )
        return waiting if self.promoted or self.failed else (*waiting, none)


class RetireResult(OperationResult):
    """A server that was removed from channels, retired or revived."""

    server: str
    channels: tuple[str, ...] = ()
    retired: bool = False


class Decision(ConfirmedOperation):
    """A decision about a channel of a server."""

    result: ClassVar[type[OperationResult]] = DecisionResult

    server: Server
    channel: Channel = "production"
    reason: Reason = ""
    precondition: str = param(
        "`precondition` from the inbox or status; the decision is refused if facts have changed since",
        "",
        omit={"cli": "a person at a terminal reads and decides in one step"},
    )

    def run(self, context: OperationContext) -> DecisionResult:
        """Check and record the decision."""
        raise NotImplementedError

    def ask(self, tried: DecisionResult) -> str:
        """Return the question about the result of a dry run."""
        if tried.stage:
            return f"{self.title} the result of stage {tried.stage} of {self.server}?"
        what = f"{self.server} {tried.version} (candidate {tried.candidate or ''})"
        return self.question.format(what=what, channel=self.channel, server=self.server)

    def bind(self, tried: DecisionResult) -> Self:
        """Return the decision, restricted to the candidate and the facts of the dry run."""
        found = {"precondition": tried.precondition}
        if not tried.stage:
            found["candidate"] = tried.candidate or ""
        return self.model_copy(update={name: value for name, value in found.items() if name in type(self).model_fields})

    def subject(self, tried: DecisionResult) -> str:
        """Return the key of the question. The key depends on the facts of the dry run."""
        return "-".join((self.id(), self.server, tried.stage or self.channel, tried.precondition))

    def _arguments(self, context: OperationContext) -> dict[str, Any]:
        about = {name: getattr(self, name) for name in type(self).model_fields if name not in _SUBJECT}
        return {**about, "dry_run": context.dry_run, "clock": context.clock, "stages": context.stages}


_SUBJECT: Final = ("server", "channel", "stage", "due", "yes")


def _result(made: Mapping[str, Any], sentence: str, **more: Any) -> DecisionResult:
    return DecisionResult(message=sentence.format(**made), **_facts(made), **more)


def _facts(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: made[name] for name in DecisionResult.model_fields if made.get(name) is not None}


class Approve(Decision):
    """Approve a candidate for a channel, or the result of a stage.

    An approval does not move the candidate.
    """

    command: ClassVar[str] = "pipeline approve"
    title: ClassVar[str] = "Approve"
    question: ClassVar[str] = "Approve {what} for {channel}?"

    stage: StageName = ""
    candidate: Candidate = ""
    sign_with: SignWith = None

    def run(self, context: OperationContext) -> DecisionResult:
        """Record the approval."""
        arguments = self._arguments(context)
        if self.stage:
            made = stage_decision.approve_stage(context.workspace, self.server, self.stage, **arguments)
            return _stage_result(
                made, "approved", next="" if made["missing"] else f"mcpfactory pipeline run {self.server}"
            )
        made = decision.approve(context.workspace, self.server, self.channel, **arguments)
        details = (
            *(f"it lifts the rejection by {one}" for one in made["lifted"]),
            *made["proof"],
            *(f"{self.channel} stays closed to it: {one['message']}" for one in made["blockers"]),
            *self._texts(context),
        )
        sentence = "{server} {version} ({candidate}) is approved for {channel}"
        return _result(made, sentence, details=details, next=self._next(made))

    def _texts(self, context: OperationContext) -> tuple[str, ...]:
        """Return a note to read the descriptions of a third-party server, because no check can judge them."""
        adopted = context.workspace.server(self.server).adopted
        if adopted is None or adopted.kind not in {"url", "pypi", "npm"}:
            return ()
        return (f"read what it tells models: mcpfactory inspect {self.server} --start",)

    def _next(self, made: Mapping[str, Any]) -> str:
        kinds = {blocker["kind"] for blocker in made["blockers"]}
        if kinds == {"soak"}:
            return str(made["blockers"][0]["command"])
        if kinds:
            return f"mcpfactory inbox {self.server}"
        return Promote(server=self.server, channel=self.channel, candidate=self.candidate).command_line()


class Reject(Decision):
    """Reject a candidate for a channel, or the result of a stage.

    A rejection removes earlier approvals.
    """

    command: ClassVar[str] = "pipeline reject"
    title: ClassVar[str] = "Reject"
    question: ClassVar[str] = "Reject {what} for {channel}?"
    destructive: ClassVar[bool] = True

    reason: RequiredReason
    stage: StageName = ""
    candidate: Candidate = ""
    sign_with: SignWith = None

    def run(self, context: OperationContext) -> DecisionResult:
        """Record the rejection."""
        arguments = self._arguments(context)
        if self.stage:
            made = stage_decision.reject_stage(context.workspace, self.server, self.stage, **arguments)
            return _stage_result(made, "rejected")
        made = decision.reject(context.workspace, self.server, self.channel, **arguments)
        return _result(made, "{server} {version} ({candidate}) is rejected for {channel}")


def _stage_result(made: Mapping[str, Any], outcome: str, **more: Any) -> DecisionResult:
    shown = ("  ".join(filter(None, (item["part"], item["text"], item["file"]))) for item in made["shown"])
    changes = [f"{one['kind']}: {one['code']}: {one['message']}" for one in made["changes"] or ()]
    if made["changes"] is not None:
        changes = ["changes since the last approval:", *changes] if changes else ["no changes since the last approval"]
    details = tuple(filter(None, (made["question"], *shown, *changes, made["missing"])))
    of = " (candidate {candidate})" if made["candidate"] else ""
    sentence = f"{{stage}} of {{server}}{of} is {outcome}"
    return _result(made, sentence, details=details, **more)


class Promote(Decision):
    """Move a candidate into a channel, if the policy allows it."""

    command: ClassVar[str] = "pipeline promote"
    title: ClassVar[str] = "Promote"
    result: ClassVar[type[OperationResult]] = PromoteResult
    question: ClassVar[str] = "Promote {what} to {channel}? Users of the channel get it."
    destructive: ClassVar[bool] = True

    server: Server = ""
    candidate: Candidate = ""
    due: bool = param("Promote every candidate that the policy allows now, after one confirmation", False, omit=_SINGLY)
    yes: bool = param("Skip the confirmation prompt", False, flags=("--yes", "-y"), omit=_SINGLY)

    def run(self, context: OperationContext) -> PromoteResult:
        """Move the candidate. If `due` is True, move all candidates that the policy allows."""
        if self.due == bool(self.server):
            raise OperationError(
                "give either a server or 'due'",
                hint=f"run 'mcpfactory {self.command} NAME' or 'mcpfactory {self.command} --due'",
            )
        if self.due and (self.candidate or self.reason):
            raise OperationError(
                "'due' cannot be combined with 'candidate' or 'reason'", hint="leave out 'candidate' and 'reason'"
            )
        if self.due:
            return self._promote_due(context)
        made = promote.promote(context.workspace, self.server, self.channel, **self._arguments(context))
        already = " already" if made["already"] else ""
        details = (*filter(None, [made["callers"]]), *pruned_lines(made["pruned"]))
        message = f"{self.server} {made['version']} ({made['candidate']}) is in {self.channel}{already}"
        return PromoteResult(message=message, details=details, **_facts(made))

    def _promote_due(self, context: OperationContext) -> PromoteResult:
        if context.dry_run or self.yes:
            return self._due(context)
        tried = self._due(replace(context, dry_run=True))
        if tried.promoted:
            question = f"Promote {pluralize(len(tried.promoted), 'candidate')} to {self.channel}?"
            context.confirm(question, tried, f"{self.command_line()} --yes")
        return self._due(context, {one["server"]: one["precondition"] for one in tried.promoted})

    def _due(self, context: OperationContext, confirmed: Mapping[str, str] | None = None) -> PromoteResult:
        found = promote.promote_due(
            context.workspace,
            self.channel,
            confirmed=confirmed,
            dry_run=context.dry_run,
            stages=context.stages,
            clock=context.clock,
        )
        promoted = tuple(one for one in found if not {"error", "waits_for"} & set(one))
        lines = []
        for one in promoted:
            lines.append(f"{one['server']} {one['version']} ({one['candidate']}) is in {self.channel}")
            lines += [*filter(None, [one["callers"]]), *pruned_lines(one["pruned"])]
        return PromoteResult(
            message=f"{pluralize(len(promoted), 'candidate')} promoted to {self.channel}",
            details=tuple(lines),
            server="",
            channel=self.channel,
            dry_run=context.dry_run,
            promoted=promoted,
            waiting=tuple(one for one in found if "waits_for" in one),
            failed=tuple(one for one in found if "error" in one),
        )


class Rollback(Decision):
    """Move a channel back to an older candidate; hold the channel."""

    command: ClassVar[str] = "pipeline rollback"
    title: ClassVar[str] = "Roll back"
    question: ClassVar[str] = "Move {channel} back to {what}? The channel is held afterwards."
    destructive: ClassVar[bool] = True

    reason: RequiredReason
    candidate: str = param(
        "Return to the candidate with this ID prefix [default: last older candidate in the channel]",
        "",
        metavar="CANDIDATE",
    )

    def run(self, context: OperationContext) -> DecisionResult:
        """Move the channel back."""
        made = promote.rollback(context.workspace, self.server, self.channel, **self._arguments(context))
        details = (
            *(f"skipped {skipped}: {why}" for skipped, why in made["skipped"].items()),
            *(f"mcpfactory install refuses this release: {words}" for words in made["drift"]),
            f"when the channel may move again: {made['unhold']}",
        )
        sentence = "{server} {version} ({candidate}) is back in {channel}, which is held"
        return _result(made, sentence, details=details)


class Hold(Decision):
    """Hold a channel until the hold is lifted."""

    command: ClassVar[str] = "pipeline hold"
    title: ClassVar[str] = "Hold"
    question: ClassVar[str] = "Hold {channel} of {server}? Nothing moves it until the hold is lifted."

    reason: RequiredReason
    sign_with: SignWith = None

    def run(self, context: OperationContext) -> DecisionResult:
        """Hold the channel."""
        made = decision.hold(context.workspace, self.server, self.channel, **self._arguments(context))
        return _result(made, "{channel} of {server} is held: neither a run nor a promotion moves it")


class Unhold(Decision):
    """Lift the hold of a channel."""

    command: ClassVar[str] = "pipeline unhold"
    title: ClassVar[str] = "Lift the hold"
    question: ClassVar[str] = "Lift the hold of {channel} of {server}? It can move again."

    reason: RequiredReason
    sign_with: SignWith = None

    def run(self, context: OperationContext) -> DecisionResult:
        """Lift the hold."""
        made = decision.unhold(context.workspace, self.server, self.channel, **self._arguments(context))
        details = (f"{self.channel} was {made['hold']}",)
        return _result(made, "{channel} of {server} is no longer held", details=details)


DECISIONS: Final[tuple[type[Decision], ...]] = (Approve, Reject, Promote, Rollback, Hold, Unhold)


class Retire(Operation):
    """Remove a server from one channel, or retire the server.

    With --channel, the server is removed from that channel only, and the channel is held. Without --channel, the server
    leaves all channels for good.
    """

    command: ClassVar[str] = "pipeline retire"
    title: ClassVar[str] = "Retire"
    result: ClassVar[type[OperationResult]] = RetireResult
    omit: ClassVar[Omitted] = {"dashboard": "a rare decision, made at a terminal", "mcp": BY_PEOPLE}

    server: Server
    reason: RequiredReason
    channel: Channel = ""

    def run(self, context: OperationContext) -> RetireResult:
        """Remove the server from the channel, or retire the server."""
        made = decision.retire(
            context.workspace,
            self.server,
            self.channel or None,
            reason=self.reason,
            dry_run=context.dry_run,
            clock=context.clock,
        )
        out = ", ".join(made["channels"]) or "no channel"
        if made["retired"]:
            return RetireResult(message=f"{self.server} is retired, and out of {out}", **made)
        again = Unhold(server=self.server, channel=self.channel, reason="…").command_line()
        details = (f"when the channel may move again: {again}",)
        return RetireResult(message=f"{self.server} is out of {out}, which is held", details=details, **made)


class Revive(Operation):
    """Undo the retirement of a server."""

    command: ClassVar[str] = "pipeline revive"
    title: ClassVar[str] = "Revive"
    result: ClassVar[type[OperationResult]] = RetireResult
    omit: ClassVar[Omitted] = {"mcp": BY_PEOPLE}

    server: Server
    reason: Reason = ""

    def run(self, context: OperationContext) -> RetireResult:
        """Undo the retirement."""
        made = decision.revive(
            context.workspace, self.server, reason=self.reason, dry_run=context.dry_run, clock=context.clock
        )
        return RetireResult(
            message=f"{self.server} is no longer retired", next=f"mcpfactory pipeline run {self.server}", **made
        )


class WaiveResult(OperationResult):
    """A recorded waiver."""

    server: str
    rule: str
    tool: str = ""
    person: str
    reason: str
    until: date
    offer: str = ""
    seen: str = ""
    covers: str = Field(default="", description="Drift that the waiver covers.")
    replaced: str = Field(default="", description="Earlier waiver that this one replaces.")
    file: str = Field(description="File of the waiver, relative to the workspace.")


class Waive(Operation):
    """Accept the findings of a rule until a date, with a reason.

    The waiver records its author and reason, and is stored in waivers.toml in the server's folder.
    """

    command: ClassVar[str] = "waive"
    title: ClassVar[str] = "Waive"
    result: ClassVar[type[OperationResult]] = WaiveResult
    omit: ClassVar[Omitted] = {"mcp": BY_PEOPLE}

    rule: str = param("Rule ID, as shown in reports", argument=True, metavar="RULE")
    server: Annotated[Server, FieldPresentation(metavar="NAME", names="servers")]
    expires: date = param("Accept the findings up to and including this day", metavar="YYYY-MM-DD")
    reason: RequiredReason
    tool: str = param("Accept only findings about this tool [default: all tools]", "", metavar="TOOL", names="tools")

    def run(self, context: OperationContext) -> WaiveResult:
        """Record the waiver."""
        from mcpfactory_pipeline.checks import waiver_creation

        made = waiver_creation.waive_rule(
            context.workspace,
            self.server,
            self.rule,
            expires=self.expires,
            reason=self.reason,
            tool=self.tool,
            dry_run=context.dry_run,
            clock=context.clock,
        )
        about = f" for {self.tool}" if self.tool else ""
        message = f"{made['rule']}{about} is waived at {self.server} until {made['until']} by {made['person']}: {made['file']}"
        details = tuple(filter(None, [made.get("covers")]))
        details += (f"it replaces the waiver {made['replaced']}",) if "replaced" in made else ()
        return WaiveResult(message=message, details=details, **made)
