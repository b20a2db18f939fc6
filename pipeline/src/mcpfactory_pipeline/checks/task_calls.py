"""Call tools as tasks, and poll, cancel and list the tasks (last handshake revision, basic/utilities/tasks).

Each tool gets the arguments of an earlier call that succeeded. A tool that requires tasks has no such call, so it gets
the arguments of its refused call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall, TaskRun
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, TASKS, WireExchange
from mcpfactory_pipeline.checks.probes import read_all_pages
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.types import Json

TERMINAL: Final = ("completed", "failed", "cancelled")
_TTL: Final = 60_000  # milliseconds; requested lifetime of a task
_MAX_TOOLS: Final = 2
_LONGEST: Final = 5_000  # milliseconds; slower tools are not called as tasks
_SECONDS: Final = 20.0  # seconds for all requests of a session about tasks
_PAUSE: Final = 0.2  # seconds; a canceled call may still end after its usual duration and this time
_MAX_PAUSE: Final = 2.0  # seconds


def declares_tasks(capabilities: Mapping[str, Any], *names: str) -> bool:
    """Return True if the capability `tasks` contains the nested member `names`."""
    value: Any = capabilities.get("tasks")
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None


def declares_task_calls(capabilities: Mapping[str, Any]) -> bool:
    """Return True if tools can be called as tasks."""
    return declares_tasks(capabilities, "requests", "tools", "call")


def task_support(tool: Json) -> Any:
    """Return the `taskSupport` of a listed tool; "forbidden" is the default."""
    execution = tool.get("execution")
    return execution.get("taskSupport", "forbidden") if isinstance(execution, dict) else "forbidden"


def task_object(exchange: WireExchange) -> Json | None:
    """Return the task in the answer to a call, `tasks/get` or `tasks/cancel`, or None."""
    result = exchange.result or {}
    task = result.get("task") if exchange.method == "tools/call" else result
    return task if isinstance(task, dict) and exchange.result is not None else None


def task_status(exchange: WireExchange) -> Any:
    """Return the status of the task in an answer, or None."""
    return (task_object(exchange) or {}).get("status")


def created_task_id(steps: Sequence[WireExchange]) -> str:
    """Return the id of the task that a call created; "" if no task was created."""
    task = (task_object(steps[0]) or {}).get("taskId")
    return task if isinstance(task, str) else ""


def task_call_params(call: RecordedCall) -> Json:
    """Return the params of a call, repeated as a task."""
    return {**params_without_meta(call.exchange.sent), "task": {"ttl": _TTL}}


async def observe_tasks(
    evidence: Evidence,
    conversation: Conversation,
    requests: Requester,
    permitted: Container[str],
    *,
    record_unanswered: bool = True,
) -> None:
    """Call up to two tools as tasks, and record all requests about the tasks.

    If the server does not support tasks, call one tool with the metadata of a task, which the server must ignore.

    Args:
        evidence: the observations to extend.
        conversation: an open session of the newest handshake revision.
        requests: builds and sends the requests.
        permitted: names of the tools that may be called.
        record_unanswered: also record tasks with unanswered requests.
    """
    hello = evidence.handshakes.get(LATEST_HANDSHAKE)
    agreed = (hello.result or {}).get("protocolVersion") if hello is not None else None
    if agreed == TASKS and requests.lifecycle == "legacy":
        runs = await _TaskCaller(evidence, conversation, requests, permitted).run()
        answered = [one for one in runs if all(step.received is not None for step in one.steps)]
        evidence.task_runs += runs if record_unanswered else answered


class _TaskCaller:
    def __init__(
        self, evidence: Evidence, conversation: Conversation, requests: Requester, permitted: Container[str]
    ) -> None:
        self._evidence = evidence
        self._conversation = conversation
        self._requests = requests
        self._runs: list[TaskRun] = []
        self._until = time.monotonic() + _SECONDS
        calls = [one for one in evidence.calls if one.tool in permitted and one.exchange.milliseconds <= _LONGEST]
        self._worked = {call.tool: call for call in reversed(calls) if not call.failed}
        self._first = {call.tool: call for call in reversed(calls)} | self._worked

    async def run(self) -> list[TaskRun]:
        evidence = self._evidence
        support = {name: task_support(tool) for name, tool in evidence.named_tools}
        declared = declares_task_calls(evidence.capabilities)
        plain = [call for name, call in self._worked.items() if not declared or support.get(name) == "forbidden"]
        if plain:
            name = "task-forbidden" if declared else "task-undeclared"
            answer = await self._ask("tools/call", task_call_params(plain[0]))
            evidence.probes.setdefault(name, answer)
        required = [call for name, call in self._first.items() if support.get(name) == "required"]
        optional = [call for name, call in self._worked.items() if support.get(name) == "optional"]
        chosen = [*required[:1], *optional, *required[1:]][:_MAX_TOOLS] if declared else []
        for call in chosen:
            await self._complete(call)
        if chosen and declares_tasks(evidence.capabilities, "cancel"):
            await self._cancel(max(chosen, key=lambda call: call.exchange.milliseconds // 100))
        if self._runs and declares_tasks(evidence.capabilities, "list") and not self._over():
            await self._list()
        return self._runs

    async def _complete(self, call: RecordedCall) -> None:
        """Call a tool as a task, and wait for its result; if the result differs from the plain call, repeat both."""
        first = await self._run(call)
        results = [one for one in first.steps if one.method == "tasks/result"]
        if not call.failed and results and results[-1].outcome != call.exchange.outcome and not self._over():
            plain = (call.exchange, await self._ask("tools/call", params_without_meta(call.exchange.sent)))
            self._runs += [TaskRun(call.tool, first.steps, plain)]
            self._runs += [TaskRun(call.tool, (await self._run(call)).steps, plain)]
        else:
            self._runs.append(first)

    async def _run(self, call: RecordedCall) -> TaskRun:
        steps = [await self._create(call)]
        if (task := created_task_id(steps)) and not self._over():
            steps += [await self._about(task, "get"), await self._about(task, "result")]
            steps.append(await self._about(task, "get"))
            if steps[-2].received is None and task_status(steps[-1]) in TERMINAL and not self._over():
                steps.append(await self._about(task, "result"))
            if task_status(steps[-1]) in TERMINAL and declares_tasks(self._evidence.capabilities, "cancel"):
                steps += [await self._about(task, "cancel"), await self._about(task, "get")]
        return TaskRun(call.tool, tuple(steps))

    async def _cancel(self, call: RecordedCall) -> None:
        """Cancel a task at once, and poll it until its call would have ended."""
        steps = [await self._create(call)]
        if (task := created_task_id(steps)) and not self._over():
            steps += [await self._about(task, "cancel"), await self._about(task, "get")]
            if task_status(steps[-1]) is not None:
                await asyncio.sleep(min(call.exchange.milliseconds / 1000 + _PAUSE, _MAX_PAUSE))
                steps.append(await self._about(task, "get"))
        self._runs.append(TaskRun(call.tool, tuple(steps)))

    async def _list(self) -> None:
        """List the tasks, then get each task, because a task that has expired need not be listed."""
        ids = [task for one in self._runs if (task := created_task_id(one.steps))]
        listing = await read_all_pages("tasks/list", self._ask, "tasks")
        gets = tuple([await self._about(task, "get") for task in ids])
        self._evidence.task_list = self._evidence.task_list or (listing, gets)

    async def _create(self, call: RecordedCall) -> WireExchange:
        token = next(self._requests.numbers)
        return await self._ask("tools/call", {**task_call_params(call), "_meta": {"progressToken": token}})

    async def _about(self, task: str, operation: str) -> WireExchange:
        return await self._ask(f"tasks/{operation}", {"taskId": task})

    async def _ask(self, method: str, params: Json) -> WireExchange:
        return await self._requests.request(self._conversation, method, params)

    def _over(self) -> bool:
        return min(self._until - time.monotonic(), self._requests.seconds_left()) <= 0
