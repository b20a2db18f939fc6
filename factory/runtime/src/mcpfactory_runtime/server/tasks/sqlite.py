"""The task store in a file: tasks survive the process, and several processes may share one.

All of SQLite runs in one thread of the store's own. Each process that makes tasks holds a lock on a file beside the
database (`<database>.<runner>.lock`) for as long as it lives; the system releases it however the process ends. A task that
is not finished and whose runner's lock is free has lost its process, and is failed when it is next looked at.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

from pydantic_core import from_json, to_json

from mcpfactory_runtime.server.tasks.record import Change, Task
from mcpfactory_runtime.server.tasks.store import LOST, TaskStore, TaskStoreError

try:
    import fcntl
except ImportError:  # Windows: no way to see whether another process lives; see `_alive`
    fcntl = None  # type: ignore[assignment]  # the other branch is the module

__all__ = ["SqliteTaskStore"]

Value = TypeVar("Value")

_FORMAT: Final = 1  # PRAGMA user_version
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    expires REAL,
    data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS tasks_by_owner ON tasks (owner, number);
CREATE INDEX IF NOT EXISTS tasks_by_expiry ON tasks (expires);
"""
_LIVING: Final = "(expires IS NULL OR expires > ?)"


class SqliteTaskStore(TaskStore):
    """Keeps tasks in an SQLite database.

    Args:
        path: the database; it and its folder are created when they are missing, readable by this user only.
        clock: seconds since the epoch.

    Raises:
        TaskStoreError: the file cannot be used; every method raises it.
    """

    def __init__(self, path: str | PathLike[str], clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self.path = Path(path)
        self._runner = ""
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._lock: int | None = None

    # -- the interface -------------------------------------------------------------------------------------------

    async def create(self, task: Task) -> Task:
        """Keep a new task; it is on the disk when this returns."""

        def work(database: sqlite3.Connection) -> Task:
            own = replace(task, runner=self._runner)
            database.execute(
                "INSERT INTO tasks (id, owner, expires, data) VALUES (?, ?, ?, ?)",
                (own.id, own.owner, own.expires, to_json(asdict(own))),
            )
            return own

        return await self._do(work)

    async def get(self, task_id: str) -> Task | None:
        """Return the task, or None."""
        return await self._do(lambda database: self._read(database, task_id))

    async def update(self, task_id: str, change: Change) -> Task | None:
        """Change a task, in one transaction."""

        def work(database: sqlite3.Connection) -> Task | None:
            task = self._read(database, task_id)
            changed = change(task) if task is not None else None
            return None if task is None or changed is None else self._write(database, task, changed)

        return await self._do(work)

    async def list(self, owner: str, after: str | None, size: int) -> tuple[list[Task], bool]:
        """Return a page of a principal's tasks."""

        def work(database: sqlite3.Connection) -> tuple[list[Task], bool]:
            number = 0
            if after is not None:
                found = database.execute(
                    f"SELECT number FROM tasks WHERE id = ? AND owner = ? AND {_LIVING}",  # noqa: S608 - a constant
                    (after, owner, self.clock()),
                ).fetchone()
                if found is None:
                    raise KeyError(after)
                number = found[0]
            rows = database.execute(
                f"SELECT data FROM tasks WHERE owner = ? AND number > ? AND {_LIVING} ORDER BY number LIMIT ?",  # noqa: S608 - a constant
                (owner, number, self.clock(), size + 1),
            ).fetchall()
            return [self._settled(database, _task(row[0])) for row in rows[:size]], len(rows) > size

        return await self._do(work)

    async def expire(self) -> int:
        """Delete what has outlived its time."""

        def work(database: sqlite3.Connection) -> int:
            return database.execute("DELETE FROM tasks WHERE expires <= ?", (self.clock(),)).rowcount

        return await self._do(work)

    async def close(self) -> None:
        """Close the database and give up the lock; the next call opens it again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._close)
            thread.shutdown(wait=False)

    # -- in the thread -------------------------------------------------------------------------------------------

    async def _do(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "tasks")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, work)

    def _transaction(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        try:
            database = self._connection
            if database is None:
                database = self._connection = self._open()
            database.execute("BEGIN IMMEDIATE")
            try:
                value = work(database)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise TaskStoreError(
                f"{self.path}: {error}\nhint: tasks are kept there; if the file is damaged, move it away and start again"
            ) from error
        return value

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # results may be confidential
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")  # a task that was reported must survive a power cut
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _FORMAT):
                raise TaskStoreError(
                    f"{self.path}: made by another version (format {version}, this one knows {_FORMAT})\n"
                    "hint: use another file, or update mcpfactory-runtime"
                )
            database.executescript(_SCHEMA)
            database.execute(f"PRAGMA user_version = {_FORMAT}")
        except BaseException:
            database.close()
            raise
        self._runner = uuid4().hex
        self._hold_lock()
        return database

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            with suppress(OSError):
                self._lock_path(self._runner).unlink()
            os.close(self._lock)
            self._lock = None

    def _read(self, database: sqlite3.Connection, task_id: str) -> Task | None:
        row = database.execute(
            f"SELECT data FROM tasks WHERE id = ? AND {_LIVING}",  # noqa: S608 - a constant
            (task_id, self.clock()),
        ).fetchone()
        return None if row is None else self._settled(database, _task(row[0]))

    def _write(self, database: sqlite3.Connection, before: Task, changed: Task) -> Task:
        after = replace(changed, updated=self.clock(), version=before.version + 1)
        database.execute(
            "UPDATE tasks SET expires = ?, data = ? WHERE id = ?", (after.expires, to_json(asdict(after)), after.id)
        )
        return after

    # -- whose process died --------------------------------------------------------------------------------------

    def _settled(self, database: sqlite3.Connection, task: Task) -> Task:
        """Return the task; failed, if it cannot end any more because its process did."""
        if task.terminal or task.runner == self._runner or self._alive(task.runner):
            return task
        failed = task.failed(LOST)
        assert failed is not None, "only a task that has not ended is failed"
        return self._write(database, task, failed)

    def _lock_path(self, runner: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{runner}.lock")

    def _hold_lock(self) -> None:
        if fcntl is not None:
            self._lock = os.open(self._lock_path(self._runner), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _alive(self, runner: str) -> bool:
        """Whether the process that works on a task lives. Without `fcntl` only one process may use the file."""
        path = self._lock_path(runner)
        if fcntl is None or not path.exists():
            return False
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            path.unlink(missing_ok=True)
            return False
        finally:
            os.close(descriptor)


def _task(data: bytes) -> Task:
    fields: dict[str, Any] = from_json(data)
    return Task(**fields)
