"""SQLite storage of cached responses (for conditional requests), the watch list, snapshots, and changes."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import zlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Answer", "Store", "Watch"]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    url TEXT PRIMARY KEY, status INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL, cut INTEGER NOT NULL, fetched REAL NOT NULL);
CREATE TABLE IF NOT EXISTS watches (
    url TEXT PRIMARY KEY, competitor TEXT NOT NULL, kind TEXT NOT NULL, added TEXT NOT NULL, checked TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS snapshots (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL, taken TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS snapshots_url ON snapshots (url, id);
CREATE TABLE IF NOT EXISTS changes (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL, competitor TEXT NOT NULL, seen TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS changes_seen ON changes (seen);
"""
_MOST_ANSWERS: Final = 500  # cached responses
_MOST_SNAPSHOTS: Final = 50  # per page


@dataclass(frozen=True, slots=True)
class Answer:
    """A response for a URL."""

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False
    fetched: float = 0.0


@dataclass(frozen=True, slots=True)
class Watch:
    """A page on the watch list. `checked` is the time of the last check, `problem` its error; both may be ""."""

    url: str
    competitor: str
    kind: str
    added: str
    checked: str = ""
    problem: str = ""


class Store:
    """The database, opened on first use. If its file is not writable, data is kept in memory.

    Args:
        path: path of the file; parent folders are created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self.lasting = True

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # --- responses ---

    def answer(self, url: str) -> Answer | None:
        """Return the cached response for a URL."""
        rows = self._rows("SELECT status, headers, body, cut, fetched FROM answers WHERE url = ?", url)
        if not rows:
            return None
        status, headers, body, cut, fetched = rows[0]
        return Answer(url, status, json.loads(headers), zlib.decompress(body), bool(cut), fetched)

    def keep_answer(self, answer: Answer) -> None:
        """Cache a response, and delete the oldest ones above the limit."""
        packed = zlib.compress(answer.body, 1)
        row = (answer.url, answer.status, json.dumps(dict(answer.headers)), packed, int(answer.cut), answer.fetched)
        self._change("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", *row)
        self._change(
            "DELETE FROM answers WHERE url NOT IN (SELECT url FROM answers ORDER BY fetched DESC LIMIT ?)",
            _MOST_ANSWERS,
        )

    # --- the watch list ---

    def watch(self, watch: Watch) -> None:
        """Add a page to the watch list, or update its competitor and kind."""
        self._change(
            "INSERT INTO watches (url, competitor, kind, added) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (url) DO UPDATE SET competitor = excluded.competitor, kind = excluded.kind",
            watch.url, watch.competitor, watch.kind, watch.added,
        )  # fmt: skip

    def watches(self, competitor: str = "") -> list[Watch]:
        """Return the watched pages of all or one competitor, by competitor and URL."""
        query = "SELECT url, competitor, kind, added, checked, problem FROM watches"
        where = " WHERE lower(competitor) = lower(?)" if competitor else ""
        rows = self._rows(f"{query}{where} ORDER BY lower(competitor), url", *([competitor] if competitor else []))
        return [Watch(*row) for row in rows]

    def mark_checked(self, url: str, when: str, problem: str = "") -> None:
        """Record the time and the problem of a check."""
        self._change("UPDATE watches SET checked = ?, problem = ? WHERE url = ?", when, problem, url)

    def unwatch(self, url: str, *, forget: bool) -> None:
        """Remove a page from the watch list; with `forget`, also its snapshots and changes."""
        for table in ("watches", *(("snapshots", "changes") if forget else ())):
            self._change(f"DELETE FROM {table} WHERE url = ?", url)

    # --- snapshots and changes ---

    def last_snapshot(self, url: str) -> tuple[str, dict[str, Any]] | None:
        """Return time and content of the newest snapshot of a page."""
        rows = self._rows("SELECT taken, content FROM snapshots WHERE url = ? ORDER BY id DESC LIMIT 1", url)
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def count_snapshots(self, url: str) -> int:
        """Return the number of snapshots of a page."""
        rows = self._rows("SELECT count(*) FROM snapshots WHERE url = ?", url)
        return int(rows[0][0]) if rows else 0

    def keep_snapshot(self, url: str, taken: str, content: Mapping[str, Any]) -> None:
        """Store a snapshot, and delete the page's oldest ones above the limit."""
        text = json.dumps(content, ensure_ascii=False)
        self._change("INSERT INTO snapshots (url, taken, content) VALUES (?, ?, ?)", url, taken, text)
        self._change(
            "DELETE FROM snapshots WHERE url = ? AND id NOT IN (SELECT id FROM snapshots WHERE url = ? ORDER BY id DESC LIMIT ?)",
            url, url, _MOST_SNAPSHOTS,
        )  # fmt: skip

    def keep_change(self, url: str, competitor: str, seen: str, content: Mapping[str, Any]) -> None:
        """Store the changes of a page."""
        text = json.dumps(content, ensure_ascii=False)
        self._change(
            "INSERT INTO changes (url, competitor, seen, content) VALUES (?, ?, ?, ?)", url, competitor, seen, text
        )

    def changes(
        self, since: str = "", competitor: str = "", limit: int = 100
    ) -> list[tuple[str, str, str, dict[str, Any]]]:
        """Return (url, competitor, seen, content) of changes since a time, the newest first."""
        rows = self._rows(
            "SELECT url, competitor, seen, content FROM changes WHERE seen >= ? AND (? = '' OR lower(competitor) = lower(?)) "
            "ORDER BY id DESC LIMIT ?",
            since, competitor, competitor, limit,
        )  # fmt: skip
        return [(url, whose, seen, json.loads(content)) for url, whose, seen, content in rows]

    # --- the file ---

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            if self._database is None and not self._path.exists():
                return []  # reads do not create the file
            with closing(self._open().execute(query, values)) as cursor:
                return cursor.fetchall()

    def _change(self, query: str, *values: Any) -> None:
        with self._lock:
            database = self._open()
            with database:
                database.execute(query, values)

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = self._opened()
        return self._database

    def _opened(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return _connected(str(self._path))
        except (OSError, sqlite3.OperationalError) as error:
            self.lasting = False
            print(f"{self._path} cannot be used ({error}); data is lost when this process ends", file=sys.stderr)
            return _connected(":memory:")


def _connected(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5, check_same_thread=False)
    try:
        database.executescript(_SCHEMA)
        with database:  # only a write shows if the file is writable
            database.execute("DELETE FROM answers WHERE url = ''")
    except BaseException:
        database.close()
        raise
    return database
