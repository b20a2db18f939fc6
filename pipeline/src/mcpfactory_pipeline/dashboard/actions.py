"""Actions of the dashboard: their forms and pages. Each action is checked before a person can confirm it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, PipelineError, PromotionError, RefusedError
from mcpfactory_pipeline.base.text import MAX_REASON_LENGTH, join_lines, pluralize
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.dashboard.decision import DecisionPage, decidable_channels
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.decisions.precondition import FactChange, StaleDecisionError, changed_facts
from mcpfactory_pipeline.operations.decisions import DecisionResult
from mcpfactory_pipeline.operations.operation import Operation, OperationContext
from mcpfactory_pipeline.operations.run import Run
from mcpfactory_pipeline.operations.table import OPERATIONS, parse_operation_command
from mcpfactory_pipeline.plan.policy import describe_decision, signing_option
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import candidates_rolled_back
from mcpfactory_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

ABOUT: Final = ("channel", "stage")  # fields with the subject of an action
_MAX_CONTENT: Final = 20_000  # characters of a file that an action page shows


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of a checked or finished action.

    Attributes:
        resolved: values that were chosen by default.
        facts: facts that the decision depends on.
        stage: output of an approval stage, or None.
    """

    message: str
    details: tuple[str, ...] = ()
    resolved: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    stage: StageEvidence | None = None


@dataclass(frozen=True, slots=True)
class StageEvidence:
    """Output of an approval stage.

    Attributes:
        shown: parts of the output, each with `part`, `text`, `file` and the `content` of the file.
        changes: changes of the tool list since the last approval; None before the first.
        missing: approvals that are still needed.
    """

    question: str
    shown: tuple[Mapping[str, str], ...]
    changes: tuple[Mapping[str, Any], ...] | None
    tools: tuple[Mapping[str, Any], ...]
    missing: str


