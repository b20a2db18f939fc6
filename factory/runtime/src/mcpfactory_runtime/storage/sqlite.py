"""Store in an SQLite file, for processes on one machine, with its own thread for SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

from mcpfactory_runtime.storage.base import Changes, ExpectedEntry, SharedStore, StoreError

Value = TypeVar("Value")

_POLL_INTERVAL: Final = 0.02  # seconds between two polls of an empty mailbox, because SQLite has no notifications
_SWEEP_EVERY: Final = 60.0  # seconds between two removals of expired data
_BUSY_TIMEOUT: Final = 10.0  # maximum seconds to wait for a lock of another process
_AFTER_ALL: Final = "\U0010ffff"  # no character in a key sorts after this character
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS spaces (space TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    space TEXT NOT NULL REFERENCES spaces ON DELETE CASCADE, key TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (space, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, mailbox TEXT NOT NULL, until REAL NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS messages_by_mailbox ON messages (mailbox, number);
"""


class SqliteStore(SharedStore):
    """Store in an SQLite database.

    A missing file or directory is created, with access for this user only.
    """

    def __init__(self, path: str | PathLike[str], clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._database: sqlite3.Connection | None = None
        self._swept = 0.0

    async def open(self) -> None:
        """Open the file."""
        await self._do(lambda _: None)

    async def aclose(self) -> None:
        """Close the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._close)
            thread.shutdown(wait=False)

    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""
        return await self._do(lambda database: self._get(database, space, key))

    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys."""
        return await self._do(
            lambda database: database.execute(
                "SELECT key, value FROM entries JOIN spaces USING (space) WHERE space = ? AND until > ?"
                " AND key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
                (space, self._clock(), prefix, prefix + _AFTER_ALL, after, limit or -1),
            ).fetchall()
        )

    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space in one transaction."""

        def work(database: sqlite3.Connection) -> bool:
            if expected is not None and self._get(database, space, expected.key) != expected.value:
                return False
            now = self._clock()
            database.execute("DELETE FROM spaces WHERE space = ? AND until <= ?", (space, now))
            database.execute(
                "INSERT INTO spaces VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until",
                (space, now + seconds),
            )
            for key, value in changes:
                if value is not None:
                    database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (space, key, value))
                else:
                    last = key[:-1] + _AFTER_ALL if key.endswith("*") else key
                    database.execute(
                        "DELETE FROM entries WHERE space = ? AND key >= ? AND key <= ?",
                        (space, key.removesuffix("*"), last),
                    )
            self._sweep(database, now)
            return True

        return await self._do(work)

    async def drop(self, space: str) -> None:
        """Delete a space."""
        await self._do(lambda database: database.execute("DELETE FROM spaces WHERE space = ?", (space,)))

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox."""

        def work(database: sqlite3.Connection) -> None:
            until = self._clock() + seconds
            database.execute(
                "UPDATE messages SET until = ? WHERE mailbox = ? AND until > ?", (until, mailbox, self._clock())
            )
            database.execute("INSERT INTO messages (mailbox, until, data) VALUES (?, ?, ?)", (mailbox, until, data))

        await self._do(work)

    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take the messages of a mailbox, with polling, because SQLite has no notifications."""
        deadline = time.monotonic() + wait
        while True:
            found = await self._do(lambda database: self._take(database, mailbox))
            if found or time.monotonic() >= deadline:
                return found
            await asyncio.sleep(_POLL_INTERVAL)

    # -- methods that run in the thread --------------------------------------------------------------------------

    def _get(self, database: sqlite3.Connection, space: str, key: str) -> bytes | None:
        row = database.execute(
            "SELECT value FROM entries JOIN spaces USING (space) WHERE space = ? AND key = ? AND until > ?",
            (space, key, self._clock()),
        ).fetchone()
        return None if row is None else row[0]

    def _take(self, database: sqlite3.Connection, mailbox: str) -> list[bytes]:
        rows = database.execute(
            "SELECT number, data, until FROM messages WHERE mailbox = ? ORDER BY number", (mailbox,)
        ).fetchall()
        if rows:
            database.execute("DELETE FROM messages WHERE mailbox = ?", (mailbox,))
        now = self._clock()
        return [data for _, data, until in rows if until > now]

    def _sweep(self, database: sqlite3.Connection, now: float) -> None:
        if abs(now - self._swept) > _SWEEP_EVERY:
            self._swept = now
            database.execute("DELETE FROM spaces WHERE until <= ?", (now,))
            database.execute("DELETE FROM messages WHERE until <= ?", (now,))

    async def _do(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "store")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, work)

    def _transaction(self, work: Callable[[sqlite3.Connection], Value]) -> Value:
        try:
            database = self._database
            if database is None:
                database = self._database = self._connect()
            database.execute("BEGIN IMMEDIATE")
            try:
                value = work(database)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"store {self._path}: {error}\nhint: use another file, or move the file away") from error
        return value

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The content may be confidential, so only the owner may read the file.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_TIMEOUT)
        try:
            _prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()


def _prepare(database: sqlite3.Connection) -> None:
    deadline = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                database.execute(f"PRAGMA {pragma}")
            database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() >= deadline:
                raise
            time.sleep(0.02)  # SQLite does not wait if another process changes the journal mode
        else:
            return
