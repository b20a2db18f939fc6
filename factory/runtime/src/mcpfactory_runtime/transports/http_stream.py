"""Server-sent events that can be left and taken up again (basic/transports, Resumability and Redelivery).

A `Stream` keeps its latest messages; whoever sends the response follows it, and may be gone for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from mcpfactory_runtime.protocol.framing import sse_comment, sse_event, sse_retry

__all__ = ["KEPT", "Stream"]

KEPT: Final = 256
"""Messages that a stream keeps for clients that come back."""

_KEEP_ALIVE: Final = 15.0  # seconds of silence after which a comment is sent, for proxies that close quiet connections


class Stream:
    """Messages of one response (or of a session's own stream), numbered. Event loop only.

    Args:
        name: unique within the session; event ids are `<name>-<number>`. None: events have no ids.
        primed: begin with an event that has an id and no data, so that a client can come back before the first message.

    Attributes:
        closed: the last message was pushed.
        detached: the response is to end although the stream goes on; the client fetches the rest.
    """

    def __init__(self, name: str | None, *, primed: bool) -> None:
        self.name = name
        self.closed = False
        self.detached = False
        self._primed = primed
        self._retry: int | None = None
        self._events: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._count = 0
        self._changed = asyncio.Event()
        self._followers = 0

    @property
    def count(self) -> int:
        """Messages pushed so far."""
        return self._count

    @property
    def sole(self) -> bytes | None:
        """The message of a stream that ended with its first one: it can travel as plain JSON."""
        return self._events[0][1] if self.closed and self._count == 1 and not self.detached else None

    def push(self, data: bytes) -> None:
        """Add a message."""
        self._count += 1
        self._events.append((self._count, data))
        self._wake()

    def finish(self, data: bytes | None = None) -> None:
        """Add the last message, or none."""
        if data is not None:
            self.push(data)
        self.closed = True
        self._wake()

    def detach(self, retry: int | None) -> None:
        """End the response that follows the stream now; a client may come back after `retry` milliseconds."""
        self.detached = True
        self._retry = retry
        self._wake()

    async def ready(self) -> None:
        """Wait until there is something to send, or the end."""
        while not (self._count or self.closed or self.detached):
            self._changed.clear()
            await self._changed.wait()

    async def follow(self, after: int | None = None, *, resumed: bool = False) -> AsyncIterator[bytes]:
        """The events after number `after` (None: from now on), as they come, until the stream ends or is left.

        A new follower takes the place of an older one. `resumed` is for clients that come back: they have the priming
        event already, and an earlier `detach` is over.
        """
        self._followers += 1
        me = self._followers
        self._wake()
        position = self._count if after is None else after
        if resumed:
            self.detached = False
        elif self._primed:
            yield sse_event(b"", event_id=self._id(position))
        while me == self._followers:
            for number, data in tuple(self._events):
                if number > position:
                    position = number
                    yield sse_event(data, event_id=self._id(number))
            if self.detached and self._retry is not None:
                yield sse_retry(self._retry)
            if self.closed or self.detached:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(_KEEP_ALIVE):
                    await self._changed.wait()
            except TimeoutError:
                yield sse_comment("still here")

    def _id(self, number: int) -> str | None:
        return None if self.name is None else f"{self.name}-{number}"

    def _wake(self) -> None:
        self._changed.set()
