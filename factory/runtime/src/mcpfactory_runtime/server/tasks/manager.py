"""Execution of tasks, and notification of watchers.

The store has the authoritative state of a task. A watcher is a handler that waits for answers, a blocked
`tasks/result`, or a stream of notifications. Changes by this process reach watchers at once. The store is polled for
expired tasks and for changes by other processes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_CAPABILITY,
    McpError,
)
from mcpfactory_runtime.revisions import TASKS, Revision
from mcpfactory_runtime.revisions.projection import project_tool_result
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.storage.tasks import Change, MemoryTaskStore, SqliteTaskStore, Task, TaskStore
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.inputs import Question


RELATED: Final = "io.modelcontextprotocol/related-task"
"""In the core feature, key in `_meta` for the task that a message belongs to."""


def core_task_object(task: Task, poll_interval: int) -> Json:
    """Return the core feature's `Task` object. A task whose result has `isError` gets the status `failed`."""
    status, message = task.status, task.message
    if task.result is not None and task.result.get("isError"):
        status, message = "failed", _error_text(task.result)
    return _form(task, (status, message), {"ttl": task.ttl, "pollInterval": poll_interval})


def extension_task_object(task: Task, poll_interval: int) -> Json:
    """Return the extension's `Task` object."""
    return _form(task, (task.status, task.message), {"ttlMs": task.ttl, "pollIntervalMs": poll_interval})


def detailed_task_object(task: Task, poll_interval: int, revision: Revision) -> Json:
    """Return the extension's `DetailedTask` object, which contains questions, a result or an error."""
    form = extension_task_object(task, poll_interval)
    if task.status == "input_required":
        form["inputRequests"] = task.requests
    elif task.result is not None:
        form["result"] = {"resultType": "complete", **projected_tool_result(task.result, revision)}
    elif task.error is not None:
        form["error"] = task.error
    return form


def projected_tool_result(result: Json, revision: Revision) -> Json:
    """Return a copy of a stored result in the form of the peer's revision."""
    return dict(project_tool_result(result, revision))


def related_task_meta(task_id: str) -> Json:
    """Return the `_meta` of a message that belongs to a task."""
    return {RELATED: {"taskId": task_id}}


def missing_extension() -> McpError:
    """Return the error for a request that does not declare the extension (ext-tasks, Capability Negotiation)."""
    return McpError(
        MISSING_CAPABILITY,
        f"This needs the client capability extensions.{TASKS}, which the client did not declare with this request",
        {"requiredCapabilities": {"extensions": {TASKS: {}}}},
    )


def no_result_error(task: Task) -> McpError:
    """Return the error of `tasks/result` for a task that ended without a result."""
    if task.error is not None:
        return McpError(task.error["code"], task.error["message"], task.error.get("data"))
    return McpError(INVALID_REQUEST, f"The task was cancelled and has no result: {task.message}")


def _form(task: Task, state: tuple[str, str | None], times: Json) -> Json:
    status, message = state
    form: Json = {"taskId": task.id, "status": status}
    if message:
        form["statusMessage"] = message
    form["createdAt"], form["lastUpdatedAt"] = _iso(task.created), _iso(task.updated)
    return form | times


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _error_text(result: Json) -> str:
    texts = [block.get("text", "") for block in result.get("content", ()) if block.get("type") == "text"]
    return texts[0] if texts and texts[0] else "The tool reported an error"


ENVIRONMENT: Final = "MCPFACTORY_TASKS_DB"
"""Environment variable with the path of the task database."""


Watcher = Callable[[Task | None], None]
"""Function that is called with each version of a task, and with None when the task has expired."""

log = logging.getLogger(__name__)

_GRACE: Final = 1.0  # seconds for handlers to clean up at shutdown
_STOPPED: Final = {"code": INTERNAL_ERROR, "message": "The server ended before the task did. hint: call the tool again"}


@dataclass(slots=True)
class TaskOptions:
    """Storage options of tasks.

    Attributes:
        store: the storage; in memory by default.
        ttl: default lifetime of a task in milliseconds.
        max_ttl: maximum lifetime in milliseconds that a client can request.
        poll_interval: milliseconds that clients should wait between polls.
        limit: maximum number of running tasks of one principal in this process.
        watch: seconds between polls of the store for expiry and for changes by other processes.
    """

    store: TaskStore = field(default_factory=MemoryTaskStore)
    ttl: int = 3_600_000
    max_ttl: int = 86_400_000
    poll_interval: int = 1_000
    limit: int = 100
    watch: float = 0.5


def read_task_options(given: TaskOptions | TaskStore | str | PathLike[str] | None) -> TaskOptions:
    """Return options for a store or a database path. The default path is in MCPFACTORY_TASKS_DB."""
    if isinstance(given, TaskOptions):
        return given
    if isinstance(given, TaskStore):
        return TaskOptions(given)
    path = given or os.environ.get(ENVIRONMENT)
    if not path:
        return TaskOptions()
    return TaskOptions(SqliteTaskStore(path))


