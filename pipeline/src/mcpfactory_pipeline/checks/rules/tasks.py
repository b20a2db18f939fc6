"""Rules about tasks: tool calls that continue after their request has been answered (last handshake revision)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mcpfactory_pipeline.checks.evidence import Evidence, Listing, RecordedCall, TaskRun
from mcpfactory_pipeline.checks.exchange import TASKS, WireExchange
from mcpfactory_pipeline.checks.probes import PROBES, Probe, describe_answer, error
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Severity, not_applicable
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome, probed
from mcpfactory_pipeline.checks.task_calls import (
    TERMINAL,
    created_task_id,
    declares_task_calls,
    task_object,
    task_status,
    task_support,
)
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

RULES: Final = RuleTable(since=TASKS, until=TASKS)
rule, row = RULES.rule, RULES.row
_PAGE: Final = "MCP basic/utilities/tasks"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_STATUSES: Final = ("working", "input_required", *TERMINAL)
_ASKING: Final = ("elicitation/create", "sampling/createMessage")  # requests that a tool call depends on
_MISSING: Final = object()  # value of a missing member
_STATUS: Final = "notifications/tasks/status"
_NO_TASKS: Final = not_applicable("no tool was called as a task")


def _runs(evidence: Evidence) -> RuleSubjects[TaskRun] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "legacy")) is not None:
        return reason
    return RuleSubjects(evidence.task_runs, once=True) if evidence.task_runs else _NO_TASKS


# --- servers without tasks ---


def _undeclared(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    return _answered(evidence, "task-undeclared", "the server supports tasks, or no call could be repeated")


def _answered(evidence: Evidence, name: str, otherwise: str) -> RuleSubjects[WireExchange] | RuleOutcome:
    exchange = evidence.probes.get(name)
    answered = exchange is not None and exchange.received is not None
    return RuleSubjects([exchange]) if exchange is not None and answered else not_applicable(otherwise)


@rule("tasks.undeclared", 3, gate=True, over=_undeclared,
      statement=("A server that does not declare tasks for tool calls ignores the member task of a call. An error is "
                 "tolerated, because widely used SDKs return one."),
      source=f"{_PAGE}, Task Support and Handling",
      hint="declare the capability tasks.requests.tools.call, or return the result of the tool")  # fmt: skip
def _ignored(exchange: WireExchange) -> Iterator[Fault]:
    where = str(exchange.params.get("name"))
    if exchange.error is not None:
        yield Fault(f"a call with task metadata got {describe_answer(exchange)}", where, exchange, lesser=1)
    elif isinstance(task_object(exchange), dict) and "content" not in (exchange.result or {}):
        yield Fault("a call became a task, and the server does not declare tasks", where, exchange)


# --- creation ---


def _required_calls(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    required = {name for name, tool in evidence.named_tools if task_support(tool) == "required"}
    first = {call.tool: call for call in reversed(evidence.calls) if call.tool in required and call.exchange.received}
    declared = declares_task_calls(evidence.capabilities)
    return RuleSubjects(list(first.values())) if first and declared else not_applicable("no tool requires tasks")


@rule("tasks.required", 3, gate=True, over=_required_calls,
      statement=(f"A tool that requires tasks answers a call without task with error {METHOD_NOT_FOUND}. Another "
                 "error is tolerated."),
      source=f"{_PAGE}, Tool-Level Negotiation",
      hint=f"return error {METHOD_NOT_FOUND} before the tool runs, or declare taskSupport optional")  # fmt: skip
def _required(call: RecordedCall) -> Iterator[Fault]:
    # The page also permits the code of an invalid request (Protocol Errors).
    if call.exchange.code not in (METHOD_NOT_FOUND, INVALID_REQUEST):
        words = f"a call without task got {describe_answer(call.exchange)}"
        yield Fault(words, call.tool, call.exchange, lesser=1 if call.failed else None)


def _forbidden(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    return _answered(evidence, "task-forbidden", "no tool without support for tasks was called as a task")


@rule("tasks.forbidden", 2, over=_forbidden,
      statement=f"A tool without taskSupport answers a call as task with error {METHOD_NOT_FOUND}.",
      source=f"{_PAGE}, Tool-Level Negotiation: servers should return this error",
      hint="declare taskSupport optional for tools that can be called as tasks")  # fmt: skip
def _refused(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != METHOD_NOT_FOUND:
        words = f"a call as task of a tool without taskSupport got {describe_answer(exchange)}"
        yield Fault(words, str(exchange.params.get("name")), exchange, lesser=1 if exchange.failed else None)


@rule("tasks.creation", 3, gate=True, over=_runs,
      statement=("A call as task of a tool that supports tasks is answered with a task, whose taskId is a string that "
                 "no other task has."),
      source=f"{_PAGE}, Creating Tasks and Task ID Requirements; schema, CreateTaskResult",
      hint='return {"task": {"taskId": …, "status": "working", …}} instead of the result of the tool')  # fmt: skip
def _created(run: TaskRun, evidence: Evidence) -> Iterator[Fault]:
    call = run.steps[0]
    task = task_object(call)
    if call.result is None or call.failed:
        return  # a server may refuse a task, for example because too many tasks run
    if task is None:
        yield Fault("a call as task was answered without a task", run.tool, call)
    elif not isinstance(task.get("taskId"), str) or not task["taskId"]:
        yield Fault(f"taskId is {task.get('taskId')!r}"[:200], run.tool, call)
    elif sum(created_task_id(other.steps) == task["taskId"] for other in evidence.task_runs) > 1:
        yield Fault(f"two tasks have the taskId {task['taskId']!r}"[:200], run.tool, call)


@rule("tasks.first-status", 2, over=_runs,
      statement="A new task has the status working.",
      source=(f"{_PAGE}, Task Status Lifecycle: tasks must begin in the status working (a task may have ended before "
              "the answer: severity 2)"),
      hint="return the task before the tool runs")  # fmt: skip
def _begins(run: TaskRun) -> Iterator[Fault]:
    status = task_status(run.steps[0])
    if status in _STATUSES[1:]:
        yield Fault(f"the task was created with the status {status}", run.tool, run.steps[0])


_COUNTED: Final = re.compile(r"\d+")
_NEAR: Final = 1_000  # random ids do not differ by a smaller number only


@rule("tasks.guessable-ids", 3, gate=True,
      statement="If other clients reach the server without credentials, no task ID can be guessed from the ID before it.",
      source=f"{_PAGE}, Task Isolation and Access Control: IDs must be cryptographically secure",
      hint="use a random UUID as taskId")  # fmt: skip
def _guessable(evidence: Evidence) -> RuleOutcome:
    runs = _runs(evidence)
    if isinstance(runs, RuleOutcome):
        return runs
    if evidence.transport == "stdio" or evidence.authorization:
        return not_applicable("other clients cannot reach the tasks")
    ids = [(run, task) for run in evidence.task_runs if (task := created_task_id(run.steps))]
    faults = (
        Fault(f"the next taskId after {one!r} is {other!r}"[:200], run.tool, run.steps[0])
        for (_, one), (run, other) in pairwise(ids)
        if one != other and _COUNTED.sub("#", one) == _COUNTED.sub("#", other) and _is_near(one, other)
    )
    return RuleOutcome(tuple(faults)[:1])


def _is_near(one: str, other: str) -> bool:
    pairs = zip(_COUNTED.findall(one), _COUNTED.findall(other), strict=True)
    return sum(abs(int(a) - int(b)) for a, b in pairs) < _NEAR


# --- the task object ---


def _is_time(value: Any) -> bool:
    """Return True for a timestamp of ISO 8601."""
    try:
        return isinstance(value, str) and ":" in value and bool(datetime.fromisoformat(value.upper()))
    except ValueError:
        return False


def _has_offset(value: Any) -> bool:
    return not _is_time(value) or datetime.fromisoformat(value.upper()).tzinfo is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


# Member of a task → function that checks its value, which is `_MISSING` for a missing member.
_MEMBERS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "status": lambda value: value in _STATUSES,
    "createdAt": _is_time,
    "lastUpdatedAt": _is_time,
    "ttl": lambda value: value is None or _is_number(value),
    "pollInterval": lambda value: value is _MISSING or _is_number(value),
    "statusMessage": lambda value: value is _MISSING or isinstance(value, str),
}


class _Sent(NamedTuple):
    """A part of a server's message that must identify a task. `wanted` is the id of the task, if it is known."""

    where: str
    value: Any
    wanted: Any = None
    exchange: WireExchange | None = None

    def fault(self, words: str, lesser: Severity | None = None) -> Fault:
        proof = None if self.exchange else {"sent by the server": str(self.value)[:1_000]}
        return Fault(words[:200], self.where, self.exchange, proof, lesser)


