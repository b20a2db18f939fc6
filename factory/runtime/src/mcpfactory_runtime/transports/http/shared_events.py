"""Sessions and events in a store that several processes share. Each session belongs to one living process at a time.

The owner of a session is stored with it, and every later write requires the owner to be unchanged. So a slow process
that was assumed dead cannot change a session that another process has taken over.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from mcpfactory_runtime.store.base import Expected, Processes, SharedStore
from mcpfactory_runtime.transports.http.stream import KEPT, Unfinished
from mcpfactory_runtime.types import Json

Changes = list[tuple[str, bytes | None]]

log = logging.getLogger(__name__)

_STREAMS_KEPT: Final = 64  # finished ones of a session
_PENDING_AT_MOST: Final = 32 << 20  # bytes of events that wait to be written; more are not recorded
_AGAIN: Final = 0.25  # seconds until a write that the store did not take is tried again
_OWNER: Final = "owner"
_STATE: Final = "state"


class SharedEventStore:
    """Keeps sessions, streams and events. Event loop only.

    Sessions are named by `key`, a digest of their id, so that the contents of a store open no session. The methods that write
    return at once; those that read see everything that was written before.

    Args:
        store: where.
        processes: who lives.
        keep: seconds that a session is kept after its last use.

    Attributes:
        on_lost: called with the key of a session that another process has taken over.
    """

    def __init__(self, store: SharedStore, processes: Processes, *, keep: float = 24 * 3600.0) -> None:
        self._store = store
        self._processes = processes
        self._me = processes.id.encode()
        self._keep = keep
        self.on_lost: Callable[[str], None] = lambda _: None
        self._owned: set[str] = set()
        self._finished: defaultdict[str, deque[str]] = defaultdict(deque)
        self._pending: dict[str, Changes | None] = {}
        self._pending_size = 0
        self._next: asyncio.Future[None] | None = None  # done when the pending changes are written
        self._current: asyncio.Future[None] | None = None  # done when the current write is finished
        self._writer: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self) -> None:
        """Begin."""
        self._closing = False
        await self._processes.join()
        self._processes.on_lapse = self._check_owned

    async def aclose(self) -> None:
        """Write the pending changes, retry once if the store does not respond, and close."""
        self._closing = True
        await self.written()

    # -- whose a session is --------------------------------------------------------------------------------------

    async def claim(self, key: str) -> str | None:
        """Return the other living process that has a session; otherwise None, and take over that of a dead one."""
        while True:
            owner = await self._store.get(_space(key), _OWNER)
            if owner is None or owner == self._me:
                return None
            if await self._processes.alive(owner.decode()):
                return owner.decode()
            taken = await self._store.write(
                _space(key), [(_OWNER, self._me)], seconds=self._keep, expected=Expected(_OWNER, owner)
            )
            if taken:
                self._owned.add(key)
                return None

    async def _check_owned(self) -> None:
        """Find out, after this process counted as dead for a while, what it has lost."""
        for key in list(self._owned):
            if await self._store.get(_space(key), _OWNER) != self._me:
                self._lose(key)

    def _lose(self, key: str) -> None:
        self._owned.discard(key)
        self._finished.pop(key, None)
        self.on_lost(key)

    # -- writing -------------------------------------------------------------------------------------------------

    def save(self, key: str, state: Json) -> None:
        """Remember a session."""
        self._change(key, (_STATE, json.dumps(state, separators=(",", ":")).encode()))

    def touch(self, key: str) -> None:
        """Note that the session is in use."""
        self._change(key)

    def forget(self, key: str) -> None:
        """Drop a session."""
        self._finished.pop(key, None)
        self._change(key)
        self._pending[key] = None

    def begin(self, key: str, stream: str, requests: Sequence[str | int]) -> None:
        """Begin a stream."""
        self._change(key, (f"stream/{stream}", json.dumps({"requests": list(requests)}).encode()))

    def append(self, key: str, stream: str, number: int, data: bytes) -> None:
        """Record an event; the oldest of a long stream are dropped."""
        if self._pending_size > _PENDING_AT_MOST:
            log.warning("the store is too slow: events are not recorded")
            return
        self._pending_size += len(data)
        self._change(key, (_event(stream, number), data))
        if number > KEPT:
            self._change(key, (_event(stream, number - KEPT), None))

    def finish(self, key: str, stream: str) -> None:
        """Finish a stream; the oldest of many are dropped."""
        self._change(key, (f"stream/{stream}", json.dumps({"finished": time.time()}).encode()))
        finished = self._finished[key]
        finished.append(stream)
        while len(finished) > _STREAMS_KEPT:
            oldest = finished.popleft()
            self._change(key, (f"stream/{oldest}", None), (f"event/{oldest}/*", None))

    def _change(self, key: str, *changes: tuple[str, bytes | None]) -> None:
        waiting = self._pending.setdefault(key, [])
        if waiting is not None:  # else the session has ended
            waiting.extend(changes)
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.create_future()
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._pending:
            batch, self._pending, self._pending_size = self._pending, {}, 0
            self._current, self._next = self._next, None
            try:
                await asyncio.gather(*(self._write(key, changes) for key, changes in batch.items()))
            finally:
                if self._current is not None and not self._current.done():
                    self._current.set_result(None)
                self._current = None

    async def _write(self, key: str, changes: Changes | None) -> None:
        """Write a session's changes; retry until the store responds."""
        while True:
            with suppress(OSError):
                if await self._attempt(key, changes):
                    return
            if self._closing:
                log.error("the store does not answer: changes of a session are lost")
                return
            log.warning("the store does not answer; trying again")
            await asyncio.sleep(_AGAIN)

    async def _attempt(self, key: str, changes: Changes | None) -> bool:
        """Return True if the change is done: written, or refused because another process has the session."""
        space = _space(key)
        if changes is None:
            if key in self._owned:
                self._owned.discard(key)
                await self._store.drop(space)
            return True
        if key not in self._owned:  # a new one, or one of this process whose first write was not answered
            if all(name != _STATE for name, _ in changes):  # one that has ended, or was lost
                return True
            new = await self._store.write(
                space, [(_OWNER, self._me)], seconds=self._keep, expected=Expected(_OWNER, None)
            )
            if not new and await self._store.get(space, _OWNER) != self._me:
                self._lose(key)
                return True
            self._owned.add(key)
        expected = Expected(_OWNER, self._me)
        if not await self._store.write(space, changes, seconds=self._keep, expected=expected):
            self._lose(key)
        return True

    async def written(self) -> None:
        """Wait until everything so far is in the store."""
        waiting = self._next or self._current
        if waiting is not None:
            await asyncio.shield(waiting)

    # -- reading -------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> tuple[Json, list[Unfinished]] | None:
        """Return a session and its unfinished streams."""
        await self.written()
        state = await self._store.get(_space(key), _STATE)
        if state is None:
            return None
        unfinished: list[Unfinished] = []
        finished: list[tuple[float, str]] = []
        for name, data in await self._store.scan(_space(key), "stream/"):
            stream, told = name.removeprefix("stream/"), json.loads(data)
            if "finished" in told:
                finished.append((told["finished"], stream))
            else:
                kept = await self._events(key, stream)
                unfinished.append(Unfinished(stream, told["requests"], kept[-1][0] if kept else 0))
        self._owned.add(key)
        self._finished[key] = deque(stream for _, stream in sorted(finished))
        return json.loads(state), unfinished

    async def events(self, key: str, stream: str) -> list[tuple[int, bytes]] | None:
        """Return the stored events of a stream."""
        await self.written()
        if await self._store.get(_space(key), f"stream/{stream}") is None:
            return None
        return await self._events(key, stream)

    async def _events(self, key: str, stream: str) -> list[tuple[int, bytes]]:
        found = await self._store.scan(_space(key), f"event/{stream}/")
        return [(int(name.rpartition("/")[2]), data) for name, data in found]


def _space(key: str) -> str:
    return f"session/{key}"


def _event(stream: str, number: int) -> str:
    return f"event/{stream}/{number:018}"