class TaskRun:
    """A task whose handler runs in this process.

    Attributes:
        questions: questions of the handler by MCP key.
        ended: True if the task has ended, even if the handler still runs.
    """

    def __init__(self, task: Task, handler: asyncio.Task[Json]) -> None:
        self.id = task.id
        self.owner = task.owner
        self.handler = handler
        self.questions: dict[str, Question[Any]] = {}
        self.ended = False
        self._message: str | None = None
        self._message_writer: asyncio.Task[None] | None = None

    def key(self, name: str) -> str:
        """Return a question key that is unique over the lifetime of the task (ext-tasks)."""
        key, count = name, 1
        while key in self.questions:
            count += 1
            key = f"{name}-{count}"
        return key

    def set_message(self, message: str, manager: TaskManager) -> None:
        """Set the task's status message. If several messages arrive during a write, only the latest is written."""
        self._message = message
        if self._message_writer is None or self._message_writer.done():
            self._message_writer = asyncio.get_running_loop().create_task(self._write_messages(manager))

    async def _write_messages(self, manager: TaskManager) -> None:
        while self._message is not None and not self.ended:
            message, self._message = self._message, None
            await manager.change(self.id, partial(Task.with_message, message=message))

    async def flush_messages(self) -> None:
        """Wait until the last message is written."""
        if self._message_writer is not None:
            await asyncio.wait([self._message_writer])


class _Watch:
    __slots__ = ("version", "watchers")

    def __init__(self, version: int) -> None:
        self.version = version
        self.watchers: list[Watcher] = []