def _tasks(evidence: Evidence) -> RuleSubjects[_Sent] | RuleOutcome:
    """Return every task that the server sent."""
    if (reason := missing_lifecycle_outcome(evidence, "legacy")) is not None:
        return reason
    listing, later = evidence.task_list or (Listing("tasks/list"), ())
    steps = [step for run in evidence.task_runs for step in run.steps if step.method != "tasks/result"]
    found = [
        _Sent(step.method, task, step.params.get("taskId"), step)
        for step in (*steps, *later)
        if (task := task_object(step)) is not None
    ]
    shown = listing.exchanges[0] if listing.exchanges else None
    found += [_Sent(listing.method, task, None, shown) for task in listing.items if isinstance(task, dict)]
    told = (one for one in evidence.server_messages if one.method == _STATUS and not one.modern)
    found += [_Sent(one.method, one.params) for one in told]
    return RuleSubjects(found, len({one.where for one in found}), once=True) if found else _NO_TASKS


@rule("tasks.fields", 3, gate=True, over=_tasks,
      statement=("Each task has a status, createdAt and lastUpdatedAt as ISO 8601 timestamps, and a ttl, which is null "
                 "or a number. Answers to tasks/get and tasks/cancel have the requested taskId."),
      source=f"{_PAGE}, TTL and Resource Management and Task Status; schema, Task",
      hint="send all members of a task in every message; null is the ttl of a task without a time limit")  # fmt: skip
