"""The interface of stores.

A store keeps *spaces* and *mailboxes*. A space is a sorted map from text to bytes that is forgotten as a whole when nobody has
prolonged it for its time. A mailbox is a queue that one process reads. That is all that tasks, sessions, streams, rates,
used states and caches are kept in, so that a further database is these eight methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Expected", "SharedStore", "StoreError"]


class StoreError(OSError):
    """The store cannot be used; the message says which, and what to do."""


class Expected(NamedTuple):
    """What an entry must hold for a write to happen; None: it must be missing."""

    key: str
    value: bytes | None


class SharedStore(ABC):
    """Spaces and mailboxes. Called on the event loop, which no method blocks. All methods raise `StoreError`.

    Attributes:
        shared: whether other processes see the same.
    """

    shared: bool = True

    async def open(self) -> None:  # noqa: B027 - a store in memory has nothing to open
        """Begin, so that what is wrong is known now. Without it the first call begins."""

    async def aclose(self) -> None:  # noqa: B027 - and nothing to close
        """End. The store may be used again afterwards."""

    @abstractmethod
    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""

    @abstractmethod
    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys.

        Args:
            space: of which space.
            prefix: of the keys.
            after: only keys behind this one.
            limit: at most so many; 0 for all.
        """

    @abstractmethod
    async def write(
        self,
        space: str,
        changes: Sequence[tuple[str, bytes | None]],
        *,
        seconds: float,
        expected: Expected | None = None,
    ) -> bool:
        """Change a space as one step that nobody else comes between.

        Args:
            space: which space; it begins with its first entry.
            changes: keys and what they hold afterwards; None removes an entry. A key that ends in `*` removes all that begin so.
            seconds: how long the space is kept from now on, as a whole.
            expected: what must be there for the write to happen.

        Returns:
            Whether it happened.
        """

    @abstractmethod
    async def drop(self, space: str) -> None:
        """Forget a space."""

    @abstractmethod
    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox, which is forgotten when nothing comes into it for so many seconds."""

    @abstractmethod
    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take what is in a mailbox, in order; wait for so many seconds while there is nothing. One reader at a time."""