class TaskManager:
    """The tasks of one server."""

    def __init__(self, options: TaskOptions) -> None:
        self.options = options
        self.store = options.store
        self._runs: dict[str, TaskRun] = {}
        self._supervisors: set[asyncio.Task[Any]] = set()
        self._watches: dict[str, _Watch] = {}
        self._poller: asyncio.Task[None] | None = None
        self._claims: set[tuple[str, str]] = set()

    # -- creating and running ------------------------------------------------------------------------------------

    async def create(self, tool: str, owner: str, ttl: int | None) -> Task:
        """Create and store a task. `ttl` is the requested lifetime in milliseconds."""
        options = self.options
        if sum(run.owner == owner for run in self._runs.values()) >= options.limit:
            raise McpError(
                INVALID_REQUEST, f"{options.limit} tasks are already running. hint: wait until one of them ends"
            )
        now = self.store.clock()
        granted = options.ttl if ttl is None else min(ttl, options.max_ttl)
        task = Task(secrets.token_urlsafe(18), owner, tool, now, now, granted)
        try:
            return await self.store.create(task)
        except asyncio.CancelledError:  # the store may have written the task already
            cancellation = self.store.update(task.id, lambda kept: kept.cancelled("The call was cancelled."))
            in_background(self._supervisors, cancellation)
            raise

    def attach_handler(self, task: Task, handler: asyncio.Task[Json]) -> TaskRun:
        """Attach a running handler to a task. The task ends when the handler ends."""
        run = self._runs[task.id] = TaskRun(task, handler)

        def watch(now: Task | None) -> None:
            if now is None or now.terminal:
                run.ended = True
                handler.cancel()

        self.watch(task, watch)
        in_background(self._supervisors, self._supervise(run, watch))
        return run

    def run(self, task_id: str) -> TaskRun:
        """Return the `TaskRun` of a running task."""
        return self._runs[task_id]

    async def _supervise(self, run: TaskRun, watch: Watcher) -> None:
        try:
            await asyncio.wait([run.handler])
            await run.flush_messages()
            await self.change(run.id, _ending(run.handler))
        except Exception:
            log.exception("a task's result could not be stored")
        finally:
            run.ended = True
            self.unwatch(run.id, watch)
            self._runs.pop(run.id, None)

    # -- reading and changing ------------------------------------------------------------------------------------

    async def get(self, task_id: object, owner: str) -> Task:
        """Return a principal's task."""
        if not isinstance(task_id, str):
            raise McpError(INVALID_PARAMS, "Invalid params: taskId must be a string")
        task = await self.store.get(task_id)
        if task is None or task.owner != owner:
            # Report missing, expired and foreign tasks alike, so that callers learn nothing about foreign tasks.
            raise McpError(INVALID_PARAMS, "Invalid params: there is no such task, or it has expired")
        return task

    async def change(self, task_id: str, change: Change) -> Task | None:
        """Change a task, and notify the task's watchers. Return None if nothing changed."""
        task = await self.store.update(task_id, change)
        if task is not None:
            self._publish(task_id, task)
        return task

    async def cancel(self, task: Task) -> Task | None:
        """Cancel a task and its handler. Return None if the task has already ended."""
        return await self.change(task.id, lambda now: now.cancelled("The task was cancelled by request."))

    async def answer(self, task: Task, answers: Json) -> None:
        """Add answers by key to a task. Ignore unknown keys.

        Each answer is `{"result": …}` or `{"error": …}`.
        """
        run = self._runs.get(task.id)
        for key, answer in answers.items():
            if key in task.requests and "result" in answer:
                if not isinstance(answer["result"], dict):
                    raise McpError(INVALID_PARAMS, f"Invalid params: inputResponses.{key} must be an object")
                if run is not None and key in run.questions:
                    run.questions[key].read(answer["result"])
        await self.change(task.id, lambda now: now.answered(answers))

    async def ask(self, run: TaskRun, requests: Json) -> Json:
        """Ask the client the questions of a running task, and return the answers by key."""
        with TaskFollower(self, run.id) as follower:
            task = await self.change(run.id, lambda now: now.asked(requests))
            while task is not None and not all(key in task.answers for key in requests):
                task = await follower.next()
        if task is None:  # the task has ended, so this handler will be canceled soon
            raise asyncio.CancelledError
        return {key: task.answers[key] for key in requests}

    # -- watching ------------------------------------------------------------------------------------------------

    def watch(self, task: Task, watcher: Watcher) -> None:
        """Notify `watcher` of every later version of a task."""
        self._watch(task.id, task.version, watcher)

    def _watch(self, task_id: str, version: int, watcher: Watcher) -> None:
        watch = self._watches.get(task_id)
        if watch is None:
            watch = self._watches[task_id] = _Watch(version)
        watch.version = min(watch.version, version)  # notify the watcher of the older version again
        watch.watchers.append(watcher)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll_store())

    def unwatch(self, task_id: str, watcher: Watcher) -> None:
        """Stop notifying `watcher`."""
        watch = self._watches.get(task_id)
        if watch is not None:
            with suppress(ValueError):
                watch.watchers.remove(watcher)
            if not watch.watchers:
                del self._watches[task_id]

    def claim(self, task_id: str, key: str) -> bool:
        """Return True if the caller must send the question to the client and call `unclaim` afterwards."""
        if (task_id, key) in self._claims:
            return False
        self._claims.add((task_id, key))
        return True

    def unclaim(self, task_id: str, key: str) -> None:
        """Release a claim, so that another call can ask the question."""
        self._claims.discard((task_id, key))
        watch = self._watches.get(task_id)
        if watch is not None:
            watch.version = -1

    def _publish(self, task_id: str, task: Task | None) -> None:
        watch = self._watches.get(task_id)
        if watch is None or (task is not None and task.version <= watch.version):
            return
        if task is not None:
            watch.version = task.version
        for watcher in tuple(watch.watchers):
            watcher(task)

    async def _poll_store(self) -> None:
        """Poll the store for expired tasks and for changes by other processes, until no task is watched."""
        while self._watches:
            await asyncio.sleep(self.options.watch)
            for task_id in tuple(self._watches):
                try:
                    self._publish(task_id, await self.store.get(task_id))
                except Exception:
                    log.exception("a task could not be read")

    # -- shutdown ------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Mark the running tasks as failed at shutdown."""
        supervisors = list(self._supervisors)
        for run in list(self._runs.values()):
            with suppress(Exception):
                await self.change(run.id, lambda task: task.failed(_STOPPED))
            run.handler.cancel()
        if supervisors:
            await asyncio.wait(supervisors, timeout=_GRACE)
        if self._poller is not None:
            self._poller.cancel()
            self._poller = None
        await self.store.close()


class TaskFollower:
    """Context manager that provides the versions of a task. A slow reader gets only the latest version."""

    def __init__(self, manager: TaskManager, task_id: str) -> None:
        self._manager = manager
        self._task_id = task_id
        self._changed = asyncio.Event()
        self._latest: Task | None = None

    def __enter__(self) -> TaskFollower:
        self._manager._watch(self._task_id, -1, self._take)  # noqa: SLF001 - a part of the manager
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.unwatch(self._task_id, self._take)

    def _take(self, task: Task | None) -> None:
        self._latest = task
        self._changed.set()

    async def next(self) -> Task | None:
        """Return the next version of the task, or None if the task has expired."""
        await self._changed.wait()
        self._changed.clear()
        return self._latest


def _ending(handler: asyncio.Task[Json]) -> Change:
    if handler.cancelled():
        return lambda task: task.cancelled("The handler was cancelled.")
    error = handler.exception()
    if error is None:
        result = handler.result()
        try:
            jsonrpc.encode(result)
        except ValueError:
            log.exception("the result of a task cannot be converted to JSON")
            error = McpError(INTERNAL_ERROR, "Internal error: the result cannot be converted to JSON")
        else:
            return lambda task: task.completed(result)
    if not isinstance(error, McpError):
        log.error("a task failed", exc_info=error)
        error = McpError(INTERNAL_ERROR, "Internal error; see the server's log")
    failed = error.to_dict()
    return lambda task: task.failed(failed)