def _fields(sent: _Sent) -> Iterator[Fault]:
    for name, fits in _MEMBERS.items():
        value = sent.value.get(name, _MISSING)
        if not fits(value):
            yield sent.fault(f"a task has no {name}" if value is _MISSING else f"{name} of a task is {value!r}")
        elif name.endswith("At") and not _has_offset(value):
            yield sent.fault(f"{name} of a task has no time zone: {value!r}", lesser=2)
    task = sent.value.get("taskId")
    if sent.wanted is not None and task != sent.wanted:
        yield sent.fault(f"the task {sent.wanted!r} was requested, but taskId is {task!r}")
    elif not isinstance(task, str) and sent.where != "tools/call":
        yield sent.fault(f"taskId is {task!r}")


# --- the lifecycle ---


def _statuses(run: TaskRun) -> list[tuple[WireExchange, Any]]:
    """Return (exchange, status) in order, without answers to the cancellation of an ended task."""
    found: list[tuple[WireExchange, Any]] = []
    for step in run.steps:
        status, ended = task_status(step), bool(found) and found[-1][1] in TERMINAL
        if status in _STATUSES and not (step.method == "tasks/cancel" and ended):
            found.append((step, status))
    return found


@rule("tasks.final-status", 3, gate=True, over=_runs,
      statement="The status completed, failed or cancelled of a task never changes.",
      source=f"{_PAGE}, Task Status Lifecycle and Task Cancellation",
      hint="ignore the end of a canceled call, and every change of a task that has ended")  # fmt: skip
def _final(run: TaskRun) -> Iterator[Fault]:
    for (_, before), (step, status) in pairwise(_statuses(run)):
        if before in TERMINAL and status != before:
            yield Fault(f"the status of a task changed from {before} to {status}", run.tool, step)


def _results(run: TaskRun) -> list[tuple[Any, WireExchange, Any]]:
    """Return (status before, exchange, status after) of each `tasks/result`."""
    steps = run.steps
    return [
        (task_status(steps[at - 1]), step, task_status(steps[at + 1]) if at + 1 < len(steps) else None)
        for at, step in enumerate(steps)
        if step.method == "tasks/result"
    ]


