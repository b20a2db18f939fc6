"""Tasks: records, transitions, and storage.

A task changes between working and input_required, until it is completed, failed or cancelled (basic/utilities/tasks,
Task Status Lifecycle; ext-tasks, Task Status).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, Final, Literal

from pydantic_core import from_json, to_json

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.storage import create_store
from mcpfactory_runtime.storage.base import ExpectedEntry, MemoryStore, ProcessRegistry, SharedStore
from mcpfactory_runtime.types import Json

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: Final[frozenset[str]] = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Task:
    """A tool call that runs in the background.

    Attributes:
        id: unguessable ID, and the task's only identifier in messages.
        owner: principal that created the task. No other principal has access to the task. "" without authorization.
        tool: name of the tool.
        created, updated: seconds since the epoch, by the store's clock.
        ttl: milliseconds after `created` at which the task is deleted; None means never.
        status: status of the task. After a failure of the tool itself, the status is `completed`, and the result has
            `isError`.
        message: text about the status, for people.
        requests: unanswered requests to the client: key → request object.
        answers: answers for the handler: key → `{"result": …}` or `{"error": …}`.
        result: the result of a completed task, in the form of the newest revision.
        error: the JSON-RPC error of a failed task.
        runner: ID of the process that runs the task, in the registry of processes.
        version: number that grows with each change.
    """

    id: str
    owner: str
    tool: str
    created: float
    updated: float
    ttl: int | None
    status: Status = "working"
    message: str | None = None
    requests: Json = field(default_factory=dict)
    answers: Json = field(default_factory=dict)
    result: Json | None = None
    error: Json | None = None
    runner: str = ""
    version: int = 0

    @property
    def terminal(self) -> bool:
        """Return True if the status can no longer change."""
        return self.status in TERMINAL

    @property
    def expires(self) -> float | None:
        """Return the expiry in seconds since the epoch; None means never."""
        return None if self.ttl is None else self.created + self.ttl / 1000

    # -- transitions: return the changed task; return None if the task has already ended -----------------------------

    def asked(self, requests: Json) -> Task | None:
        """Add requests that the client must answer."""
        if self.terminal:
            return None
        return replace(self, status="input_required", requests={**self.requests, **requests})

    def answered(self, answers: Json) -> Task | None:
        """Add answers, except answers to unknown requests (ext-tasks, Task Update Requests)."""
        wanted = {key: answer for key, answer in answers.items() if key in self.requests}
        if self.terminal or not wanted:
            return None
        left = {key: request for key, request in self.requests.items() if key not in wanted}
        status: Status = "input_required" if left else "working"
        return replace(self, status=status, requests=left, answers={**self.answers, **wanted})

    def with_message(self, message: str) -> Task | None:
        """Set the status message."""
        return None if self.terminal or self.message == message else replace(self, message=message)

    def completed(self, result: Json) -> Task | None:
        """End with the tool's result."""
        return self._ended("completed", result=result)

    def failed(self, error: Json) -> Task | None:
        """End with a JSON-RPC error."""
        return self._ended("failed", error=error, message=error["message"])

    def cancelled(self, message: str) -> Task | None:
        """End without a result."""
        return self._ended("cancelled", message=message)

    def _ended(self, status: Status, **changes: Any) -> Task | None:
        # Answers may be confidential, and an ended task needs neither requests nor answers.
        return None if self.terminal else replace(self, status=status, requests={}, answers={}, **changes)


Change = Callable[[Task], Task | None]
"""Function that returns the changed task, or None if the task stays unchanged."""


LOST: Final = {
    "code": INTERNAL_ERROR,
    "message": "The server process ended before the task did. hint: call the tool again",
}
"""The error of a task whose process ended before the task."""


_NO_EXPIRY: Final = 10 * 365 * 86_400.0  # seconds that a task without `ttl` is kept
# Minimum seconds that the list of a principal's tasks is kept after the last new task.
_LIST_LIFETIME: Final = 30 * 86_400.0
_CHECKED_ENTRIES: Final = 8  # list entries to check for expiry with each new task
_TASK: Final = "task"
_PLACE: Final = "place"


