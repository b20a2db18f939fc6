"""Server-sent events that clients can resume (basic/transports, Resumability and Redelivery).

An `EventStreamAnswer` keeps its latest messages in memory. A follower sends the messages as a response, but a stream
may have no follower for a while. The stored data is bounded for any client behavior (docs/reference/transports.md,
Bounds). With a store, another process can also send the events that have IDs (`storage/events.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from mcpfactory_runtime.protocol.jsonrpc import sse_comment, sse_event, sse_retry
from mcpfactory_runtime.server.session import DROP_AT
from mcpfactory_runtime.storage.events import KEPT

if TYPE_CHECKING:
    from mcpfactory_runtime.storage.events import SessionJournal

KEPT_BYTES: Final = 1 << 20
"""Maximum bytes of messages that a stream keeps. The newest message is always kept."""

END_AT: Final = 16 << 20
"""Number of unread bytes above which the next message ends the response."""

KEEP_ALIVE: Final = 15.0
"""Seconds without a message after which a stream begins or sends a comment, because proxies close idle connections."""

_OVERHEAD: Final = 128  # additional bytes of memory for each message


class EventStreamAnswer:
    """Numbered messages of one response, or of the session's own stream, for use in the event loop.

    Only one task at a time may wait in `ready`. Event IDs are `<name>-<number>`, and a stream without a name has no
    event IDs. A `primed` stream begins with an event that has an ID but no data, so that a client can resume before the
    first message. An `awaited` stream keeps unsent messages, because a response will follow at once. `recorder` records
    the events of a named stream after the stream gets a follower.

    If `detached` is True, the response must end although the stream continues, and the client fetches the rest later.
    `overrun` is called if the response must end because the client does not read.
    """

    __slots__ = (
        "_begun",
        "_changed",
        "_count",
        "_events",
        "_followers",
        "_primed",
        "_recorded",
        "_recorder",
        "_requests",
        "_retry",
        "_sent",
        "_size",
        "_unsent",
        "closed",
        "detached",
        "name",
        "overrun",
    )

    def __init__(
        self,
        name: str | None,
        *,
        primed: bool,
        awaited: bool = True,
        recorder: SessionJournal | None = None,
        requests: Sequence[str | int] = (),
    ) -> None:
        self.name = name
        self.closed = False
        self.detached = False
        self.overrun: Callable[[], object] | None = None
        self._primed = primed
        self._retry: int | None = None
        self._events: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._count = 0
        self._unsent = 0 if awaited else None
        self._sent = 0
        self._begun: asyncio.Future[None] | None = None
        self._changed: asyncio.Event | None = None
        self._followers = 0
        self._recorder = recorder if name is not None else None
        self._recorded = False
        self._requests = requests

    @property
    def count(self) -> int:
        """Return the number of messages so far."""
        return self._count

    @property
    def is_unsent(self) -> bool:
        """Return True if no part of the stream can have been sent yet."""
        return not self.closed and not self._followers

    @property
    def only_message(self) -> bytes | None:
        """Return the only message of a finished stream without follower, to send the message as JSON."""
        alone = self.closed and self._count == 1 and not self.detached and not self._followers
        return self._events[0][1] if alone else None

    def restore(self, events: Iterable[tuple[int, bytes]]) -> None:
        """Add events that another process sent, so that new events continue the numbers."""
        self._recorded = True
        self._unsent = None
        for number, data in events:
            self._count = number
            self._keep(number, data)

    def has_after(self, after: int) -> bool:
        """Return True if all messages after the number `after` are still available."""
        return after >= self._count or (bool(self._events) and self._events[0][0] <= after + 1)

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Add a message, or drop a `droppable` message if the client does not read."""
        if self._unsent is not None:
            if droppable and self._unsent > DROP_AT:
                return
            if self._unsent > END_AT:
                self._overrun()
            else:
                self._unsent += len(data) + _OVERHEAD
        self._count += 1
        self._keep(self._count, data)
        if self._recorded and self._recorder is not None:
            assert self.name is not None
            self._recorder.append(self.name, self._count, data)
        self._wake()

    def finish(self, data: bytes | None = None, *, recorded: bool = True) -> None:
        """End the stream, after the last message `data`."""
        if self.closed:
            return
        if data is not None:
            self.push(data)
        self.closed = True
        if recorded and self._recorded and self._recorder is not None:
            assert self.name is not None
            self._recorder.finish(self.name)
        self._wake()

    def detach(self, retry: int | None) -> None:
        """End the response, but not the stream, to which the client may reconnect after `retry` milliseconds."""
        self.detached = True
        self._retry = retry
        self._wake()

    async def ready(self) -> None:
        """Wait until there is a message, the stream ends, or `KEEP_ALIVE` seconds have passed."""
        if not (self._count or self.closed or self.detached):
            loop = asyncio.get_running_loop()
            self._begun = loop.create_future()
            # A timer is used because asyncio.wait would take a tenth of a request's time.
            silence = loop.call_later(KEEP_ALIVE, self._wake)
            try:
                await self._begun
            finally:
                silence.cancel()

    async def follow(
        self, after: int | None = None, *, resumed: bool = False, earlier: Sequence[tuple[int, bytes]] = ()
    ) -> AsyncGenerator[bytes]:
        """Yield the events after number `after` until the stream ends or is detached. With None, yield only new events.

        A new follower replaces an earlier follower. With `resumed`, the priming event is omitted, and an earlier
        `detach` no longer applies. `earlier` are events that the stream has dropped.
        """
        self._followers += 1
        me = self._followers
        self._wake()
        position = self._count if after is None else after
        self._record()
        try:
            if resumed:
                self.detached = False
            elif self._primed:
                await self._written()
                yield sse_event(b"", event_id=self._id(position))
            position = earlier[-1][0] if earlier else position
            self._restart(position)
            for number, data in earlier:
                yield sse_event(data, event_id=self._id(number))
            while me == self._followers:
                fresh = self._after(position)
                if fresh:
                    await self._written()
                    for number, data in fresh:
                        position = number
                        yield sse_event(data, event_id=self._id(number))
                        if me != self._followers:
                            return
                        self._mark_sent(number, data)
                    continue  # further messages, perhaps the last message, may have arrived during the loop
                if self.detached and self._retry is not None:
                    yield sse_retry(self._retry)
                if self.closed or self.detached:
                    return
                if not await self._wait_for_change():
                    yield sse_comment("still here")
        finally:
            if me == self._followers:  # no newer follower needs the unsent messages, so keep only the latest messages
                self._unsent = None
                self._trim()

    # -- retention -----------------------------------------------------------------------------------------------

    def _after(self, position: int) -> list[tuple[int, bytes]]:
        return list(islice(self._events, max(len(self._events) - self._count + position, 0), None))

    def _keep(self, number: int, data: bytes) -> None:
        self._events.append((number, data))
        self._size += len(data) + _OVERHEAD
        if len(self._events) > KEPT or self._size > KEPT_BYTES:
            self._trim()

    def _trim(self) -> None:
        events = self._events
        while len(events) > 1 and (len(events) > KEPT or self._size > KEPT_BYTES):
            if self._unsent is not None and events[0][0] > self._sent:
                return
            self._size -= len(events.popleft()[1]) + _OVERHEAD

    def _restart(self, position: int) -> None:
        self._sent = position
        self._unsent = sum(len(data) + _OVERHEAD for _, data in self._after(position))

    def _mark_sent(self, number: int, data: bytes) -> None:
        if self._unsent is not None:
            self._sent = number
            self._unsent -= len(data) + _OVERHEAD
            self._trim()

    def _overrun(self) -> None:
        self._unsent = None
        self._trim()
        if self.overrun is not None:
            self.overrun()

    def _record(self) -> None:
        """Start to record the stream with its stored messages."""
        if self._recorded or self._recorder is None:
            return
        assert self.name is not None
        self._recorded = True
        self._recorder.begin(self.name, self._requests)
        for number, data in self._events:
            self._recorder.append(self.name, number, data)
        if self.closed:
            self._recorder.finish(self.name)

    async def _written(self) -> None:
        """Wait until the recorder has stored the events, because a client must be able to resume after each event."""
        if self._recorded and self._recorder is not None:
            await self._recorder.wait_until_written()

    # -- waiting -------------------------------------------------------------------------------------------------

    def _id(self, number: int) -> str | None:
        return None if self.name is None else f"{self.name}-{number}"

    def _wake(self) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)
        if self._changed is not None:
            self._changed.set()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()

    async def _wait_for_change(self) -> bool:
        try:
            async with asyncio.timeout(KEEP_ALIVE):
                await self._change()
        except TimeoutError:
            return False
        return True