@rule("tasks.result-waits", 3, gate=True, over=_runs,
      statement="tasks/result is answered when the task has ended, and not earlier.",
      source=f"{_PAGE}, Result Retrieval",
      hint="wait in tasks/result until the task has ended")  # fmt: skip
def _waits(run: TaskRun) -> Iterator[Fault]:
    for before, step, after in _results(run):
        if step.received is not None and after in _STATUSES[:2]:
            words = f"tasks/result got {describe_answer(step)} while the status of the task was {after}"
            yield Fault(words, run.tool, step)
        elif step.problem.startswith("no answer") and before in TERMINAL:
            yield Fault(f"tasks/result of a task with the status {before} got no answer", run.tool, step)


@rule("tasks.result", 3, gate=True, over=_runs,
      statement="tasks/result of a task that has ended returns what the call returns without a task.",
      source=f"{_PAGE}, Result Retrieval and Task Execution Errors",
      hint="store the result of the tool, and return it unchanged except for its metadata")  # fmt: skip
def _returns(run: TaskRun, evidence: Evidence) -> Iterator[Fault]:
    ended = _ended_results(run)
    for step in ended:
        if step.result is None and task_status(run.steps[-1]) == "completed":
            yield Fault(f"tasks/result of a completed task got {describe_answer(step)}", run.tool, step)
            return
    same = [one.outcome for other in evidence.task_runs if other.plain is run.plain for one in _ended_results(other)]
    plain = [one.outcome for one in run.plain]
    # Results that change from call to call are not compared.
    stable = all(one == results[0] for results in (same, plain) for one in results)
    if plain and len(same) > 1 and stable and same[0] != plain[0]:
        yield Fault("tasks/result differs from the result of the same call without a task", run.tool, ended[-1])


def _ended_results(run: TaskRun) -> list[WireExchange]:
    return [step for _, step, after in _results(run) if step.received is not None and after in TERMINAL]


def _related(value: Any) -> Any:
    meta = value.get("_meta") if isinstance(value, dict) else None
    related = meta.get(_RELATED) if isinstance(meta, dict) else None
    return related.get("taskId") if isinstance(related, dict) else None


def _associated(evidence: Evidence) -> RuleSubjects[_Sent] | RuleOutcome:
    """Return the results and requests that must name their task in their metadata."""
    steps = [step for run in evidence.task_runs for step in run.steps]
    found = [
        _Sent(step.method, step.result, step.params.get("taskId"), step)
        for step in steps
        if step.method == "tasks/result" and step.result is not None
    ]
    for one in evidence.server_messages:
        during = one.during or {}
        if one.method in _ASKING and during.get("method") == "tasks/result":
            found.append(_Sent(one.method, one.params, during["params"].get("taskId")))
    return RuleSubjects(found, 1, once=True) if found else _NO_TASKS


@rule("tasks.related-task", 3, gate=True, over=_associated,
      statement=(f"The result of tasks/result, and requests for input of a task, have {_RELATED} with the taskId in "
                 "their metadata."),
      source=f"{_PAGE}, Related Task Metadata",
      hint=f'add "_meta": {{"{_RELATED}": {{"taskId": …}}}}')  # fmt: skip
def _names_task(sent: _Sent) -> Iterator[Fault]:
    if _related(sent.value) != sent.wanted:
        words = f"the metadata of {sent.where} names the task {_related(sent.value)!r}, not {sent.wanted!r}"
        yield sent.fault(words)


# --- cancellation ---


def _cancellations(evidence: Evidence) -> RuleSubjects[tuple[TaskRun, Any, WireExchange, Any]] | RuleOutcome:
    """Return (run, status before, exchange, status after) of each `tasks/cancel`."""
    found = [
        (run, task_status(run.steps[at - 1]), step, next(filter(None, map(task_status, run.steps[at + 1 :])), None))
        for run in evidence.task_runs
        for at, step in enumerate(run.steps)
        if step.method == "tasks/cancel"
    ]
    return RuleSubjects(found) if found else not_applicable("no task was canceled")


