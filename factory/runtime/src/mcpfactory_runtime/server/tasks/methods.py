"""Protocol methods of tasks, and the context of task handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    McpError,
)
from mcpfactory_runtime.revisions import TASKS, Revision
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import InputRequired
from mcpfactory_runtime.server.execution import run_tool
from mcpfactory_runtime.server.lists import decode_cursor, encode_cursor, unknown_cursor
from mcpfactory_runtime.server.tasks.manager import (
    TaskFollower,
    TaskManager,
    TaskRun,
    Watcher,
    core_task_object,
    detailed_task_object,
    extension_task_object,
    missing_extension,
    no_result_error,
    projected_tool_result,
    related_task_meta,
)
from mcpfactory_runtime.storage.tasks import Task
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.inputs import Question
    from mcpfactory_runtime.server.interfaces import ReplyChannel, ServerInterface, SessionChannel
    from mcpfactory_runtime.server.rates import ClientRateLimits
    from mcpfactory_runtime.server.registry import Tool


class TaskChannel:
    """Reply channel of a task."""

    private = False
    subscriptions: set[str] = set()  # noqa: RUF012 - never written: a task cannot subscribe

    def __init__(
        self, session_channel: SessionChannel | None, principal: str, task_id: str, allowance: ClientRateLimits
    ) -> None:
        self.session_channel = session_channel
        self.allowance = allowance
        self.principal = principal
        self._task_id = task_id

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification with the task's ID (basic/utilities/tasks, Related Task Metadata)."""
        if self.session_channel is not None:
            meta = {**params.get("_meta", {}), **related_task_meta(self._task_id)}
            self.session_channel.notify(method, {**params, "_meta": meta}, revision)

    async def request(self, method: str, params: Json) -> Json:
        """Raise McpError, because a task stores questions instead of sending requests."""
        raise McpError(INVALID_REQUEST, f"a task cannot send {method}")

    def close_stream(self, retry: int | None) -> None:
        """Do nothing, because a task has no stream."""


