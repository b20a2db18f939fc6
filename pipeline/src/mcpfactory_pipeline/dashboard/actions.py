"""What people can do from the dashboard: a row for each, and all of them call what the command line calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.waive import waive
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.promotion import decision, promote
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["ACTIONS", "FOR_KIND", "Action", "Deed", "Done", "Field"]


@dataclass(frozen=True, slots=True)
class Deed:
    """An action at one server with its values, to be done or (`dry_run`) only checked. `start` begins a run and gives its id."""

    workspace: Workspace
    server: str
    values: Mapping[str, str]
    dry_run: bool
    start: Callable[[str, str, bool], str] = lambda _server, _until, _force: ""

    @property
    def about(self) -> dict[str, Any]:
        """The arguments that most functions of the pipeline take."""
        return {"reason": self.values.get("reason", ""), "dry_run": self.dry_run}

    @property
    def chosen(self) -> dict[str, Any]:
        """The same, with the candidate."""
        return {**self.about, "candidate": self.values.get("candidate") or None}


@dataclass(frozen=True, slots=True)
class Done:
    """What happens, or has happened: in words, with what was left open settled, and the run that was begun."""

    says: str
    also: tuple[str, ...] = ()
    settled: Mapping[str, str] = field(default_factory=dict)
    run: str = ""


Values = Callable[[Workspace, ServerDetail], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that an action needs to know. `values` are those to choose from, the first by default."""

    name: str
    label: str
    about: str = ""
    kind: str = "text"  # text, choice, date, flag
    required: bool = False
    values: Values = lambda _workspace, _detail: ()


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that people can do to a server. `perform` checks and does it; it raises `PipelineError` when it cannot be."""

    name: str
    title: str
    about: str
    fields: tuple[Field, ...]
    perform: Callable[[Deed], Done]


def _approving(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    return tuple(channel.name for channel in detail.channels if channel.approvals and channel.source)


def _channels(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    """All channels; first the one that would be next."""
    waiting = [item.about for item in detail.facts.items if item.kind in {"ready", "approval"}]
    return tuple(dict.fromkeys((*waiting, *(channel.name for channel in detail.channels))))


def _offering(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    return tuple(reversed([c.name for c in detail.channels if c.name in detail.state.get("channels", {})]))


def _free(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    return tuple(c.name for c in reversed(detail.channels) if c.name not in detail.state.get("holds", {}))


def _held(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    return tuple(detail.state.get("holds", {}))


def _candidates(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    known = detail.state.get("candidates", {})
    return ("", *sorted(known, key=lambda name: -int(known[name].get("number", 0))))


def _stages(workspace: Workspace, _detail: ServerDetail) -> tuple[str, ...]:
    return ("", *(stage.name for stage in workspace_stages(workspace)))


def _rules(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    """Every rule; first those that found something here."""
    found = (str(finding.get("rule")) for finding in detail.validation.get("findings", ()))
    return tuple(dict.fromkeys((*found, *sorted(rule.id for rule in RULES))))


def _decided(made: Mapping[str, Any], says: str) -> Done:
    candidate = str(made.get("candidate") or "")
    return Done(says, settled={"candidate": candidate} if candidate else {})


def _what(deed: Deed, made: Mapping[str, Any]) -> str:
    return f"{deed.server} {made['version']} ({made['candidate']})"


def _approve(deed: Deed) -> Done:
    channel = deed.values["channel"]
    made = decision.approve(deed.workspace, deed.server, channel, **deed.chosen)
    return _decided(made, f"{_what(deed, made)} is approved for {channel}; it is not moved yet")


def _reject(deed: Deed) -> Done:
    channel = deed.values["channel"]
    made = decision.reject(deed.workspace, deed.server, channel, **deed.chosen)
    return _decided(made, f"{_what(deed, made)} is rejected for {channel}; its approvals are gone")


def _promote(deed: Deed) -> Done:
    channel = deed.values["channel"]
    made = promote.promote(deed.workspace, deed.server, channel, **deed.chosen)
    return _decided(made, f"{_what(deed, made)} is in {channel}")


def _rollback(deed: Deed) -> Done:
    channel = deed.values["channel"]
    made = promote.rollback(deed.workspace, deed.server, channel, **deed.chosen)
    return _decided(made, f"{_what(deed, made)} is back in {channel}, which is held")


def _hold(deed: Deed) -> Done:
    channel = deed.values["channel"]
    decision.hold(deed.workspace, deed.server, channel, **deed.about)
    return Done(f"{channel} of {deed.server} is held: neither a run nor a promotion moves it")


def _release(deed: Deed) -> Done:
    channel = deed.values["channel"]
    decision.release(deed.workspace, deed.server, channel, **deed.about)
    return Done(f"{channel} of {deed.server} is released: the next run may move it")


def _rerun(deed: Deed) -> Done:
    until, force = deed.values.get("until", ""), bool(deed.values.get("force"))
    steps = plan_servers(deed.workspace, [deed.server], until=until or None, force=force)
    due = [step for step in steps if step.verdict == "run"]
    if not deed.dry_run:
        if not due:  # such a run leaves no trace, so it has no page to go to
            return Done(f"nothing of {deed.server} is due, so no run was begun")
        return Done(f"a run of {deed.server} has begun", run=deed.start(deed.server, until, force))
    also = tuple(f"{step.stage}: {'; '.join(step.reasons) or step.verdict}" for step in steps)
    return Done(f"{pluralize(len(due), 'stage')} of {deed.server} would run" if due else "nothing is due", also)


def _waive(deed: Deed) -> Done:
    values = deed.values
    tool = values.get("tool", "")
    made = waive(
        deed.workspace, deed.server, values["rule"], until=values["until"], tool=tool, **deed.about
    )  # fmt: skip
    about = f" for {tool}" if tool else ""
    return Done(f"{made['rule']}{about} is waived at {deed.server} until {made['until']} by {made['person']}")


_CANDIDATE: Final = Field(
    "candidate", "Candidate", "By default what the channel before offers, or the newest.", "choice", values=_candidates
)
_WHY: Final = Field("reason", "Reason", "Kept in the history.")
_BECAUSE: Final = Field("reason", "Reason", "Kept in the history.", required=True)


def _channel(values: Values) -> Field:
    return Field("channel", "Channel", kind="choice", required=True, values=values)


ACTIONS: Final[dict[str, Action]] = {
    action.name: action
    for action in (
        Action("approve", "Approve", "Say that a candidate may go into a channel; it is not moved yet.", (_channel(_approving), _CANDIDATE, _WHY), _approve),
        Action("reject", "Reject", "Say that a candidate may not go into a channel; its approvals are gone.", (_channel(_approving), _CANDIDATE, _BECAUSE), _reject),
        Action("promote", "Promote", "Move a candidate into a channel when the channel's policy allows it.", (_channel(_channels), _CANDIDATE, _WHY), _promote),
        Action(
            "rollback", "Roll back", "Bring an older candidate back into a channel, and hold the channel.",
            (
                _channel(_offering),
                Field("candidate", "Candidate", "By default the last older one that the channel offered.", "choice", values=_candidates),
                _BECAUSE,
            ),
            _rollback,
        ),
        Action("hold", "Hold", "Keep a channel as it is, until it is released.", (_channel(_free), _BECAUSE), _hold),
        Action("release", "Release", "Lift a hold: the channel may move again.", (_channel(_held), _WHY), _release),
        Action(
            "rerun", "Run", "Run what is due: generate, build, test, validate, promote to staging.",
            (
                Field("until", "Stop after", "By default every stage.", "choice", values=_stages),
                Field("force", "Also what is up to date", kind="flag"),
            ),
            _rerun,
        ),
        Action(
            "waive", "Waive", "Accept a rule's findings for a time, by name and with a reason.",
            (
                Field("rule", "Rule", kind="choice", required=True, values=_rules),
                Field("tool", "Tool", "For this tool only; empty for all."),
                Field("until", "Until", "The last day on which it is accepted, as 2031-01-31.", "date", required=True),
                _BECAUSE,
            ),
            _waive,
        ),
    )
}  # fmt: skip

FOR_KIND: Final[dict[str, tuple[str, str]]] = {
    "approval": ("approve", "channel"), "ready": ("promote", "channel"), "hold": ("release", "channel"),
    "failed": ("rerun", ""), "errored": ("rerun", ""), "interrupted": ("rerun", ""), "inconclusive": ("rerun", ""),
    "stale": ("rerun", ""),
}  # fmt: skip
"""Of a kind of thing that waits: the action that comes next, and its field that takes what the thing is about."""
