"""The context of a handler that works on a task, or may come to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcpfactory_runtime.protocol.errors import INVALID_REQUEST, McpError
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.tasks.wire import related

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.host import Host, HttpRequest, ReplyChannel, SessionChannel
    from mcpfactory_runtime.server.inputs import Question
    from mcpfactory_runtime.server.rates import Allowance
    from mcpfactory_runtime.server.tasks.manager import TaskManager, TaskRun

__all__ = ["TaskChannel", "TaskContext"]

Json = dict[str, Any]


class TaskChannel:
    """The way back of a task: notifications travel apart from the request that created it, and name the task.

    Args:
        persistent: what outlives the request; None where the revision has no such thing (notifications are dropped).
        principal: who created the task.
        task_id: the task.
        allowance: of the client that created it.
    """

    private = False
    http: HttpRequest | None = None
    subscriptions: set[str] = set()  # noqa: RUF012 - never written: requests of a handler subscribe to nothing

    def __init__(self, persistent: SessionChannel | None, principal: str, task_id: str, allowance: Allowance) -> None:
        self.persistent = persistent
        self.allowance = allowance
        self.principal = principal
        self._task_id = task_id

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification with the task's id (basic/utilities/tasks, Related Task Metadata)."""
        if self.persistent is not None:
            meta = {**params.get("_meta", {}), **related(self._task_id)}
            self.persistent.notify(method, {**params, "_meta": meta}, revision)

    async def request(self, method: str, params: Json) -> Json:
        """Refused: a task asks by its record.

        Raises:
            McpError: always.
        """
        raise McpError(INVALID_REQUEST, f"{method} cannot be sent by a task")

    def close_stream(self, retry: int | None) -> None:
        """Nothing to close."""


class TaskContext(Context):
    """A context whose questions, once the call is a task, wait for their answers instead of ending the handler."""

    def __init__(
        self,
        server: Host,
        call: Call,
        channel: ReplyChannel,
        *,
        manager: TaskManager,
        start: Callable[[], Awaitable[TaskRun]],
    ) -> None:
        super().__init__(server, call, channel, asyncio.get_running_loop())
        self._manager = manager
        self._start = start
        self._run: TaskRun | None = None

    def attach(self, run: TaskRun) -> None:
        """From now on the call is this task."""
        self._run = run
        persistent = None if self._call.peer.revision.modern else self._channel.persistent
        self._channel = TaskChannel(persistent, self._channel.principal, run.id, self._channel.allowance)

    @property
    def task_id(self) -> str | None:
        """The id of the task that this call has become."""
        return None if self._run is None else self._run.id

    @property
    def cancelled(self) -> bool:
        """Whether the task was cancelled or has outlived its time."""
        return self._run is not None and self._run.ended

    async def start_task(self) -> None:
        """Become a task now."""
        if self._run is None:
            await self._start()

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell how far the work is; the message becomes the task's status message, too."""
        if self._run is not None and message is not None:
            self._on_loop(self._run.set_message, message, self._manager)
        return super().report_progress(progress, total, message)

    async def ask(self, **questions: Question[Any]) -> dict[str, Any]:
        """Ask several things at once, and wait."""
        run = self._run
        if run is None:
            return await super().ask(**questions)
        for question in questions.values():
            self._check_capability(question)
        if not questions:
            return {}
        asked: dict[str, Question[Any]] = {}
        keys: dict[str, str] = {}
        for name, question in questions.items():
            keys[name] = run.key(name)
            run.questions[keys[name]] = asked[keys[name]] = question
        requests = {key: {"method": item.method, "params": item.params(self._call.peer)} for key, item in asked.items()}
        answers = await self._manager.ask(run, requests)
        return {name: _read(question, answers[keys[name]]) for name, question in questions.items()}


def _read(question: Question[Any], answer: Json) -> Any:
    """Return what the handler gets for an answer.

    Raises:
        McpError: the client's own error, or INVALID_PARAMS for a malformed answer.
    """
    error = answer.get("error")
    if error is not None:
        raise McpError(error["code"], error["message"], error.get("data"))
    return question.read(answer["result"])
