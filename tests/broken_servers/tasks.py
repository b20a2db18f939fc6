"""Servers whose tools can be called as tasks (revision 2025-11-25)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from tests.broken_servers.healthy import META, Json, RpcError, SampleServer, text

RELATED = META + "related-task"
ENDED = ("completed", "failed", "cancelled")
FORM: Json = {"message": "Count the bats, too?", "requestedSchema": {"type": "object", "properties": {}}}


class HealthyErrands(SampleServer):
    """Runs a task when the client waits for its result; until then, the task can be canceled."""

    declared: ClassVar[Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    support = "optional"
    tasks_page = 1
    can_ask = False
    asked = 0
    late = 0  # number of progress notifications after the end of a task

    def __init__(self, handshakes: list[str], moderns: list[str]) -> None:
        super().__init__(handshakes, moderns)
        self.kept: dict[str, Json] = {}
        self.work: dict[str, Json] = {}  # task ID → params of the call

    def initialize(self, requested: str) -> Json:
        result = super().initialize(requested)
        more = {} if self.declared is None else {"tasks": self.declared}
        return {**result, "capabilities": {**result["capabilities"], **more}}

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        survey = {
            "name": "survey",
            "description": "Count the animals of every house, which takes the keepers a whole night.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "execution": {"taskSupport": "required"},
        }
        return [add, {**moon, "execution": {"taskSupport": self.support}}, survey]

    def call(self, name: str, arguments: Json) -> Json:
        return text("312 animals") if name == "survey" else super().call(name, arguments)

    def supports(self, name: str) -> str:
        tool = next((one for one in self.tools() if one["name"] == name), {})
        return str(tool.get("execution", {}).get("taskSupport", "forbidden"))

    def handshake(self, method: str, params: Json) -> Json:
        if method == "initialize":
            self.can_ask = "elicitation" in params.get("capabilities", {})
        if method == "tools/call":
            return self.called_either_way(params)
        operations: dict[str, Callable[[], Json]] = {
            "tasks/get": lambda: self.get(self.find(params)),
            "tasks/result": lambda: self.result(self.find(params)),
            "tasks/cancel": lambda: self.cancel(self.find(params)),
            "tasks/list": lambda: self.list_tasks(params.get("cursor")),
        }
        return operations[method]() if method in operations else super().handshake(method, params)

    def called_either_way(self, params: Json) -> Json:
        as_task = "task" in params
        if self.supports(params["name"]) == ("forbidden" if as_task else "required"):
            self.refuse(params)
        return self.start(params) if as_task and self.declared else super().handshake("tools/call", params)

    def refuse(self, params: Json) -> None:
        if self.declared:
            raise RpcError(-32601, "as a task, or not as a task")

    def start(self, params: Json) -> Json:
        now = datetime.now(UTC).isoformat()
        task = {"taskId": self.new_id(), "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": 60_000}
        self.kept[task["taskId"]], self.work[task["taskId"]] = task, params
        return {"task": self.shown(task)}

    def new_id(self) -> Any:
        return str(uuid.uuid4())

    def find(self, params: Json) -> Json:
        if params.get("taskId") not in self.kept:
            raise RpcError(-32602, "no such task")
        return self.kept[params["taskId"]]

    def shown(self, task: Json) -> Json:
        return dict(task)

    def get(self, task: Json) -> Json:
        return self.shown(task)

    def settle(self, task: Json, status: str) -> None:
        task |= {"status": status, "lastUpdatedAt": datetime.now(UTC).isoformat()}

    def result(self, task: Json) -> Json:
        params = self.work[task["taskId"]]
        related = {RELATED: {"taskId": task["taskId"]}}
        if task["status"] not in ENDED:
            if self.can_ask:
                self.ask(related)
            self.progress(params.get("_meta", {}).get("progressToken"))
            self.settle(task, "completed")
        return {**self.call_tool(params["name"], params.get("arguments", {})), "_meta": related}

    def ask(self, related: Json) -> None:
        self.asked += 1
        self.write(
            {
                "jsonrpc": "2.0",
                "id": f"zoo-{self.asked}",
                "method": "elicitation/create",
                "params": {**FORM, "_meta": related},
            }
        )

    def cancel(self, task: Json) -> Json:
        if task["status"] in ENDED:
            raise RpcError(-32602, "the task has ended")
        self.settle(task, "cancelled")
        return self.shown(task)

    def list_tasks(self, cursor: str | None) -> Json:
        if cursor is not None and cursor not in self.kept:
            raise RpcError(-32602, "no such cursor")
        ids = list(self.kept)
        start = ids.index(cursor) if cursor is not None else 0
        rest = {"nextCursor": ids[start + self.tasks_page]} if start + self.tasks_page < len(ids) else {}
        return {"tasks": [self.shown(self.kept[one]) for one in ids[start : start + self.tasks_page]], **rest}


class Deviation(NamedTuple):
    """Method of `HealthyErrands` that a broken server replaces."""

    rule: str
    name: str
    replacement: Any
    tolerated: bool = False


def _raise(code: int) -> Any:
    def refuse(*_: Any) -> Json:
        raise RpcError(code, "no")

    return refuse


def _refuse_if(*, task: bool) -> Any:
    def refuse(self: HealthyErrands, params: Json) -> None:
        if ("task" in params) is task:
            HealthyErrands.refuse(self, params)

    return refuse


def _refuse_with(code: int) -> Any:
    def refuse(self: HealthyErrands, params: Json) -> None:
        if "task" not in params:
            raise RpcError(code, "only as a task")
        HealthyErrands.refuse(self, params)

    return refuse


def _no_list(self: HealthyErrands, cursor: str | None) -> Json:
    HealthyErrands.list_tasks(self, cursor)
    return {"tasks": []}


def _without(key: str) -> Any:
    return lambda _, task: {name: value for name, value in task.items() if name != key}


def _shown(**changes: Any) -> Any:
    return lambda _, task: {**task, **changes}


def _early(self: HealthyErrands, task: Json) -> Json:
    return {**text("the task runs"), "_meta": {RELATED: {"taskId": task["taskId"]}}}


def _other_result(self: HealthyErrands, task: Json) -> Json:
    return {**HealthyErrands.result(self, task), **text("the task is done")}


def _forgetful(self: HealthyErrands, task: Json) -> Json:
    return {**HealthyErrands.result(self, task), "_meta": {}}


def _resurrected(self: HealthyErrands, task: Json) -> Json:
    shown = dict(task)
    if task["status"] == "cancelled":
        self.settle(task, "completed")
    return shown


def _fabricated(self: HealthyErrands, task: str) -> Json:
    self.work[task] = {"name": "survey"}
    return {"taskId": task, "status": "completed"}


def _finished(self: HealthyErrands, created: Json) -> Json:
    task = self.kept[created["task"]["taskId"]]
    self.settle(task, "completed")
    return {"task": dict(task)}


def _progressing(self: HealthyErrands, task: Json) -> Json:
    if task["status"] == "completed":
        self.late += 1
        self.report(self.work[task["taskId"]]["_meta"]["progressToken"], 2 + self.late)
    return dict(task)


# The name describes the fault of a server.
DEVIATIONS: dict[str, Deviation] = {
    "Wrongheaded": Deviation("tasks.required", "refuse", _refuse_with(-32602), tolerated=True),
    "Zoneless": Deviation("tasks.fields", "shown", _shown(createdAt="2025-11-25T10:30:00"), tolerated=True),
    "Reticent": Deviation("tasks.list", "list_tasks", _no_list, tolerated=True),
    "Overzealous": Deviation("content.schema", "declared", {"requests": {"tools": {"call": True}}}),
    "Indecisive": Deviation("content.schema", "support", "sometimes"),
    "Permissive": Deviation(
        "tasks.required", "refuse", _refuse_if(task=True)
    ),
    "Taskmaster": Deviation(
        "tasks.forbidden", "refuse", _refuse_if(task=False)
    ),
    "Immediate": Deviation(
        "tasks.creation", "start", lambda self, params: self.call_tool(params["name"], params.get("arguments", {}))
    ),
    "Monotasker": Deviation("tasks.creation", "new_id", lambda _: "one-and-only"),
    "Finalizer": Deviation(
        "tasks.first-status", "start", lambda self, params: _finished(self, HealthyErrands.start(self, params))
    ),
    "Dateless": Deviation("tasks.fields", "shown", _without("createdAt")),
    "Immortal": Deviation("tasks.fields", "shown", _without("ttl")),
    "Stopwatch": Deviation("tasks.fields", "shown", _shown(lastUpdatedAt=1_764_066_600)),
    "Enqueuer": Deviation("tasks.fields", "get", _shown(status="queued")),
    "Swapper": Deviation("tasks.fields", "get", _shown(taskId="another")),
    "Undead": Deviation("tasks.final-status", "get", _resurrected),
    "Premature": Deviation("tasks.result-waits", "result", _early),
    "Impatient": Deviation("tasks.result-waits", "result", _raise(-32602)),
    "Paraphraser": Deviation("tasks.result", "result", _other_result),
    "Unrelated": Deviation("tasks.related-task", "result", _forgetful),
    "Unsigned": Deviation("tasks.related-task", "ask", lambda self, _: HealthyErrands.ask(self, {})),
    "Relentless": Deviation(
        "tasks.cancellation", "cancel",
        lambda self, task: dict(task) if task["status"] == "working" else HealthyErrands.cancel(self, task),
    ),
    "Latecomer": Deviation(
        "tasks.late-cancellation", "cancel",
        lambda self, task: dict(task) if task["status"] == "completed" else HealthyErrands.cancel(self, task),
    ),
    "Fabricator": Deviation(
        "tasks.unknown-task", "find",
        lambda self, params: self.kept.get(params["taskId"]) or _fabricated(self, params["taskId"]),
    ),
    "Unturnable": Deviation(
        "tasks.unknown-cursor", "list_tasks",
        lambda self, cursor: HealthyErrands.list_tasks(self, cursor if cursor in self.kept else None),
    ),
    "Forgetter": Deviation(
        "tasks.list", "list_tasks",
        lambda self, cursor: {"tasks": HealthyErrands.list_tasks(self, cursor)["tasks"]},
    ),
    "Reminder": Deviation(
        "server-messages.progress-token", "get", _progressing
    ),
}  # fmt: skip


class Errand(HealthyErrands):
    """Base of the servers in the table."""


def errands() -> dict[str, type[SampleServer]]:
    """Return the servers of the table."""
    return {
        name: type(
            name,
            (Errand,),
            {
                "rule": one.rule,
                one.name: one.replacement,
                "tolerated": one.tolerated,
                "__doc__": f"Replaces {one.name}.",
            },
        )
        for name, one in DEVIATIONS.items()
    }


class Stealthy(HealthyErrands):
    """Makes tasks, but does not declare them."""

    rule = "tasks.undeclared"
    declared = None

    def called_either_way(self, params: Json) -> Json:
        return self.start(params) if "task" in params else SampleServer.handshake(self, "tools/call", params)


class Strict(SampleServer):
    """Refuses calls with the metadata of a task, as widely used SDKs do."""

    rule = "tasks.undeclared"
    tolerated = True

    def handshake(self, method: str, params: Json) -> Json:
        if "task" in params:
            raise RpcError(-32602, "no tasks here")
        return super().handshake(method, params)


class HealthyNightShift(HealthyErrands):
    """Has only a tool that requires tasks."""

    def tools(self) -> list[Json]:
        return super().tools()[-1:]


class Numerator(HealthyErrands):
    """Counts its tasks, and the IDs are numbers, at a URL without credentials."""

    rule = "tasks.guessable-ids"
    at_url = True

    def new_id(self) -> str:
        return f"task-{len(self.kept) + 1}"
