"""Tasks: the record, its transitions, and their storage.

The transitions are those of both specifications (basic/utilities/tasks, Task Status Lifecycle; ext-tasks, Task Status):
working ⇄ input_required, either → completed, failed or cancelled, and nothing leaves those three.
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
    """One tool call that is carried out in the background.

    Attributes:
        id: unguessable; the task's only identifier in messages.
        owner: the principal that created it; others cannot see it. "" without authorization.
        tool: the tool's name.
        created: seconds since the epoch, by the store's clock; likewise `updated`.
        ttl: milliseconds after `created` at which the task is deleted; None never.
        status: the task's status. Failures of the tool itself are `completed` with `isError` in the result.
        message: a human-readable text about the status.
        requests: unanswered questions to the client: key → request object.
        answers: answers that the handler may still want: key → `{"result": …}` or `{"error": …}`.
        result: the tool's result in the newest form, when completed.
        error: the JSON-RPC error, when failed.
        runner: the store's name of the process that works on it.
        version: incremented with every change.
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
        """Return the expiry in seconds since the epoch; None never."""
        return None if self.ttl is None else self.created + self.ttl / 1000

    # -- transitions: the task afterwards, or None where it has ended already ---------------------------------------

    def asked(self, requests: Json) -> Task | None:
        """Wait for the client's answers to these requests as well."""
        if self.terminal:
            return None
        return replace(self, status="input_required", requests={**self.requests, **requests})

    def answered(self, answers: Json) -> Task | None:
        """Take answers; those to unknown questions are ignored (ext-tasks, Task Update Requests)."""
        wanted = {key: answer for key, answer in answers.items() if key in self.requests}
        if self.terminal or not wanted:
            return None
        left = {key: request for key, request in self.requests.items() if key not in wanted}
        status: Status = "input_required" if left else "working"
        return replace(self, status=status, requests=left, answers={**self.answers, **wanted})

    def with_message(self, message: str) -> Task | None:
        """Say how the work goes."""
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
        # What was asked and answered is of no use any more, and answers may be confidential.
        return None if self.terminal else replace(self, status=status, requests={}, answers={}, **changes)


Change = Callable[[Task], Task | None]
"""A transition with its arguments: the task before → the task afterwards, or None to keep it unchanged."""


LOST: Final = {
    "code": INTERNAL_ERROR,
    "message": "The server process ended before the task did. hint: call the tool again",
}
"""The error of a task whose process ended before it."""


_EVER: Final = 10 * 365 * 86_400.0  # seconds that a task without ttl is kept
_LISTED: Final = 30 * 86_400.0  # seconds that a principal's list outlives its latest task, at least
_LOOKED_AT: Final = 8  # list entries that each new task checks, to remove expired ones
_TASK: Final = "task"
_PLACE: Final = "place"


class TaskStore:
    """Task storage. A task whose process has died (its lease has expired) fails the next time it is read.

    A task past its `ttl` does not exist: no method returns it. Methods are called on the event loop, and raise
    StoreError if the store cannot be used.

    Args:
        store: the storage; other databases are other kinds of `SharedStore`.
        processes: the live processes; its creator closes it. None: the task store makes its own, and joins at the
            first task.
        clock: seconds since the epoch.
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
        self._writing = asyncio.Lock()  # changes of this process come one after the other, and need not be tried again
        self._created = 0

    async def create(self, task: Task) -> Task:
        """Store a new task durably and return it with its `runner`; `get` finds it after this call."""
        own = replace(task, runner=self._processes.id)
        self._created += 1
        place = f"{own.created:020.6f}/{self._created:012}/{own.id}"
        seconds = self._seconds(own)
        await self._processes.join()
        listed = _list_of(own.owner)
        over = [(key, None) for key, until in await self._store.scan(listed, limit=_LOOKED_AT) if self._over(until)]
        # The list first: a task that is in it and does not exist yet is passed over.
        await self._store.write(listed, [*over, (place, _until(own))], seconds=max(seconds, _LISTED))
        entries = [(_TASK, _encoded(own)), (_PLACE, place.encode())]
        await self._store.write(_space(own.id), entries, seconds=seconds)
        return own

    async def get(self, task_id: str) -> Task | None:
        """Return the task, or None."""
        found = await self._read(task_id)
        return None if found is None else found[0]

    async def update(self, task_id: str, change: Change) -> Task | None:
        """Change a task atomically.

        `change` must be a pure function. The store sets `updated` and `version`.

        Returns:
            The task afterwards; None if the task does not exist or `change` kept it unchanged.
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
        """Return the tasks of a principal in the order of creation: at most `size` after the task `after`, and whether there are more.

        Raises:
            KeyError: the principal has no task `after`.
        """
        place = ""
        if after is not None:
            before = await self.get(after)
            if before is None or before.owner != owner:
                raise KeyError(after)
            place = (await self._store.get(_space(after), _PLACE) or b"").decode()
        found: list[Task] = []
        while len(found) <= size:
            places = [key for key, _ in await self._store.scan(_list_of(owner), after=place, limit=size + 1)]
            tasks = [await self.get(key.rpartition("/")[2]) for key in places]
            found += [task for task in tasks if task is not None]
            if len(places) <= size:
                break
            place = places[-1]
        return found[:size], len(found) > size

    async def close(self) -> None:
        """Let the others know at once that this process ends."""
        if self._own:
            await self._processes.leave()

    async def _read(self, task_id: str) -> tuple[Task, bytes] | None:
        """Return a task and its form in the store; failed, if it cannot end any more because its process did."""
        while True:
            data = await self._store.get(_space(task_id), _TASK)
            if data is None:
                return None
            task = Task(**from_json(data))
            if self._over(_until(task)):
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
        return _EVER if task.expires is None else max(task.expires - self.clock(), 0.001)

    def _over(self, until: bytes) -> bool:
        return bool(until) and float(until) <= self.clock()


class MemoryTaskStore(TaskStore):
    """Keeps tasks as long as the process lives."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(MemoryStore(), clock=clock)


def _encoded(task: Task) -> bytes:
    return to_json(asdict(task))


def _until(task: Task) -> bytes:
    return b"" if task.expires is None else repr(task.expires).encode()


def _space(task_id: str) -> str:
    return f"task/{task_id}"


def _list_of(owner: str) -> str:
    return f"tasks/{hashlib.sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()}"


class SqliteTaskStore(TaskStore):
    """Keeps tasks in an SQLite database.

    Args:
        path: the database; it and its folder are created when they are missing, readable by this user only.
        clock: seconds since the epoch.
    """

    def __init__(self, path: str | PathLike[str], clock: Callable[[], float] = time.time) -> None:
        super().__init__(create_store(f"sqlite:///{os.fspath(path)}"), clock=clock)

    async def close(self) -> None:
        """Let the others know that this process ends, and close the database; the next call opens it again."""
        await super().close()
        await self._store.aclose()