@rule("tasks.cancellation", 3, gate=True, over=_cancellations,
      statement="tasks/cancel of a running task is answered with the task, and its status is cancelled.",
      source=f"{_PAGE}, Task Cancellation",
      hint="set the status before you answer, or do not declare tasks.cancel")  # fmt: skip
def _cancels(found: tuple[TaskRun, Any, WireExchange, Any]) -> Iterator[Fault]:
    run, before, step, after = found
    if before in TERMINAL:
        return
    status = task_status(step)
    if step.result is not None and status != "cancelled":
        yield Fault(f"tasks/cancel was answered, and the status of the task is {status!r}"[:200], run.tool, step)
    elif step.code == METHOD_NOT_FOUND or (step.result is None and after in _STATUSES[:2]):
        words = f"tasks/cancel got {describe_answer(step)}; the status of the task is {after}"
        yield Fault(words, run.tool, step)


@rule("tasks.late-cancellation", 3, gate=True, over=_cancellations,
      statement=f"tasks/cancel of a task that has ended is answered with error {INVALID_PARAMS}.",
      source=f"{_PAGE}, Task Cancellation and Protocol Errors",
      hint="check the status of the task first")  # fmt: skip
def _cancels_late(found: tuple[TaskRun, Any, WireExchange, Any]) -> Iterator[Fault]:
    run, before, step, _ = found
    if before in TERMINAL and step.received is not None:
        yield from error(INVALID_PARAMS, tolerates="error")(step, run.tool)


# --- lists and unknown tasks ---

_UNKNOWN: Final = ("unknown-task-get", "unknown-task-result", "unknown-task-cancel")  # probes


def _unknown_tasks(evidence: Evidence) -> RuleSubjects[tuple[Probe, WireExchange]] | RuleOutcome:
    asked = [(PROBES[name], evidence.probes[name]) for name in _UNKNOWN if name in evidence.probes]
    return RuleSubjects(asked) if asked else not_applicable("the server declares no tasks")


@rule("tasks.unknown-task", 3, gate=True, over=_unknown_tasks,
      statement=f"A request about a task that does not exist is answered with error {INVALID_PARAMS}.",
      source=f"{_PAGE}, Protocol Errors",
      hint="look up the task before anything else")  # fmt: skip
def _unknown(asked: tuple[Probe, WireExchange]) -> Iterator[Fault]:
    probe, exchange = asked
    yield from probe.faults(exchange)


RULES.row("tasks.unknown-cursor", 2, until=TASKS, over=probed("unknown-task-cursor"),
          statement=f"tasks/list with an unknown cursor is answered with error {INVALID_PARAMS}.",
          source=f"{_PAGE}, Protocol Errors",
          hint="return an error if you cannot read the cursor")  # fmt: skip


def _listed(evidence: Evidence) -> RuleSubjects[tuple[Listing, tuple[WireExchange, ...]]] | RuleOutcome:
    return RuleSubjects([evidence.task_list]) if evidence.task_list else not_applicable("no tasks were listed")


@rule("tasks.list", 3, gate=True, over=_listed,
      statement="tasks/list returns each task that tasks/get returns, on pages that end.",
      source=f"{_PAGE}, Task Listing",
      hint="return nextCursor if there are more tasks; or do not declare tasks.list")  # fmt: skip
def _lists(found: tuple[Listing, tuple[WireExchange, ...]]) -> Iterator[Fault]:
    listing, later = found
    shown = listing.exchanges[-1]
    if listing.problem:
        yield Fault(listing.problem, listing.method, shown)
        return
    listed = {str(task.get("taskId")) for task in listing.items if isinstance(task, dict)}
    known = [str(step.params.get("taskId")) for step in later if step.result is not None]
    if missing := [task for task in known if task not in listed]:
        # Some SDKs list nothing if they cannot distinguish clients.
        lesser: Severity | None = None if listing.items else 2
        words = f"tasks/list has {len(listing.items)} tasks, but not {missing[0]!r}, which tasks/get returns"
        yield Fault(words, listing.method, shown, lesser=lesser)
