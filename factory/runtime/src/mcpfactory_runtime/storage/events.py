"""Sessions and their events in a shared store. At any time, one live process owns a session.

A write fails if the owner has changed. A slow process that was considered dead can therefore not change a session that
another process has taken over.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mcpfactory_runtime.storage.base import Changes, ExpectedEntry, ProcessRegistry, SharedStore
from mcpfactory_runtime.types import Json

log = logging.getLogger(__name__)

KEPT: Final = 256
"""Number of messages that a stream keeps for clients that reconnect."""

_STREAMS_KEPT: Final = 64  # maximum number of finished streams to keep per session
_MAX_PENDING: Final = 32 << 20  # maximum bytes of unwritten events; further events are not recorded
_RETRY_DELAY: Final = 0.25  # seconds between attempts to write
_TOUCH_EVERY: Final = 60.0  # minimum seconds between extensions of a session's lifetime
_OWNER: Final = "owner"
_STATE: Final = "state"


class SessionLostError(Exception):
    """Another process has taken over the session, so this process must not send the session's messages."""


class UnfinishedStream(NamedTuple):
    """A stream that has not ended, with the IDs of its requests and the number of its last event."""

    stream: str
    requests: list[str | int]
    last: int


class SharedSessions:
    """The sessions in a store, and the writer of their journals, for use in the event loop.

    A session is kept for `keep` seconds after its last use. While `closing` is True, failed writes are not retried.
    """

    def __init__(self, store: SharedStore, processes: ProcessRegistry, *, keep: float = 24 * 3600.0) -> None:
        self.store = store
        self.processes = processes
        self.keep = keep
        self.owned: dict[str, SessionJournal] = {}
        self.closing = False
        self._pending: dict[SessionJournal, None] = {}
        self._pending_size = 0
        self._next: asyncio.Future[None] | None = None  # done when the pending changes are written
        self._current: asyncio.Future[None] | None = None  # done when the current write ends
        self._writer: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Register this process, and check the sessions after each expiry of the lease."""
        self.closing = False
        await self.processes.join()
        self.processes.on_lapse = self.check_owned

    async def aclose(self) -> None:
        """Write the pending changes, unless the store does not accept them."""
        self.closing = True
        await self.wait_until_written()

    async def check_owned(self) -> None:
        """Detect sessions that other processes took over after this process's lease expired."""
        for journal in list(self.owned.values()):
            await journal.check_owner()

    def schedule(self, journal: SessionJournal, size: int) -> bool:
        """Schedule a write of a journal's changes, or return False if too many bytes of events are waiting."""
        if size and self._pending_size > _MAX_PENDING:
            log.warning("the store is too slow: events are not recorded")
            return False
        self._pending_size += size
        self._pending[journal] = None
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.create_future()
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_all())
        return True

    async def _write_all(self) -> None:
        while self._pending:
            batch, self._pending, self._pending_size = self._pending, {}, 0
            self._current, self._next = self._next, None
            try:
                await asyncio.gather(*(journal.write() for journal in batch))
            finally:
                if self._current is not None and not self._current.done():
                    self._current.set_result(None)
                self._current = None

    async def wait_until_written(self) -> None:
        """Wait until all changes so far are written."""
        waiting = self._next or self._current
        if waiting is not None:
            await asyncio.shield(waiting)


