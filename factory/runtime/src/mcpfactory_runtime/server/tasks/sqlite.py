"""The task store in a file: tasks survive the process, and several processes of one machine may share it."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike

from mcpfactory_runtime.server.tasks.store import TaskStore
from mcpfactory_runtime.store.sqlite import SqliteStore


class SqliteTaskStore(TaskStore):
    """Keeps tasks in an SQLite database.

    Args:
        path: the database; it and its folder are created when they are missing, readable by this user only.
        clock: seconds since the epoch.
    """

    def __init__(self, path: str | PathLike[str], clock: Callable[[], float] = time.time) -> None:
        super().__init__(SqliteStore(path), clock=clock)

    async def close(self) -> None:
        """Let the others know that this process ends, and close the database; the next call opens it again."""
        await super().close()
        await self._store.aclose()
