"""Stores shared by processes: the interface, the memory store, and the registry of the processes.

A store contains *spaces* and *mailboxes*. A space is a sorted map from text to bytes, whose entries expire together. A
mailbox is a queue that one process reads.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

Changes = Sequence[tuple[str, bytes | None]]
"""Keys of a space and their new values. None removes the entry, or all matching entries if the key is `prefix*`."""


class StoreError(OSError):
    """Error for a store that cannot be used."""


class ExpectedEntry(NamedTuple):
    """Condition for a write: the current value of an entry, or None for a missing entry."""

    key: str
    value: bytes | None


class SharedStore(ABC):
    """Spaces and mailboxes, for use in the event loop. All methods raise StoreError.

    `shared` is True if other processes have access to the same data.
    """

    shared: bool = True

    async def open(self) -> None:  # noqa: B027 - a store in memory has nothing to open
        """Open the store, to detect errors early."""

    async def aclose(self) -> None:  # noqa: B027 - likewise
        """Close the store. The next call opens the store again."""

    @abstractmethod
    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""

    @abstractmethod
    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return at most `limit` entries after the key `after` in the order of their keys, or all if `limit` is 0."""

    @abstractmethod
    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space atomically. Return True if the condition `expected` was met, and the changes were written.

        The first entry creates the space. `seconds` is the new lifetime of the space.
        """

    @abstractmethod
    async def drop(self, space: str) -> None:
        """Delete a space."""

    @abstractmethod
    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox, which expires if no other message follows within `seconds`."""

    @abstractmethod
    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take a mailbox's messages in order. If the mailbox is empty, wait up to `wait` seconds.

        Only one reader may wait at a time.
        """


class NamespacedStore(SharedStore):
    """The part of a store that belongs to one server, so that servers with the same store do not affect each other."""

    def __init__(self, store: SharedStore, name: str) -> None:
        self._store = store
        self._prefix = f"{name}/"
        self.shared = store.shared

    async def open(self) -> None:
        """Open the store."""
        await self._store.open()

    async def aclose(self) -> None:
        """Close the store."""
        await self._store.aclose()

    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""
        return await self._store.get(self._prefix + space, key)

    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys."""
        return await self._store.scan(self._prefix + space, prefix, after, limit)

    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space atomically."""
        return await self._store.write(self._prefix + space, changes, seconds=seconds, expected=expected)

    async def drop(self, space: str) -> None:
        """Delete a space."""
        await self._store.drop(self._prefix + space)

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox."""
        await self._store.send(self._prefix + mailbox, data, seconds=seconds)

    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take the messages of a mailbox."""
        return await self._store.receive(self._prefix + mailbox, wait)


_SWEEP_EVERY: Final = 256  # number of writes between two removals of expired data


class MemoryStore(SharedStore):
    """Store in the memory of the process, for use in the event loop."""

    shared = False

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spaces: dict[str, tuple[float, dict[str, bytes]]] = {}
        self._boxes: dict[str, tuple[float, deque[bytes]]] = {}
        self._arrived: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._writes = 0

    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""
        return self._entries(space).get(key)

    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys."""
        entries = self._entries(space)
        found = [(key, entries[key]) for key in sorted(entries) if key.startswith(prefix) and key > after]
        return found[:limit] if limit else found

    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space atomically."""
        entries = self._entries(space)
        if expected is not None and entries.get(expected.key) != expected.value:
            return False
        for key, value in changes:
            if value is not None:
                entries[key] = value
            elif key.endswith("*"):
                for one in [one for one in entries if one.startswith(key[:-1])]:
                    del entries[one]
            else:
                entries.pop(key, None)
        if entries:
            self._spaces[space] = (self._clock() + seconds, entries)
        else:
            self._spaces.pop(space, None)
        self._sweep()
        return True

    async def drop(self, space: str) -> None:
        """Delete a space."""
        self._spaces.pop(space, None)

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox."""
        until, messages = self._boxes.get(mailbox, (0.0, deque()))
        now = self._clock()
        if until <= now:
            messages = deque()
        messages.append(data)
        self._boxes[mailbox] = (now + seconds, messages)
        if mailbox in self._arrived:
            self._arrived[mailbox].set()
        self._sweep()

    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take the messages of a mailbox."""
        if self._boxes.get(mailbox, (0.0, ()))[0] <= self._clock():
            try:
                async with asyncio.timeout(wait):
                    await self._arrived[mailbox].wait()
            except TimeoutError:
                return []
            finally:
                self._arrived.pop(mailbox, None)
        until, messages = self._boxes.pop(mailbox, (0.0, deque()))
        return list(messages) if until > self._clock() else []

    def _entries(self, space: str) -> dict[str, bytes]:
        until, entries = self._spaces.get(space, (0.0, {}))
        return entries if until > self._clock() else {}

    def _sweep(self) -> None:
        self._writes += 1
        if self._writes % _SWEEP_EVERY:
            return
        now = self._clock()
        for space in [name for name, (until, _) in self._spaces.items() if until <= now]:
            del self._spaces[space]
        for mailbox in [name for name, (until, _) in self._boxes.items() if until <= now]:
            del self._boxes[mailbox]


LEASE: Final = 3.0
"""Seconds without a heartbeat after which other processes may take over the sessions of a process."""

_DAY: Final = 86_400.0  # seconds
_ALL: Final = "processes"  # space with the list of processes

log = logging.getLogger(__name__)


class ProcessRegistry:
    """Registry of the live processes that share a store, for use in the event loop.

    Other processes consider this process dead after `lease` seconds without a heartbeat. `on_lapse` is called after the
    lease expired.
    """

    def __init__(self, store: SharedStore, lease: float = LEASE) -> None:
        self.store = store
        self.id = secrets.token_hex(8)
        self.lease = lease
        self.on_lapse: Callable[[], Awaitable[None]] | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Register this process and start to extend the lease."""
        if self._keeper is None:
            await self._extend_lease()
            await self._add_to_list()
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def leave(self) -> None:
        """Unregister this process, so that other processes need not wait until the lease expires."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            with suppress(OSError):
                await self.store.drop(_space(self.id))
                await self.store.write(_ALL, [(self.id, None)], seconds=_DAY)

    async def alive(self, process: str) -> bool:
        """Return True if a process is alive."""
        return process == self.id or await self.store.get(_space(process), "") is not None

    async def others(self) -> list[str]:
        """Return the other live processes, and remove dead processes from the list."""
        found = [process for process, _ in await self.store.scan(_ALL) if process != self.id]
        living = [process for process in found if await self.alive(process)]
        dead: Changes = [(process, None) for process in found if process not in living]
        if dead:
            await self.store.write(_ALL, dead, seconds=_DAY)
        return living

    async def _extend_lease(self) -> bool:
        """Extend the lease, or return False if the lease had expired."""
        space, lives = _space(self.id), b"lives"
        kept = await self.store.write(space, [("", lives)], seconds=self.lease, expected=ExpectedEntry("", lives))
        return kept or not await self.store.write(space, [("", lives)], seconds=self.lease)

    async def _add_to_list(self) -> None:
        await self.store.write(_ALL, [(self.id, b"")], seconds=_DAY)

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        named = clock()
        lapsed = False
        while True:
            await asyncio.sleep(self.lease / 4)
            try:
                # `lapsed` stays True until this process is in the list again.
                lapsed = not await self._extend_lease() or lapsed
                # Other processes may have removed this process, and the list may have expired.
                if lapsed or clock() - named > _DAY / 4:
                    await self._add_to_list()
                    named = clock()
                if lapsed and self.on_lapse is not None:
                    await self.on_lapse()
                lapsed = False
            except OSError as error:
                log.warning("the lease of this process was not renewed: %s", error)


def _space(process: str) -> str:
    return f"process/{process}"
