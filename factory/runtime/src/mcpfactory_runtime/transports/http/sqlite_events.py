"""Sessions and events in a SQLite file. Several processes may share it; all access is in one thread of each."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

from mcpfactory_runtime.transports.http.event_store import Unfinished
from mcpfactory_runtime.transports.http.stream import KEPT

__all__ = ["SqliteEventStore"]

Json = dict[str, Any]
Value = TypeVar("Value")
Statement = tuple[str, tuple[Any, ...]]

log = logging.getLogger("mcpfactory_runtime")

_STREAMS_KEPT: Final = 64  # finished ones of a session
_PENDING_AT_MOST: Final = 32 << 20  # bytes of events that wait to be written; more are not recorded
_PATIENCE: Final = 10.0  # seconds to wait for other processes
_TIDY_EVERY: Final = 60.0  # seconds

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sessions (key TEXT PRIMARY KEY, state TEXT NOT NULL, used REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    key TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, stream TEXT NOT NULL, requests TEXT NOT NULL,
    finished REAL, PRIMARY KEY (key, stream)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    key TEXT NOT NULL, stream TEXT NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (key, stream, number),
    FOREIGN KEY (key, stream) REFERENCES streams ON DELETE CASCADE) WITHOUT ROWID;
"""


class SqliteEventStore:
    """An `EventStore` in a file.

    The file holds what servers sent their clients: it is created readable by its owner only.

    Args:
        path: the file; created when missing, its folder is not.
        keep: seconds that a session is kept after its last use.

    Raises:
        ValueError: there is no such folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: float = 24 * 3600.0) -> None:
        self._path = Path(path).resolve()
        if not self._path.parent.is_dir():
            raise ValueError(f"there is no folder {self._path.parent} for the event store\nhint: create it")
        self._keep = keep
        self._pending: list[Statement] = []
        self._pending_size = 0
        self._writing = False
        self._tidied = 0.0
        self._thread: ThreadPoolExecutor | None = None
        self._database: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be opened, or is no event store.
        """
        self._thread = ThreadPoolExecutor(1, "event-store")
        try:
            await self._run(self._connect)
        except sqlite3.Error as error:
            raise OSError(f"event store {self._path}: {error}\nhint: name another file, or remove this one") from None

    async def aclose(self) -> None:
        """Write what is pending and close the file."""
        if self._thread is not None and self._database is not None:
            await self._flushed(self._disconnect)
            self._thread.shutdown()
            self._thread = self._database = None

    # -- writing -------------------------------------------------------------------------------------------------

    def save(self, key: str, state: Json) -> None:
        """Remember a session."""
        text = json.dumps(state, separators=(",", ":"))
        self._write(
            "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, used = excluded.used",
            (key, text, time.time()),
        )

    def touch(self, key: str) -> None:
        """Note that the session is in use."""
        self._write("UPDATE sessions SET used = ? WHERE key = ?", (time.time(), key))

    def forget(self, key: str) -> None:
        """Drop a session."""
        self._write("DELETE FROM sessions WHERE key = ?", (key,))

    def begin(self, key: str, stream: str, requests: Sequence[str | int]) -> None:
        """Begin a stream."""
        self._write(
            "INSERT INTO streams SELECT key, ?, ?, NULL FROM sessions WHERE key = ? ON CONFLICT DO NOTHING",
            (stream, json.dumps(list(requests)), key),
        )

    def append(self, key: str, stream: str, number: int, data: bytes) -> None:
        """Record an event; the oldest of a long stream are dropped."""
        if self._pending_size > _PENDING_AT_MOST:
            log.warning("event store %s is too slow: events are not recorded", self._path)
            return
        self._write(
            "INSERT OR REPLACE INTO events SELECT key, stream, ?, ? FROM streams WHERE key = ? AND stream = ?",
            (number, data, key, stream),
        )
        if number > KEPT:
            self._write("DELETE FROM events WHERE key = ? AND stream = ? AND number <= ?", (key, stream, number - KEPT))

    def finish(self, key: str, stream: str) -> None:
        """Finish a stream; the oldest of many are dropped."""
        self._write("UPDATE streams SET finished = ? WHERE key = ? AND stream = ?", (time.time(), key, stream))
        self._write(
            "DELETE FROM streams WHERE key = ?1 AND stream IN (SELECT stream FROM streams WHERE key = ?1"
            " AND finished IS NOT NULL ORDER BY finished DESC LIMIT -1 OFFSET ?2)",
            (key, _STREAMS_KEPT),
        )

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        self._pending.append((sql, values))
        self._pending_size += sum(len(value) for value in values if isinstance(value, bytes))
        if not self._writing:
            self._writing = True
            asyncio.get_running_loop().call_soon(self._submit)

    def _submit(self) -> None:
        """Hand what is pending to the thread, as one transaction."""
        if self._thread is None or not self._pending:
            self._writing = False
            return
        batch, self._pending, self._pending_size = self._pending, [], 0
        written = asyncio.get_running_loop().run_in_executor(self._thread, self._execute, batch)
        written.add_done_callback(lambda _: self._submit())

    async def written(self) -> None:
        """Wait until everything so far is in the file."""
        if self._thread is not None:
            await self._flushed(_nothing)

    # -- reading -------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> tuple[Json, list[Unfinished]] | None:
        """Return a session and its unfinished streams."""

        def read() -> tuple[Json, list[Unfinished]] | None:
            found = self._query("SELECT state FROM sessions WHERE key = ?", (key,))
            if not found:
                return None
            unfinished = self._query(
                "SELECT stream, requests, (SELECT coalesce(max(number), 0) FROM events"
                " WHERE events.key = streams.key AND events.stream = streams.stream)"
                " FROM streams WHERE key = ? AND finished IS NULL ORDER BY stream",
                (key,),
            )
            streams = [Unfinished(stream, json.loads(requests), last) for stream, requests, last in unfinished]
            return json.loads(found[0][0]), streams

        return await self._flushed(read)

    async def events(self, key: str, stream: str) -> list[tuple[int, bytes]] | None:
        """Return what is kept of a stream."""

        def read() -> list[tuple[int, bytes]] | None:
            if not self._query("SELECT 1 FROM streams WHERE key = ? AND stream = ?", (key, stream)):
                return None
            return self._query(
                "SELECT number, data FROM events WHERE key = ? AND stream = ? ORDER BY number", (key, stream)
            )

        return await self._flushed(read)

    # -- the thread ----------------------------------------------------------------------------------------------

    async def _flushed(self, work: Callable[[], Value]) -> Value:
        """Run `work` in the thread, after everything that was written before."""
        self._submit()
        return await self._run(work)

    async def _run(self, work: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _connect(self) -> None:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        # Statements begin and end their transactions themselves; other processes may hold the file for a moment.
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                    database.execute(f"PRAGMA {pragma}")
                database.executescript(_SCHEMA)
            except sqlite3.Error as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # also its kinds: another process recovers
                if busy and time.monotonic() < deadline:
                    time.sleep(0.02)  # SQLite does not wait by itself while another process changes the journal's mode
                    continue
                database.close()
                raise
            self._database = database
            return

    def _disconnect(self) -> None:
        assert self._database is not None
        self._database.close()

    def _execute(self, batch: list[Statement]) -> None:
        database = self._database
        assert database is not None
        now = time.time()
        if now - self._tidied > _TIDY_EVERY:
            self._tidied = now
            batch = [("DELETE FROM sessions WHERE used < ?", (now - self._keep,)), *batch]
        try:
            database.execute("BEGIN IMMEDIATE")
            for sql, values in batch:
                database.execute(sql, values)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            log.error("event store %s: %s; %d entries are lost", self._path, error, len(batch))
            if database.in_transaction:
                database.execute("ROLLBACK")

    def _query(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        assert self._database is not None
        with closing(self._database.execute(sql, values)) as rows:
            return rows.fetchall()


def _nothing() -> None:
    """Do nothing: the work of somebody who only waits for others."""
