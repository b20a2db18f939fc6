"""The store in the memory of this process."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

from mcpfactory_runtime.store.base import Expected, SharedStore

__all__ = ["MemoryStore"]

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
        self,
        space: str,
        changes: Sequence[tuple[str, bytes | None]],
        *,
        seconds: float,
        expected: Expected | None = None,
    ) -> bool:
        """Change a space as one step."""
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
        """Take what is in a mailbox."""
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
        """Forget what is over, once in a while."""
        self._writes += 1
        if self._writes % _SWEEP_EVERY:
            return
        now = self._clock()
        for space in [name for name, (until, _) in self._spaces.items() if until <= now]:
            del self._spaces[space]
        for mailbox in [name for name, (until, _) in self._boxes.items() if until <= now]:
            del self._boxes[mailbox]