ActionChoices = Callable[[Workspace, ServerDetail], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FormInput:
    """Field of a form. `kind` is text, choice, date, flag or hidden. The first of the `values` is the default."""

    name: str
    label: str
    about: str = ""
    kind: str = "text"
    required: bool = False
    value: str = ""
    values: tuple[str, ...] = ()


def _approving(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    behind = [channel for channel in detail.channels if channel.source]
    return tuple(one.name for one in behind if one.approvals or candidates_rolled_back(detail.history, one.name))


def _candidates(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    known = detail.state.candidates
    return ("", *sorted(known, key=lambda name: -known[name].number))


def _stages(workspace: Workspace, _detail: ServerDetail) -> tuple[str, ...]:
    return ("", *(stage.name for stage in workspace_stages(workspace)))


def _rules(_workspace: Workspace, detail: ServerDetail) -> tuple[str, ...]:
    reported = (str(finding.get("rule")) for finding in detail.validation.get("findings", ()))
    return tuple(dict.fromkeys((*reported, *sorted(rule.id for rule in RULES))))


_CHOICES: Final[Mapping[str, ActionChoices]] = {
    "approve.channel": _approving,
    "reject.channel": _approving,
    # All channels; channels with another available candidate come first.
    "promote.channel": lambda _, detail: tuple(
        dict.fromkeys((*decidable_channels(detail), *(c.name for c in detail.channels)))
    ),
    "rollback.channel": lambda _, detail: tuple(
        c.name for c in reversed(detail.channels) if c.name in detail.state.channels
    ),
    "hold.channel": lambda _, detail: tuple(
        c.name for c in reversed(detail.channels) if c.name not in detail.state.holds
    ),
    "unhold.channel": lambda _, detail: tuple(detail.state.holds),
    "stage": lambda space, _: ("", *(stage.name for stage in workspace_stages(space) if stage.approval)),
    "candidate": _candidates,
    "until": _stages,
    "again": _stages,
    "rule": _rules,
}


@dataclass(frozen=True, slots=True)
class Action:
    """Form for an operation on one server."""

    operation: type[Operation]
    fields: tuple[FormInput, ...]

    @property
    def name(self) -> str:
        """Return the ID of the operation."""
        return self.operation.id()

    @property
    def title(self) -> str:
        """Return the label of the button."""
        return self.operation.title

    @property
    def about(self) -> str:
        """Return the operation's help text."""
        return " ".join(self.operation.help().split())

    def perform(
        self,
        workspace: Workspace,
        server: str,
        values: Mapping[str, str],
        *,
        dry_run: bool,
        start: Callable[[Run], str] = lambda _run: "",
    ) -> ActionResult:
        """Check the operation, and execute it unless it is a dry run. `start` starts a run and returns its ID."""
        if self.operation is Run:
            wanted = Run.read({"servers": (server,), **values})
            return _run(workspace, server, wanted, None if dry_run else start)
        about = {"server": server} if "server" in self.operation.model_fields else {}
        done = self.operation.read({**about, **values}).run(OperationContext(workspace, dry_run=dry_run))
        if getattr(done, "already", False):
            raise PromotionError(done.message, hint="no action is needed")
        names = {one.name for one in self.fields} & {"candidate", "precondition"}
        details, stage = done.details, None
        if isinstance(done, DecisionResult) and done.stage:
            names -= {"candidate"}  # the precondition already identifies what the stage shows
            shown = tuple({**one, "content": _content(workspace, one["file"])} for one in done.shown)
            stage = StageEvidence(done.question, shown, done.changes, done.tools, done.missing)
            details = tuple(filter(None, (done.missing,)))
        resolved = {name: str(value) for name in sorted(names) if (value := getattr(done, name, None))}
        return ActionResult(done.message, details, resolved, facts=getattr(done, "facts", {}), stage=stage)


def _content(workspace: Workspace, file: str) -> str:
    """Return the beginning of a file; "" without a file, or if the file is not text."""
    with suppress(OSError, UnicodeDecodeError):
        path = (workspace.root / file).resolve()
        if path.is_file() and path.is_relative_to(workspace.root.resolve()):
            with path.open(encoding="utf-8") as text:
                return text.read(_MAX_CONTENT)
    return ""


def _run(workspace: Workspace, server: str, wanted: Run, start: Callable[[Run], str] | None) -> ActionResult:
    steps = wanted.plan(OperationContext(workspace))
    due = [step for step in steps if step.verdict == "run"]
    if start:
        if not due:  # a run without stages has no events, and therefore no page
            return ActionResult(f"{server} has no stage to run, so no run was started")
        return ActionResult(f"a run of {server} has started", run=start(wanted))
    if retired := Store(workspace).state(server).retired:
        words = describe_decision("retired", retired)
        raise RefusedError(f"{server} is {words}", hint=f"mcpfactory pipeline revive {server}")
    if not due:
        raise RefusedError(f"{server} has no stage to run", hint='select "Force" below')
    details = tuple(f"{step.stage}: {'; '.join(step.reasons) or step.verdict}" for step in steps)
    return ActionResult(f"{pluralize(len(due), 'stage')} of {server} would run", details)


def _choices(operation: type[Operation], name: str) -> ActionChoices | None:
    return _CHOICES.get(f"{operation.id()}.{name}") or _CHOICES.get(name)


def _field(operation: type[Operation], name: str, info: FieldInfo) -> FormInput:
    kind = "flag" if info.annotation is bool else "date" if info.annotation is date else "text"
    kind = "hidden" if name == "precondition" else "choice" if _choices(operation, name) else kind
    required = info.is_required() or (name == "channel" and "stage" not in operation.model_fields)
    return FormInput(name, name.replace("_", " ").capitalize(), info.description or "", kind, required)


ACTIONS: Final[dict[str, Action]] = {
    operation.id(): Action(
        operation,
        tuple(
            _field(operation, name, info)
            for name, info, param in operation.fields("dashboard")
            if param.names != "servers"
        ),
    )
    for operation in OPERATIONS
    if "dashboard" not in operation.omit
}


def action_for_command(command: str) -> tuple[str, dict[str, str]] | None:
    """Return the action and its field values for a suggested command. For any other command, return None."""
    operation = parse_operation_command(command)
    if operation is None or operation.id() not in ACTIONS or getattr(operation, "sign_with", None):
        return None
    fields = (one.name for one in ACTIONS[operation.id()].fields if one.name in operation.model_fields_set)
    values = {name: str(getattr(operation, name)) for name in fields}
    return operation.id(), {name: value for name, value in values.items() if "…" not in value}


@dataclass(frozen=True, slots=True)
class ActionPage:
    """Page of an action on a server.

    Attributes:
        ready: True if the user can confirm the action with the `settled` values and the `ticket`.
        happens: effects of the action; also without a reason, so that people read the facts first.
        problem: reason if the action is blocked.
        changes: changes since the user's last view.
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
    changes: tuple[FactChange, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    evidence: DecisionPage | None = None
    stage: StageEvidence | None = None


def normalize_action_values(action: Action, given: Mapping[str, object]) -> dict[str, str]:
    """Return the values of an action's fields as text. Unknown fields and empty values are omitted."""
    found = {}
    for one in action.fields:
        value = given.get(one.name)
        text = (
            ("1" if value else "")
            if isinstance(value, bool)
            else join_lines(str(value if value is not None else "")).strip()
        )
        if text and not (one.kind == "flag" and text.lower() in {"0", "false"}):
            if len(text) > MAX_REASON_LENGTH:
                words = f"{one.name} must have at most {MAX_REASON_LENGTH} characters, but has {len(text):,}"
                raise ConfigError(words, hint="shorten the text")
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
    possible: Sequence[Mapping[str, str]] = (),
) -> ActionPage:
    """Return the page for the given values. If all required values are set, the action is checked.

    With `explain`, missing values are reported. `before` has facts that the user has already seen. The page lists
    changes of these facts. `possible` has the channels or stages for this action. The first channel or stage is the
    default.
    """
    inputs = _inputs(workspace, detail, action, values, possible)
    full = {one.name: one.value for one in inputs if one.value}
    missing = [one.label for one in inputs if one.required and not one.value]
    result, problem, hint = ActionResult(""), "", ""
    changes: tuple[FactChange, ...] = ()
    if broken := detail.facts.row.get("problem"):  # no decision is possible about an unreadable server
        problem, hint = broken["message"], broken["hint"]
    elif missing and missing != ["Reason"]:
        problem = f"{missing[0]} is missing" if explain else ""
        if not next(one for one in inputs if one.label == missing[0]).values and missing[0] == "Channel":
            problem = f"no channel of {detail.facts.name} permits this action"
            hint = "the server's page has its channels"
    else:
        unsaid = {"reason": "…"} if missing else {}  # people see the facts before they write a reason
        try:
            try:
                result = action.perform(workspace, detail.facts.name, {**full, **unsaid}, dry_run=True)
            except StaleDecisionError as error:
                changes = changed_facts(full["precondition"], error.facts, before)
                full = {name: value for name, value in full.items() if name != "precondition"}
                result = action.perform(workspace, detail.facts.name, {**full, **unsaid}, dry_run=True)
        except PipelineError as error:
            problem, hint = str(error), error.hint
        if missing and explain and not problem:
            problem = "Reason is missing"
    ready = not (missing or problem)
    return ActionPage(
        workspace=workspace.name,
        server=detail.facts.name,
        action=action.name,
        title=action.title,
        about=action.about,
        inputs=tuple(one for one in inputs if one.kind != "hidden"),
        ready=ready,
        happens=(result.message, *result.details) if result.message else (),
        settled={**full, **result.resolved} if result.message else {},
        problem=problem,
        hint=hint,
        ticket="",
        changes=changes,
        facts=result.facts,
        stage=result.stage,
    )


def _inputs(
    workspace: Workspace,
    detail: ServerDetail,
    action: Action,
    values: Mapping[str, str],
    possible: Sequence[Mapping[str, str]],
) -> tuple[FormInput, ...]:
    """Return the form's fields. A decision is about a channel or a stage, not both."""
    given = dict(values) if any(values.get(name) for name in ABOUT) else {**next(iter(possible), {}), **values}
    found = []
    for one in action.fields:
        choose = _choices(action.operation, one.name)
        choices = choose(workspace, detail) if choose else ()
        if (one.name == "stage" and not given.get("stage")) or (one.name == "channel" and given.get("stage")):
            continue
        if one.name in ABOUT:
            choices = tuple(
                sorted(choices, key=lambda choice: choice not in {about.get(one.name) for about in possible})
            )
        value = given.get(one.name, "")
        if one.kind == "choice" and not value and choices:
            value = choices[0]
        required = one.required or one.name in ABOUT
        found.append(replace(one, required=required, value=value, values=choices))
    return tuple(found)


def possible_actions(
    detail: ServerDetail, goes_through: Callable[[str], bool]
) -> dict[str, tuple[Mapping[str, str], ...]]:
    """Return the available actions of a server, with the channels or stages that each action applies to.

    `goes_through` returns True if a dry run of a command succeeds. A decision that requires a signature is possible
    only in a terminal.
    """
    if detail.facts.row.get("problem"):  # no decision is possible about an unreadable server
        return {}
    server = detail.facts.name
    if detail.state.retired:
        return {"revive": ({},)} if goes_through(f"mcpfactory pipeline revive {server}") else {}
    found: dict[str, list[Mapping[str, str]]] = {
        name: [{}]
        for name, action in ACTIONS.items()
        if name != "revive" and not any(one.name in ABOUT for one in action.fields)
    }
    for action, about, command in (*_of_channels(detail), *_of_stages(detail)):
        if goes_through(command):
            found.setdefault(action, []).append(about)
    return {name: tuple(found[name]) for name in ACTIONS if name in found}


def _of_channels(detail: ServerDetail) -> Iterator[tuple[str, Mapping[str, str], str]]:
    server, due = detail.facts.name, set(decidable_channels(detail))
    for channel in detail.channels:
        name, options = channel.name, f"{server} --channel {channel.name}"
        about, signed = {"channel": name}, signing_option(signed=channel.signed)
        if name in due and channel.source:
            yield "approve", about, f"mcpfactory pipeline approve {options}{signed}"
            yield "reject", about, f"mcpfactory pipeline reject {options} --reason '…'{signed}"
        if name in due:
            yield "promote", about, f"mcpfactory pipeline promote {options}"
        if (release := detail.state.channels.get(name)) and release.before:
            yield "rollback", about, f"mcpfactory pipeline rollback {options} --reason '…'"
        if name in detail.state.holds:
            yield "unhold", about, f"mcpfactory pipeline unhold {options} --reason '…'"
        else:
            yield "hold", about, f"mcpfactory pipeline hold {options} --reason '…'"


def _of_stages(detail: ServerDetail) -> Iterator[tuple[str, Mapping[str, str], str]]:
    for stage in detail.stages:
        if stage.approval:
            about, options = {"stage": stage.name}, f"{detail.facts.name} --stage {stage.name}"
            signed = signing_option(signed=stage.approval.signed)
            yield "approve", about, f"mcpfactory pipeline approve {options}{signed}"
            yield "reject", about, f"mcpfactory pipeline reject {options} --reason '…'{signed}"