class TaskStore:
    """Storage of tasks. If a task's process has died, the next read marks the task as failed.

    No method returns a task after the end of its `ttl`. Methods run in the event loop, and raise StoreError.

    Args:
        store: storage. For another database, implement `SharedStore`.
        processes: registry of live processes, which its creator closes. None creates a registry.
        clock: returns seconds since the epoch.
    """

    def __init__(
        self,
        store: SharedStore,
        processes: ProcessRegistry | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self._store = store
        self._own = processes is None
        self._processes = processes or ProcessRegistry(store)
        self._writing = asyncio.Lock()  # one change at a time in this process, to avoid retries
        self._created = 0

    async def create(self, task: Task) -> Task:
        """Store a new task, and return the task with its `runner`."""
        own = replace(task, runner=self._processes.id)
        self._created += 1
        place = f"{own.created:020.6f}/{self._created:012}/{own.id}"
        seconds = self._seconds(own)
        await self._processes.join()
        listed = _list_space(own.owner)
        over = [
            (key, None)
            for key, until in await self._store.scan(listed, limit=_CHECKED_ENTRIES)
            if self._is_expired(until)
        ]
        # Write the list first, because readers skip list entries without a task.
        await self._store.write(listed, [*over, (place, _until(own))], seconds=max(seconds, _LIST_LIFETIME))
        entries = [(_TASK, _encoded(own)), (_PLACE, place.encode())]
        await self._store.write(_space(own.id), entries, seconds=seconds)
        return own

    async def get(self, task_id: str) -> Task | None:
        """Return a task, or None."""
        found = await self._read(task_id)
        return None if found is None else found[0]

    async def update(self, task_id: str, change: Change) -> Task | None:
        """Change a task atomically. Return the changed task, or None if the task is missing or was not changed.

        `change` must be a pure function. The store sets `updated` and `version`.
        """
        async with self._writing:
            while True:
                found = await self._read(task_id)
                changed = change(found[0]) if found is not None else None
                if found is None or changed is None:
                    return None
                after = replace(changed, updated=self.clock(), version=found[0].version + 1)
                if await self._replace(after, found[1]):
                    return after

    async def list(self, owner: str, after: str | None, size: int) -> tuple[list[Task], bool]:
        """Return at most `size` tasks of a principal, oldest first, and True if there are more.

        The first task is the one after the task `after`.

        Raises:
            KeyError: the principal has no task with the ID `after`.
        """
        place = ""
        if after is not None:
            before = await self.get(after)
            if before is None or before.owner != owner:
                raise KeyError(after)
            place = (await self._store.get(_space(after), _PLACE) or b"").decode()
        found: list[Task] = []
        while len(found) <= size:
            places = [key for key, _ in await self._store.scan(_list_space(owner), after=place, limit=size + 1)]
            tasks = [await self.get(key.rpartition("/")[2]) for key in places]
            found += [task for task in tasks if task is not None]
            if len(places) <= size:
                break
            place = places[-1]
        return found[:size], len(found) > size

    async def close(self) -> None:
        """Unregister this process, so that other processes detect its end at once."""
        if self._own:
            await self._processes.leave()

    async def _read(self, task_id: str) -> tuple[Task, bytes] | None:
        """Return a task and its stored bytes, and mark the task as failed if its process has died."""
        while True:
            data = await self._store.get(_space(task_id), _TASK)
            if data is None:
                return None
            task = Task(**from_json(data))
            if self._is_expired(_until(task)):
                return None
            if task.terminal or await self._processes.alive(task.runner):
                return task, data
            failed = task.failed(LOST)
            assert failed is not None, "only a task that has not ended is failed"
            after = replace(failed, updated=self.clock(), version=task.version + 1)
            if await self._replace(after, data):
                return after, _encoded(after)

    async def _replace(self, after: Task, before: bytes) -> bool:
        changes = [(_TASK, _encoded(after))]
        return await self._store.write(
            _space(after.id), changes, seconds=self._seconds(after), expected=ExpectedEntry(_TASK, before)
        )

    def _seconds(self, task: Task) -> float:
        return _NO_EXPIRY if task.expires is None else max(task.expires - self.clock(), 0.001)

    def _is_expired(self, until: bytes) -> bool:
        return bool(until) and float(until) <= self.clock()


class MemoryTaskStore(TaskStore):
    """Storage of tasks in the memory of the process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(MemoryStore(), clock=clock)


def _encoded(task: Task) -> bytes:
    return to_json(asdict(task))


def _until(task: Task) -> bytes:
    return b"" if task.expires is None else repr(task.expires).encode()


def _space(task_id: str) -> str:
    return f"task/{task_id}"


def _list_space(owner: str) -> str:
    return f"tasks/{hashlib.sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()}"


class SqliteTaskStore(TaskStore):
    """Storage of tasks in an SQLite database.

    A missing file or directory is created, with access for this user only.
    """

    def __init__(self, path: str | PathLike[str], clock: Callable[[], float] = time.time) -> None:
        super().__init__(create_store(f"sqlite:///{os.fspath(path)}"), clock=clock)

    async def close(self) -> None:
        """Unregister this process and close the database."""
        await super().close()
        await self._store.aclose()