class SessionJournal:
    """One session in the store, and the recorder of its streams, for use in the event loop.

    The session's key is a digest of the session ID, so that readers of the store cannot use the session. Methods that
    record return at once. Methods that read first wait for pending writes. `on_lost` is called after another process
    has taken over the session.
    """

    def __init__(self, sessions: SharedSessions, session_id: str) -> None:
        self.on_lost: Callable[[], None] = lambda: None
        self._sessions = sessions
        self._store = sessions.store
        self._me = sessions.processes.id.encode()
        self._key = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        self._space = f"session/{self._key}"
        self._changes: list[tuple[str, bytes | None]] = []
        self._finished: deque[str] = deque()
        self._saved: Json = {}
        self._touched = 0.0
        self._closed = False
        self._ended = False
        self._lost = False

    # -- ownership -----------------------------------------------------------------------------------------------

    async def claim(self) -> str | None:
        """Take over the session if its owner is dead, or return the live process that owns the session."""
        while True:
            owner = await self._store.get(self._space, _OWNER)
            if owner is None or owner == self._me:
                return None
            if await self._sessions.processes.alive(owner.decode()):
                return owner.decode()
            if await self._write([(_OWNER, self._me)], ExpectedEntry(_OWNER, owner)):
                return None

    async def check_owner(self) -> None:
        """Stop recording if another process owns the session."""
        if await self._store.get(self._space, _OWNER) != self._me:
            self._lose()

    def _lose(self) -> None:
        self._sessions.owned.pop(self._key, None)
        self._closed = self._lost = True
        self.on_lost()

    # -- recording -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop recording, but leave the session in the store."""
        self._closed = True

    def forget(self) -> None:
        """Delete the session from the store."""
        if not self._closed:
            self._closed = self._ended = True
            self._sessions.schedule(self, 0)

    def save(self, state: Json) -> None:
        """Store the session's state if the state has changed."""
        if state != self._saved:
            self._saved = state
            self._change((_STATE, json.dumps(state, separators=(",", ":")).encode()))

    def touch(self, now: float) -> None:
        """Extend the lifetime of the session in the store, at most once a minute."""
        if now - self._touched > _TOUCH_EVERY:
            self._touched = now
            self._change()

    def begin(self, stream: str, requests: Sequence[str | int]) -> None:
        """Record a new stream, before its events are sent."""
        self._change((f"stream/{stream}", json.dumps({"requests": list(requests)}).encode()))

    def append(self, stream: str, number: int, data: bytes) -> None:
        """Record an event of a stream, and drop the oldest event of a long stream."""
        dropped = [(_event(stream, number - KEPT), None)] if number > KEPT else []
        self._change((_event(stream, number), data), *dropped, size=len(data))

    def finish(self, stream: str) -> None:
        """Record the end of a stream, and drop the oldest of too many finished streams."""
        self._change((f"stream/{stream}", json.dumps({"finished": time.time()}).encode()))
        self._finished.append(stream)
        while len(self._finished) > _STREAMS_KEPT:
            oldest = self._finished.popleft()
            self._change((f"stream/{oldest}", None), (f"event/{oldest}/*", None))

    def _change(self, *changes: tuple[str, bytes | None], size: int = 0) -> None:
        if not self._closed and self._sessions.schedule(self, size):
            self._changes.extend(changes)

    async def write(self) -> None:
        """Write the changes, with retries until the store responds or the sessions are closed."""
        changes, self._changes = self._changes, []
        while True:
            with suppress(OSError):
                await self._attempt(changes)
                return
            if self._sessions.closing:
                log.error("the store does not answer: changes of a session are lost")
                return
            log.warning("the store does not answer; trying again")
            await asyncio.sleep(_RETRY_DELAY)

    async def _attempt(self, changes: Changes) -> None:
        owned = self._sessions.owned
        if self._ended:
            if owned.get(self._key) is self:
                await self._store.drop(self._space)
                del owned[self._key]
            return
        if self._key not in owned:  # the session is new, or the first write failed
            if all(name != _STATE for name, _ in changes):  # another process has taken over the session
                return
            new = await self._write([(_OWNER, self._me)], ExpectedEntry(_OWNER, None))
            if not new and await self._store.get(self._space, _OWNER) != self._me:
                self._lose()
                return
            owned[self._key] = self
        if not await self._write(changes, ExpectedEntry(_OWNER, self._me)):
            self._lose()

    async def _write(self, changes: Changes, expected: ExpectedEntry) -> bool:
        return await self._store.write(self._space, changes, seconds=self._sessions.keep, expected=expected)

    async def wait_until_written(self) -> None:
        """Wait until all changes so far are written, or raise SessionLostError if another process owns the session."""
        await self._sessions.wait_until_written()
        if self._lost:
            raise SessionLostError

    # -- reading -------------------------------------------------------------------------------------------------

    async def exists(self) -> bool:
        """Return True if the session is in the store."""
        await self._sessions.wait_until_written()
        return await self._store.get(self._space, _STATE) is not None

    async def load(self) -> tuple[Json, list[UnfinishedStream]] | None:
        """Take over the session, and return its state and unfinished streams, or None if there is no session."""
        await self._sessions.wait_until_written()
        state = await self._store.get(self._space, _STATE)
        if state is None:
            return None
        unfinished: list[UnfinishedStream] = []
        finished: list[tuple[float, str]] = []
        for name, data in await self._store.scan(self._space, "stream/"):
            stream, record = name.removeprefix("stream/"), json.loads(data)
            if "finished" in record:
                finished.append((record["finished"], stream))
            else:
                kept = await self._events(stream)
                unfinished.append(UnfinishedStream(stream, record["requests"], kept[-1][0] if kept else 0))
        self._sessions.owned[self._key] = self
        self._finished.extend(stream for _, stream in sorted(finished))
        return json.loads(state), unfinished

    async def events(self, stream: str) -> list[tuple[int, bytes]] | None:
        """Return the stored events of a stream, or None if the stream is missing."""
        await self._sessions.wait_until_written()
        if await self._store.get(self._space, f"stream/{stream}") is None:
            return None
        return await self._events(stream)

    async def _events(self, stream: str) -> list[tuple[int, bytes]]:
        found = await self._store.scan(self._space, f"event/{stream}/")
        return [(int(name.rpartition("/")[2]), data) for name, data in found]


def _event(stream: str, number: int) -> str:
    return f"event/{stream}/{number:018}"
