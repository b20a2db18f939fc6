"""Dashboard actions: a table of actions, which call the same functions as the command line, and the page of one.

Every action is checked before it can be confirmed. Which are possible for a server, and for which channels or stages, is
tried as a command (`possible_actions`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, PipelineError, PromotionError, RefusedError
from mcpfactory_pipeline.base.text import LONGEST_REASON, on_one_line, pluralize
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.waive import waive
from mcpfactory_pipeline.dashboard.decision import DecisionPage, decidable
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.decisions import decision, promote, stage_decision
from mcpfactory_pipeline.decisions.basis import BasisChange, StaleDecisionError, basis_changes
from mcpfactory_pipeline.plan.plan import HELD
from mcpfactory_pipeline.plan.policy import signing_option
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.timeline import withdrawals
from mcpfactory_pipeline.views.advice import read_suggestion
from mcpfactory_pipeline.workspace.workspace import Workspace

ABOUT: Final = ("channel", "stage")  # fields that say what of a server an action is about


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action at one server with its values, to be done or (`dry_run`) only checked. `start` begins a run and gives its id."""

    workspace: Workspace
    server: str
    values: Mapping[str, str]
    dry_run: bool
    start: Callable[[str, str, str, bool], str] = lambda _server, _until, _again, _force: ""

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that most functions of the pipeline take."""
        return {"reason": self.values.get("reason", ""), "dry_run": self.dry_run}


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Description of a planned or finished action, the values resolved from defaults, and the started run.

    `basis` are the facts that the decision depends on (`decisions.basis`); `tools` are those of an approval stage.
    """

    message: str
    details: tuple[str, ...] = ()
    resolved: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    basis: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()


