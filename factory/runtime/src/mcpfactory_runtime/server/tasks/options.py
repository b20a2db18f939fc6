"""How a server keeps tasks: `Server(tasks=…)` and MCPFACTORY_TASKS_DB."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from os import PathLike
from typing import Final

from mcpfactory_runtime.server.tasks.store import MemoryTaskStore, TaskStore

__all__ = ["ENVIRONMENT", "TaskOptions", "read_options"]

ENVIRONMENT: Final = "MCPFACTORY_TASKS_DB"


@dataclass(slots=True)
class TaskOptions:
    """How tasks are kept.

    Attributes:
        store: where; in memory by default.
        ttl: milliseconds that a task is kept when the client asks for nothing else, from its creation.
        max_ttl: the most that a client is granted.
        poll_interval: milliseconds after which clients are told to ask again.
        limit: how many tasks of one principal may run at once; further ones are refused.
        watch: seconds between looks into the store for what others did: expiry, and other processes that share it.
    """

    store: TaskStore = field(default_factory=MemoryTaskStore)
    ttl: int = 3_600_000
    max_ttl: int = 86_400_000
    poll_interval: int = 1_000
    limit: int = 100
    watch: float = 0.5


def read_options(given: TaskOptions | TaskStore | str | PathLike[str] | None) -> TaskOptions:
    """Return the options: those given, a store, the path of a database; without any, what the environment says."""
    if isinstance(given, TaskOptions):
        return given
    if isinstance(given, TaskStore):
        return TaskOptions(given)
    path = given or os.environ.get(ENVIRONMENT)
    if not path:
        return TaskOptions()
    from mcpfactory_runtime.server.tasks.sqlite import SqliteTaskStore  # noqa: PLC0415 - sqlite3 is loaded by those who want a file only

    return TaskOptions(SqliteTaskStore(path))