class TaskContext(Context):
    """Context of a call that can become a task. In a task, the handler waits for answers and is not rerun."""

    def __init__(
        self,
        server: ServerInterface,
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
        """Turn the call into a task."""
        self._run = run
        session_channel = None if self._call.peer.revision.modern else self._channel.session_channel
        self._channel = TaskChannel(session_channel, self._channel.principal, run.id, self._channel.allowance)

    @property
    def task_id(self) -> str | None:
        """Return the ID of the task that this call has become, or None if the call is not a task yet."""
        return None if self._run is None else self._run.id

    @property
    def cancelled(self) -> bool:
        """Return True if the task was canceled or has expired."""
        return self._run is not None and self._run.ended

    async def start_task(self) -> None:
        """Turn the call into a task, if the call is not a task already."""
        if self._run is None:
            await self._start()

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report progress. The message also becomes the task's status message."""
        if self._run is not None and message is not None:
            self._on_loop(self._run.set_message, message, self._manager)
        return super().report_progress(progress, total, message)

    async def ask(self, **questions: Question[Any]) -> dict[str, Any]:
        """Ask several questions at once, and wait for the answers."""
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
    error = answer.get("error")
    if error is not None:
        raise McpError(error["code"], error["message"], error.get("data"))
    return question.read(answer["result"])


log = logging.getLogger(__name__)

_PAGE: Final = 100  # tasks per page of tasks/list, if the server has no page size


class TaskMethods:
    """Task methods of one server."""

    def __init__(self, server: ServerInterface, manager: TaskManager) -> None:
        self._server = server
        self._manager = manager
        self._poll = manager.options.poll_interval
        self._core: dict[str, Callable[[Call, ReplyChannel], Awaitable[Json]]] = {
            "tasks/get": self._get_core,
            "tasks/result": self._result,
            "tasks/list": self._list,
            "tasks/cancel": self._cancel_core,
        }
        self._extension: dict[str, Callable[[Call, ReplyChannel], Awaitable[Json]]] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }

    def answer(self, call: Call, channel: ReplyChannel) -> Awaitable[Json]:
        """Return the result of one of the task methods, without envelope."""
        if not call.peer.revision.modern:
            return self._core[call.method](call, channel)
        if not call.peer.declares("extensions", TASKS):
            raise missing_extension()
        return self._extension[call.method](call, channel)

    # -- tools/call ----------------------------------------------------------------------------------------------

    def becomes_task(self, tool: Tool, call: Call) -> bool:
        """Return True if a call of a tool becomes a task.

        Raises:
            McpError: METHOD_NOT_FOUND if the client requests a forbidden task or omits a required task.
                MISSING_CAPABILITY if a client of the newest revision does not support a required task.
        """
        revision = call.peer.revision
        # If the client supports tasks, the server decides which calls become tasks (ext-tasks, Capability Negotiation).
        if revision.modern:
            if tool.task is not None and call.peer.declares("extensions", TASKS):
                return True
            if tool.task == "required":
                raise missing_extension()
            return False
        # If the tool permits both forms, the client decides (basic/utilities/tasks, Tool-Level Negotiation).
        asked = "tasks/result" in revision.requests and call.params.get("task") is not None
        if asked and tool.task is None:
            raise McpError(METHOD_NOT_FOUND, f"The tool {tool.name} cannot be called as a task")
        if not asked and tool.task == "required":
            raise McpError(
                METHOD_NOT_FOUND,
                f"The tool {tool.name} can only be called as a task. hint: set params.task, if the protocol "
                "revision supports it",
            )
        return asked

    async def call_tool(self, tool: Tool, arguments: Json, call: Call, channel: ReplyChannel) -> Json:
        """Run a call as a task. Return the task, or the tool's result if no task was created."""
        ttl = _requested_ttl(call)
        owner = channel.principal
        created: asyncio.Future[Task] = asyncio.get_running_loop().create_future()
        creating = asyncio.Lock()

        async def start() -> TaskRun:
            async with creating:  # lock, because a handler may call `start_task` several times concurrently
                if created.done():
                    return self._manager.run(created.result().id)
                task = await self._manager.create(tool.name, str(owner), ttl)
                run = self._manager.attach_handler(task, handler)
                context.attach(run)
                self._notify_session(task, call, channel)
                created.set_result(task)
                return run

        async def work() -> Json:
            if at_once:
                await start()
            try:
                return await run_tool(tool, arguments, lambda: context, self._server.registry.around)
            finally:
                context.end()

        at_once = not tool.defer_task or not call.peer.revision.modern
        context = TaskContext(self._server, call, channel, manager=self._manager, start=start)
        handler = asyncio.get_running_loop().create_task(work())
        waited: list[asyncio.Future[Any]] = [handler, created]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not created.done():
                handler.cancel()
            raise
        if created.done():
            task = created.result()
            if call.peer.revision.modern:
                return {"resultType": "task", **extension_task_object(task, self._poll)}
            return {"task": core_task_object(task, self._poll), "_meta": related_task_meta(task.id)}
        try:
            result = handler.result()
        except InputRequired as asked:  # the handler asked a question before the call became a task
            return context.input_required(asked)
        return projected_tool_result(result, call.peer.revision)

    def _notify_session(self, task: Task, call: Call, channel: ReplyChannel) -> None:
        """Send a task's status to the session of the call (basic/utilities/tasks, Task Status Notification)."""
        session_channel = channel.session_channel
        if call.peer.revision.modern or session_channel is None:
            return
        known = [core_task_object(task, self._poll)]

        def watch(now: Task | None) -> None:
            form = known[0] if now is None else core_task_object(now, self._poll)
            if (form["status"], form.get("statusMessage")) != (known[0]["status"], known[0].get("statusMessage")):
                known[0] = form
                session_channel.notify("notifications/tasks/status", form)
            if now is None or now.terminal:
                self._manager.unwatch(task.id, watch)

        self._manager.watch(task, watch)

    # -- the core feature ----------------------------------------------------------------------------------------

    async def _get_core(self, call: Call, channel: ReplyChannel) -> Json:
        return core_task_object(await self._find(call, channel), self._poll)

    async def _cancel_core(self, call: Call, channel: ReplyChannel) -> Json:
        task = await self._manager.cancel(await self._find(call, channel))
        if task is None:
            raise McpError(INVALID_PARAMS, "Invalid params: the task has already ended and cannot be cancelled")
        return core_task_object(task, self._poll)

    async def _list(self, call: Call, channel: ReplyChannel) -> Json:
        if not can_identify_client(channel):
            raise McpError(
                METHOD_NOT_FOUND, "Method not found: tasks/list, because clients cannot be distinguished here"
            )
        size = self._server.page_size or _PAGE
        try:
            after = decode_cursor(call.params)
            tasks, more = await self._manager.store.list(str(channel.principal), after, size)
        except KeyError:
            raise unknown_cursor() from None
        result: Json = {"tasks": [core_task_object(task, self._poll) for task in tasks]}
        if more:
            result["nextCursor"] = encode_cursor(tasks[-1].id)
        return result

    async def _result(self, call: Call, channel: ReplyChannel) -> Json:
        """Send a task's questions to the client until the task ends, and return the task's result."""
        task = await self._find(call, channel)  # refuse tasks of other owners before watching the task
        ending = asyncio.ensure_future(self._server.closing.wait())
        asking: dict[str, asyncio.Task[None]] = {}
        try:
            with TaskFollower(self._manager, task.id) as follower:
                task = await self._find(call, channel)
                while not task.terminal:
                    for key in task.requests:
                        if key not in asking and self._manager.claim(task.id, key):
                            asking[key] = asyncio.ensure_future(self._ask_client(task, key, channel))
                    task = await self._next(follower, ending)
        finally:
            ending.cancel()
            for question in asking.values():
                question.cancel()
        if task.result is None:
            raise no_result_error(task)
        result = projected_tool_result(task.result, call.peer.revision)
        return {**result, "_meta": {**result.get("_meta", {}), **related_task_meta(task.id)}}

    async def _next(self, follower: TaskFollower, ending: asyncio.Future[Any]) -> Task:
        change = asyncio.ensure_future(follower.next())
        try:
            await asyncio.wait([change, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
        if not change.done():
            raise McpError(INTERNAL_ERROR, "The server is shutting down before the task ends")
        task = change.result()
        if task is None:
            raise McpError(INVALID_PARAMS, "The task has expired")
        return task

    async def _ask_client(self, task: Task, key: str, channel: ReplyChannel) -> None:
        request = task.requests[key]
        params = {**request["params"], "_meta": {**request["params"].get("_meta", {}), **related_task_meta(task.id)}}
        try:
            try:
                answer: Json = {"result": await channel.request(request["method"], params)}
            except McpError as error:
                answer = {"error": error.to_dict()}
            await self._manager.change(task.id, lambda now: now.answered({key: answer}))
        except Exception:
            log.exception("a question of a task could not be sent to the client")
        finally:
            self._manager.unclaim(task.id, key)

    # -- the extension -------------------------------------------------------------------------------------------

    async def _get(self, call: Call, channel: ReplyChannel) -> Json:
        return detailed_task_object(await self._find(call, channel), self._poll, call.peer.revision)

    async def _update(self, call: Call, channel: ReplyChannel) -> Json:
        task = await self._find(call, channel)
        responses = call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise McpError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        await self._manager.answer(task, {key: {"result": response} for key, response in responses.items()})
        return {}

    async def _cancel(self, call: Call, channel: ReplyChannel) -> Json:
        await self._manager.cancel(await self._find(call, channel))
        return {}

    async def _find(self, call: Call, channel: ReplyChannel) -> Task:
        return await self._manager.get(call.params.get("taskId"), str(channel.principal))

    # -- subscriptions/listen ------------------------------------------------------------------------------------

    async def visible_tasks(self, task_ids: object, call: Call, channel: ReplyChannel) -> list[Task]:
        """Return the caller's tasks among the task IDs of a `subscriptions/listen` request."""
        if not call.peer.declares("extensions", TASKS):
            raise missing_extension()
        if not isinstance(task_ids, list) or not all(isinstance(task_id, str) for task_id in task_ids):
            raise McpError(INVALID_PARAMS, "Invalid params: taskIds must be a list of strings")
        found = [await self._manager.store.get(task_id) for task_id in dict.fromkeys(task_ids)]
        return [task for task in found if task is not None and task.owner == str(channel.principal)]

    def listen(self, tasks: list[Task], call: Call, channel: ReplyChannel, meta: Json) -> Callable[[], None]:
        """Send the state of each task now and after each change. The returned function stops the notifications."""
        watchers: dict[str, Watcher] = {}

        def send(task: Task) -> None:
            form = detailed_task_object(task, self._poll, call.peer.revision)
            channel.notify("notifications/tasks", {"_meta": meta, **form}, call.peer.revision)

        for task in tasks:
            send(task)  # send the current state, because the client may have missed earlier changes

            def watch(now: Task | None, task_id: str = task.id) -> None:
                if now is not None:
                    send(now)
                if now is None or now.terminal:
                    self._manager.unwatch(task_id, watchers[task_id])

            watchers[task.id] = watch
            self._manager.watch(task, watch)

        def stop() -> None:
            for task_id, watcher in watchers.items():
                self._manager.unwatch(task_id, watcher)

        return stop


def can_identify_client(channel: ReplyChannel) -> bool:
    """Return True if the channel distinguishes clients, so that tasks may be listed (Task Isolation)."""
    return channel.private or bool(channel.principal)


def _requested_ttl(call: Call) -> int | None:
    requested = None if call.peer.revision.modern else call.params.get("task")
    if requested is None:
        return None
    ttl = requested.get("ttl") if isinstance(requested, dict) else "no object"
    if ttl is not None and (type(ttl) is not int or ttl < 0):
        raise McpError(INVALID_PARAMS, "Invalid params: task must be an object, and its ttl a number of milliseconds")
    return None if ttl is None else max(ttl, 1)