ActionChoices = Callable[[Workspace, ServerDetail], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ActionField:
    """One thing that an action needs to know. `values` are those to choose from, the first by default."""

    name: str
    label: str
    about: str = ""
    kind: str = "text"  # text, choice, date, flag, hidden
    required: bool = False
    values: ActionChoices = lambda _workspace, _detail: ()


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that people can do to a server. `perform` checks and does it; it raises `PipelineError` when it cannot be."""

    name: str
    title: str
    about: str
    fields: tuple[ActionField, ...]
    perform: Callable[[ActionCall], ActionResult]


def _approving(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    behind = [channel for channel in detail.channels if channel.source]
    return tuple(one.name for one in behind if one.approvals or withdrawals(detail.history, one.name))


def _channels(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    """All channels; first those for which a candidate is there that they do not offer."""
    return tuple(dict.fromkeys((*decidable(detail), *(channel.name for channel in detail.channels))))


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


def _deciding(workspace: Workspace, _detail: ServerDetail) -> tuple[str, ...]:
    return tuple(stage.name for stage in workspace_stages(workspace) if stage.approval)


def _rules(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    reported = (str(finding.get("rule")) for finding in detail.validation.get("findings", ()))
    return tuple(dict.fromkeys((*reported, *sorted(rule.id for rule in RULES))))


def _decide(
    function: Callable[..., Mapping[str, Any]], sentence: str, *, of_candidate: bool = True
) -> Callable[[ActionCall], ActionResult]:
    """Return a handler that makes a channel decision with a function of `decisions` and reports it as `sentence`."""

    def perform(call: ActionCall) -> ActionResult:
        channel = call.values["channel"]
        chosen = {"candidate": call.values.get("candidate") or None} if of_candidate else {}
        decided = function(
            call.workspace, call.server, channel, **call.options, **chosen, expect=call.values.get("expect", "")
        )
        if decided.get("already"):
            raise PromotionError(
                f"{channel} already offers {call.server} {decided['version']}", hint="no action is needed"
            )
        candidate = str(decided.get("candidate") or "")
        what = f"{call.server} {decided.get('version')} ({candidate})"
        message = sentence.format(what=what, server=call.server, channel=channel)
        lifts = tuple(f"it lifts the rejection by {one}" for one in decided.get("lifted", ()))
        resolved = {"expect": decided["expect"]} | ({"candidate": candidate} if of_candidate and candidate else {})
        details = (*lifts, *decided.get("proof", ()), *decision.stays_closed(channel, decided.get("blockers", ())))
        return ActionResult(message, details, resolved, basis=decided["basis"])

    return perform


def _decide_stage(function: Callable[..., Mapping[str, Any]], word: str) -> Callable[[ActionCall], ActionResult]:
    """Return a handler for decisions about an approval stage, bound to exactly the output shown by the check."""

    def perform(call: ActionCall) -> ActionResult:
        stage = call.values["stage"]
        made = function(call.workspace, call.server, stage, **call.options, expect=call.values.get("expect", ""))
        seen = [" ".join(filter(None, (item["part"], item["text"], item["file"]))) for item in made["shown"]]
        changes = [f"{one['kind']}: {one['code']}: {one['message']}" for one in made["changes"] or ()]
        details = tuple(filter(None, (made["question"], *seen, *changes, made["missing"])))
        message, expect = f"{stage} of {call.server} is {word}", {"expect": made["expect"]}
        return ActionResult(message, details, expect, basis=made["basis"], tools=tuple(made["tools"]))

    return perform


def _rerun(call: ActionCall) -> ActionResult:
    until, start, force = call.values.get("until", ""), call.values.get("again", ""), bool(call.values.get("force"))
    steps = plan_servers(call.workspace, [call.server], until=until or None, again=start or None, force=force)
    due = [step for step in steps if step.verdict == "run"]
    if not call.dry_run:
        if not due:  # such a run leaves no trace, so it has no page to go to
            return ActionResult(f"{call.server} has no stage to run, so no run was started")
        return ActionResult(f"a run of {call.server} has started", run=call.start(call.server, until, start, force))
    if held := next((step for step in steps if step.verdict == HELD), None):  # all are, and the first says why
        raise RefusedError(f"{call.server} is {held.reasons[0]}", hint=f"mcpfactory pipeline revive {call.server}")
    if not due:
        raise RefusedError(f"{call.server} has no stage to run", hint='select "Also stages that are up to date" below')
    details = tuple(f"{step.stage}: {'; '.join(step.reasons) or step.verdict}" for step in steps)
    return ActionResult(f"{pluralize(len(due), 'stage')} of {call.server} would run", details)


def _revive(call: ActionCall) -> ActionResult:
    decision.revive(call.workspace, call.server, **call.options)
    return ActionResult(f"{call.server} is active again: the next run includes it")


def _waive(call: ActionCall) -> ActionResult:
    values, tool = call.values, call.values.get("tool", "")
    made = waive(call.workspace, call.server, values["rule"], until=values["until"], tool=tool, **call.options)
    about = f" for {tool}" if tool else ""
    return ActionResult(f"{made['rule']}{about} is waived in {call.server} until {made['until']} by {made['person']}")


_CANDIDATE: Final = ActionField(
    "candidate",
    "Candidate",
    "By default the candidate in the previous channel, or the newest.",
    "choice",
    values=_candidates,
)
_REASON: Final = ActionField("reason", "Reason", "Kept in the history.")
_REQUIRED_REASON: Final = ActionField("reason", "Reason", "Kept in the history.", required=True)


_STAGE: Final = ActionField("stage", "Stage", kind="choice", required=True, values=_deciding)
_EXPECT: Final = ActionField("expect", "Seen", "Token of the facts that were shown; the check fills it in.", "hidden")


def _channel(values: ActionChoices) -> ActionField:
    return ActionField("channel", "Channel", kind="choice", required=True, values=values)


_ROWS: Final = (
    Action(
        "approve", "Approve", 'Approve a candidate for a channel; it is not moved yet.',
        (_channel(_approving), _CANDIDATE, _REASON, _EXPECT),
        _decide(decision.approve, "{what} is approved for {channel}; it is not moved yet"),
    ),
    Action(
        "reject", "Reject", 'Reject a candidate for a channel; its approvals no longer count.',
        (_channel(_approving), _CANDIDATE, _REQUIRED_REASON, _EXPECT),
        _decide(decision.reject, "{what} is rejected for {channel}; its approvals are gone"),
    ),
    Action(
        "approve-stage", "Approve a stage", 'Approve the output shown by an approval stage.',
        (_STAGE, _REASON, _EXPECT), _decide_stage(stage_decision.approve_stage, "approved"),
    ),
    Action(
        "reject-stage", "Reject a stage", 'Reject the output shown by an approval stage.',
        (_STAGE, _REQUIRED_REASON, _EXPECT), _decide_stage(stage_decision.reject_stage, "rejected"),
    ),
    Action(
        "promote", "Promote", "Move a candidate into a channel if the channel's policy allows it.",
        (_channel(_channels), _CANDIDATE, _REASON, _EXPECT), _decide(promote.promote, "{what} is in {channel}"),
    ),
    Action(
        "rollback", "Roll back", 'Return a channel to an older candidate, and hold the channel.',
        (
            _channel(_offering),
            replace(_CANDIDATE, about='By default the last older candidate that the channel offered.'),
            _REQUIRED_REASON, _EXPECT,
        ),
        _decide(promote.rollback, "{what} is back in {channel}, which is held"),
    ),
    Action(
        "hold", "Hold", 'Keep a channel unchanged until it is released.',
        (_channel(_free), _REQUIRED_REASON, _EXPECT),
        _decide(decision.hold, "{channel} of {server} is held: neither a run nor a promotion moves it", of_candidate=False),
    ),
    Action(
        "release", "Release", 'Lift a hold: the channel can move again.',
        (_channel(_held), _REASON, _EXPECT),
        _decide(decision.release, "{channel} of {server} is released: the next run may move it", of_candidate=False),
    ),
    Action("revive", "Revive", 'Undo the retirement of the server: runs include it again.', (_REASON,), _revive),
    Action(
        "rerun", "Run", 'Run the pending stages: generate, build, test, validate, promote to staging.',
        (
            ActionField(
                "again", "Again from", 'Run this stage and the stages that need it, even if they are up to date.',
                "choice", values=_stages,
            ),
            ActionField("until", "Stop after", "By default every stage.", "choice", values=_stages),
            ActionField("force", 'Also stages that are up to date', kind="flag"),
        ),
        _rerun,
    ),
    Action(
        "waive", "Waive", "Accept a rule's findings until a date, with your name and a reason.",
        (
            ActionField("rule", "Rule", kind="choice", required=True, values=_rules),
            ActionField("tool", "Tool", "For this tool only; empty for all."),
            ActionField("until", "Until", 'The last day on which the findings are accepted, for example 2031-01-31.', "date", required=True),
            _REQUIRED_REASON,
        ),
        _waive,
    ),
)  # fmt: skip
ACTIONS: Final[dict[str, Action]] = {action.name: action for action in _ROWS}

# The action for a suggested command; the user fills in the other form fields.
_FOR_COMMAND: Final[Mapping[str, str]] = {
    "pipeline run": "rerun", "pipeline approve": "approve", "pipeline reject": "reject", "pipeline promote": "promote",
    "pipeline rollback": "rollback", "pipeline hold": "hold", "pipeline unhold": "release", "pipeline revive": "revive",
    "waive": "waive",
}  # fmt: skip


def next_action(command: str) -> tuple[str, dict[str, str]] | None:
    """Return the action for a suggested command, and its values; None if not found."""
    suggestion = read_suggestion(command)
    if suggestion is None or suggestion.verb not in _FOR_COMMAND or suggestion.options["sign-with"]:
        return None
    options = {name: value for name, value in suggestion.options.items() if "…" not in value}
    name = _FOR_COMMAND[suggestion.verb] + ("-stage" if options.get("stage") else "")
    named = {**options, "until": options.get("expires", "")}
    fields = {one.name for one in ACTIONS[name].fields}
    return name, {field: value for field, value in named.items() if value and field in fields}


@dataclass(frozen=True, slots=True)
class FormInput:
    """One field of the form, with its value. `kind` is text, choice, date or flag; `values` are those to choose from."""

    name: str
    label: str
    about: str
    kind: str
    required: bool
    value: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ActionPage:
    """Action on a server. If `ready`, it can be confirmed once with exactly the `settled` values and the ticket.

    `happens` describes the effect; `problem` explains why the action is blocked, with a `hint`. `changes` lists the
    changes since the reader's last view, `basis` the facts that the decision depends on now. `evidence` are arguments
    for and against the candidate; `tools` are those of an approval stage.
    """

    workspace: str
    server: str
    action: str
    title: str
    about: str
    inputs: tuple[FormInput, ...]
    ready: bool
    happens: tuple[str, ...]
    settled: Mapping[str, str]
    problem: str
    hint: str
    ticket: str
    changes: tuple[BasisChange, ...] = ()
    basis: Mapping[str, str] = field(default_factory=dict)
    evidence: DecisionPage | None = None
    tools: tuple[Mapping[str, Any], ...] = ()


def values_of(action: Action, given: Mapping[str, object]) -> dict[str, str]:
    """Return the given values for the fields of an action, as text; unknown fields and empty values are omitted.

    Raises:
        ConfigError: a value exceeds the maximum length of a reason; user text is never truncated.
    """
    found = {}
    for one in action.fields:
        value = given.get(one.name)
        text = (
            ("1" if value else "")
            if isinstance(value, bool)
            else on_one_line(str(value if value is not None else "")).strip()
        )
        if text and not (one.kind == "flag" and text.lower() in {"0", "false"}):
            if len(text) > LONGEST_REASON:
                words = f"{one.name} has {LONGEST_REASON} characters at most, and this one {len(text):,}"
                raise ConfigError(words, hint="shorten it")
            found[one.name] = "1" if one.kind == "flag" else text
    return found


def action_page(
    workspace: Workspace,
    detail: ServerDetail,
    action: Action,
    values: Mapping[str, str],
    *,
    explain: bool,
    before: Mapping[str, str] | None = None,
    possible: Container[str] = (),
) -> ActionPage:
    """Return the page with these values; check the action if all required values are set.

    `explain` reports missing values. `possible` are the channels or stages to which the action applies; an empty form
    starts with them. With the token of an earlier check, the page lists the changes since then; `before` is the basis
    of that check as text.
    """
    inputs = tuple(_input(workspace, detail, one, values, possible) for one in action.fields)
    full = {one.name: one.value for one in inputs if one.value}
    missing = [one.label for one in inputs if one.required and not one.value]
    result, problem, hint = ActionResult(""), "", ""
    changes: tuple[BasisChange, ...] = ()
    if broken := detail.facts.row.get("problem"):  # nothing of it is known to be so: nothing is decided about it
        problem, hint = broken["message"], broken["hint"]
    elif missing:
        problem = f"{missing[0]} is missing" if explain else ""
        if not next(one for one in inputs if one.label == missing[0]).values and missing[0] == "Channel":
            problem, hint = (
                f"no channel of {detail.facts.name} permits this action",
                "the server's page has its channels",
            )
    else:
        call = ActionCall(workspace, detail.facts.name, full, dry_run=True)
        try:
            try:
                result = action.perform(call)
            except StaleDecisionError as error:
                changes = basis_changes(full["expect"], error.basis, before)
                full = {name: value for name, value in full.items() if name != "expect"}
                result = action.perform(replace(call, values=full))
        except PipelineError as error:
            problem, hint = str(error), error.hint
    ready = not (missing or problem)
    return ActionPage(
        workspace=workspace.name,
        server=detail.facts.name,
        action=action.name,
        title=action.title,
        about=action.about,
        inputs=tuple(one for one in inputs if one.kind != "hidden"),
        ready=ready,
        happens=(result.message, *result.details) if ready else (),
        settled={**full, **result.resolved} if ready else {},
        problem=problem,
        hint=hint,
        ticket="",
        changes=changes,
        basis=result.basis,
        tools=result.tools,
    )


def _input(
    workspace: Workspace, detail: ServerDetail, one: ActionField, values: Mapping[str, str], possible: Container[str]
) -> FormInput:
    choices = one.values(workspace, detail)
    if one.name in ABOUT:
        choices = tuple(sorted(choices, key=lambda choice: choice not in possible))
    value = values.get(one.name, "")
    if one.kind == "choice" and not value and choices:
        value = choices[0]
    return FormInput(one.name, one.label, one.about, one.kind, one.required, value, choices)


def possible_actions(detail: ServerDetail, goes_through: Callable[[str], bool]) -> dict[str, tuple[str, ...]]:
    """Return the available actions of a server with their channels or stages; ("",) for actions without either.

    `goes_through` tries a command in the name of a permitted person. Decisions that must be signed are left to a
    terminal; the policy determines these (`decision_refusal`), and they are not tried.
    """
    if detail.facts.row.get("problem"):  # nothing of it is known to be so
        return {}
    server = detail.facts.name
    if detail.state.get("retired"):
        return {"revive": ("",)} if goes_through(f"mcpfactory pipeline revive {server}") else {}
    found: dict[str, list[str]] = {"rerun": [""], "waive": [""]}
    for action, about, command in (*_of_channels(detail), *_of_stages(detail)):
        if goes_through(command):
            found.setdefault(action, []).append(about)
    return {name: tuple(found[name]) for name in ACTIONS if name in found}


def _of_channels(detail: ServerDetail) -> Iterator[tuple[str, str, str]]:
    server, due = detail.facts.name, set(decidable(detail))
    for channel in detail.channels:
        name, about = channel.name, f"{server} --channel {channel.name}"
        signed = signing_option(signed=channel.signed)
        if name in due and channel.source:
            yield "approve", name, f"mcpfactory pipeline approve {about}{signed}"
            yield "reject", name, f"mcpfactory pipeline reject {about} --reason '…'{signed}"
        if name in due:
            yield "promote", name, f"mcpfactory pipeline promote {about}"
        if detail.state.get("channels", {}).get(name, {}).get("before"):
            yield "rollback", name, f"mcpfactory pipeline rollback {about} --reason '…'"
        if name in detail.state.get("holds", {}):
            yield "release", name, f"mcpfactory pipeline unhold {about}"
        else:
            yield "hold", name, f"mcpfactory pipeline hold {about} --reason '…'"


def _of_stages(detail: ServerDetail) -> Iterator[tuple[str, str, str]]:
    for stage in detail.stages:
        if stage.approval:
            about = f"{detail.facts.name} --stage {stage.name}"
            signed = signing_option(signed=stage.approval.signed)
            yield "approve-stage", stage.name, f"mcpfactory pipeline approve {about}{signed}"
            yield "reject-stage", stage.name, f"mcpfactory pipeline reject {about} --reason '…'{signed}"
