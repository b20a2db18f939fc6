"""Where tasks are kept: the interface, and the store in memory."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.server.tasks.record import Change, Task

__all__ = ["LOST", "MemoryTaskStore", "TaskStore", "TaskStoreError"]

LOST: Final = {
    "code": INTERNAL_ERROR,
    "message": "The server process ended before the task did. hint: call the tool again",
}
"""The error of a task whose process ended before it."""


class TaskStoreError(Exception):
    """The store cannot be used; the message says which, and what to do."""


class TaskStore(ABC):
    """Keeps tasks. All methods are called on the event loop and must not block it.

    A task that has outlived its `ttl` by the store's clock does not exist: no method returns it.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock

    @abstractmethod
    async def create(self, task: Task) -> Task:
        """Keep a new task; when this returns, `get` finds it, whatever happens. Returns it with its `runner`."""

    @abstractmethod
    async def get(self, task_id: str) -> Task | None:
        """Return the task, or None."""

    @abstractmethod
    async def update(self, task_id: str, change: Change) -> Task | None:
        """Change a task as one step that nobody else comes between.

        `change` must be a pure function; it may run in another thread. The store sets `updated` and `version`.

        Returns:
            The task afterwards; None when there is no such task, or `change` left it as it is.
        """

    @abstractmethod
    async def list(self, owner: str, after: str | None, size: int) -> tuple[list[Task], bool]:
        """Return the tasks of a principal in the order of creation: at most `size` after the task `after`.

        Returns:
            The tasks, and whether there are more.

        Raises:
            KeyError: the principal has no task `after`.
        """

    @abstractmethod
    async def expire(self) -> int:
        """Delete what has outlived its time; how many."""

    async def close(self) -> None:  # noqa: B027 - a store in memory has nothing to release
        """Release files and the like. The store may be used again afterwards."""


class MemoryTaskStore(TaskStore):
    """Keeps tasks as long as the process lives."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._tasks: dict[str, Task] = {}

    async def create(self, task: Task) -> Task:
        """Keep a new task."""
        self._tasks[task.id] = task
        return task

    async def get(self, task_id: str) -> Task | None:
        """Return the task, or None."""
        task = self._tasks.get(task_id)
        if task is not None and self._expired(task):
            del self._tasks[task_id]
            return None
        return task

    async def update(self, task_id: str, change: Change) -> Task | None:
        """Change a task."""
        task = await self.get(task_id)
        changed = change(task) if task is not None else None
        if task is None or changed is None:
            return None
        after = replace(changed, updated=self.clock(), version=task.version + 1)
        self._tasks[task_id] = after
        return after

    async def list(self, owner: str, after: str | None, size: int) -> tuple[list[Task], bool]:
        """Return a page of a principal's tasks."""
        await self.expire()
        own = [task for task in self._tasks.values() if task.owner == owner]
        start = 0 if after is None else [task.id for task in own].index(after) + 1 if self._has(after, owner) else None
        if start is None:
            raise KeyError(after)
        return own[start : start + size], len(own) > start + size

    async def expire(self) -> int:
        """Delete what has outlived its time."""
        old = [task.id for task in self._tasks.values() if self._expired(task)]
        for task_id in old:
            del self._tasks[task_id]
        return len(old)

    def _has(self, task_id: str, owner: str) -> bool:
        task = self._tasks.get(task_id)
        return task is not None and task.owner == owner

    def _expired(self, task: Task) -> bool:
        return task.expires is not None and task.expires <= self.clock()
