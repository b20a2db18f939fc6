"""Storage of sessions and their events beyond a process, so that clients can resume where it ended.

Without a store a stream's latest messages are in the memory of the process (`http_stream`). With one, the next
process also knows a session over HTTP: its negotiated settings, the events sent with IDs, and the requests that were
never answered because the process ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mcpfactory_runtime.types import Json


class SessionLostError(Exception):
    """Another process has taken the session over: nothing of it is sent from here."""


class Unfinished(NamedTuple):
    """A stream that was not ended: its name, the requests that it was to answer, the number of its last event."""

    stream: str
    requests: list[str | int]
    last: int


class _Events(Protocol):
    """Interface of `SharedEventStore` that a journal needs; see there for the docstrings."""

    def save(self, key: str, state: Json) -> None: ...
    def touch(self, key: str) -> None: ...
    def forget(self, key: str) -> None: ...
    def begin(self, key: str, stream: str, requests: Sequence[str | int]) -> None: ...
    def append(self, key: str, stream: str, number: int, data: bytes) -> None: ...
    def finish(self, key: str, stream: str) -> None: ...
    async def written(self) -> None: ...
    async def load(self, key: str) -> tuple[Json, list[Unfinished]] | None: ...
    async def events(self, key: str, stream: str) -> list[tuple[int, bytes]] | None: ...


def session_key(session_id: str) -> str:
    """Return the name of a session in a store."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """One session's part of a store; the recorder of its streams."""

    def __init__(self, store: _Events, session_id: str) -> None:
        self._store = store
        self._key = session_key(session_id)
        self._saved: Json = {}
        self._touched = 0.0
        self._closed = False
        self._lost = False

    def lose(self) -> None:
        """Record nothing more, and let nothing be sent: the session is another process's."""
        self._closed = self._lost = True

    def close(self) -> None:
        """Record nothing more: the process ends, the session does not."""
        self._closed = True

    def forget(self) -> None:
        """Drop the session, which ends."""
        if not self._closed:
            self.close()
            self._store.forget(self._key)

    def save(self, state: Json) -> None:
        """Remember the session's state, if it changed."""
        if state != self._saved and not self._closed:
            self._saved = state
            self._store.save(self._key, state)

    def touch(self, now: float) -> None:
        """Note that the session is in use; passed to the store once a minute."""
        if now - self._touched > 60:
            self._touched = now
            self._store.touch(self._key)

    def begin(self, stream: str, requests: Sequence[str | int]) -> None:
        """Begin to record a stream whose events are about to be sent."""
        if not self._closed:
            self._store.begin(self._key, stream, requests)

    def append(self, stream: str, number: int, data: bytes) -> None:
        """Record an event of a stream."""
        if not self._closed:
            self._store.append(self._key, stream, number, data)

    def finish(self, stream: str) -> None:
        """Finish a stream."""
        if not self._closed:
            self._store.finish(self._key, stream)

    async def written(self) -> None:
        """Wait until everything so far outlives the process.

        Raises:
            SessionLostError: it does not: another process has the session.
        """
        await self._store.written()
        if self._lost:
            raise SessionLostError

    async def load(self) -> tuple[Json, list[Unfinished]] | None:
        """Return the stored session."""
        return await self._store.load(self._key)

    async def events(self, stream: str) -> list[tuple[int, bytes]] | None:
        """Return the stored events of a stream."""
        return await self._store.events(self._key, stream)
