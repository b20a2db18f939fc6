"""Stores shared by processes: the interface, the memory store, and the registry of the processes that share one.

A store holds *spaces* and *mailboxes*. A space is a sorted map from text to bytes that expires as a whole unless
its lifetime is extended. A mailbox is a queue with one reading process. Tasks, sessions, streams, rates, used
states and caches use nothing else, so another database needs only these eight methods.
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
"""Keys of a space and their new values; None removes an entry. A key that ends in `*` removes all with that prefix."""


class StoreError(OSError):
    """The store cannot be used; the message says which, and what to do."""


class ExpectedEntry(NamedTuple):
    """Required content of an entry for a write to happen; None if the entry must be missing."""

    key: str
    value: bytes | None


class SharedStore(ABC):
    """Spaces and mailboxes. Called on the event loop, which no method blocks. All methods raise `StoreError`.

    Attributes:
        shared: True if other processes see the same content.
    """

    shared: bool = True

    async def open(self) -> None:  # noqa: B027 - a store in memory has nothing to open
        """Open the store, so that errors appear now. Otherwise the first call opens it."""

    async def aclose(self) -> None:  # noqa: B027 - and nothing to close
        """Close the store; the next call opens it again."""

    @abstractmethod
    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""

    @abstractmethod
    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys.

        Args:
            space: the name of the space.
            prefix: prefix of the keys.
            after: return only keys that sort after this one.
            limit: maximum number of entries; 0 for all.
        """

    @abstractmethod
    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space atomically.

        Args:
            space: the name of the space; it is created with its first entry.
            changes: new values of entries.
            seconds: time that the whole space is kept from now.
            expected: required content for the write to happen.

        Returns:
            True if the write happened.
        """

    @abstractmethod
    async def drop(self, space: str) -> None:
        """Forget a space."""

    @abstractmethod
    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox, which expires if no other message follows within `seconds`."""

    @abstractmethod
    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take a mailbox's messages in order; wait up to `wait` seconds if it is empty. One reader at a time."""


_SWEEP_EVERY: Final = 256  # writes


class MemoryStore(SharedStore):
    """Keeps everything as long as the process lives. Event loop only.

    Args:
        clock: seconds.
    """

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
        """Forget a space."""
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
"""Seconds after which a process that says nothing counts as dead. What it writes to its sessions then is refused."""

_DAY: Final = 86_400.0
_ALL: Final = "processes"

log = logging.getLogger(__name__)


class ProcessRegistry:
    """The living processes that share a store, and this one among them. Event loop only.

    Args:
        store: the shared store.
        lease: seconds without a heartbeat after which others consider this process dead.

    Attributes:
        id: this process's name; also that of its mailbox.
        on_lapse: awaited after the lease of this process was over: the others may have taken it for dead.
    """

    def __init__(self, store: SharedStore, lease: float = LEASE) -> None:
        self.store = store
        self.id = secrets.token_hex(8)
        self.lease = lease
        self.on_lapse: Callable[[], Awaitable[None]] | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Register this process and keep its lease; no effect if it has joined."""
        if self._keeper is None:
            await self._prolong()
            await self._enlist()
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the end of the lease."""
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
        """Return the other processes that live; those that died are forgotten."""
        found = [process for process, _ in await self.store.scan(_ALL) if process != self.id]
        living = [process for process in found if await self.alive(process)]
        dead: Changes = [(process, None) for process in found if process not in living]
        if dead:
            await self.store.write(_ALL, dead, seconds=_DAY)
        return living

    async def _prolong(self) -> bool:
        """Prolong the lease. Return False if it had expired."""
        space, lives = _space(self.id), b"lives"
        kept = await self.store.write(space, [("", lives)], seconds=self.lease, expected=ExpectedEntry("", lives))
        return kept or not await self.store.write(space, [("", lives)], seconds=self.lease)

    async def _enlist(self) -> None:
        await self.store.write(_ALL, [(self.id, b"")], seconds=_DAY)

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        named = clock()
        lapsed = False
        while True:
            await asyncio.sleep(self.lease / 4)
            try:
                lapsed = not await self._prolong() or lapsed  # until all of what follows is done
                if lapsed or clock() - named > _DAY / 4:  # the others forget who died
                    await self._enlist()
                    named = clock()
                if lapsed and self.on_lapse is not None:
                    await self.on_lapse()
                lapsed = False
            except OSError as error:
                log.warning("the lease of this process was not renewed: %s", error)


def _space(process: str) -> str:
    return f"process/{process}"
