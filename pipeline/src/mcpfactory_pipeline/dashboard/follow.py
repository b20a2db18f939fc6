"""Those who follow, and what they follow: a task for each thing that somebody looks at, shared by all who look at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.dashboard.live import Position, Snapshot, news

__all__ = ["Followers", "FullError", "Look"]

_EVERY: Final = 0.25  # seconds between two looks
_PATIENCE: Final = 8  # looks for nobody, before it is left: whoever goes from page to page comes back
_BEAT: Final = 15.0  # seconds after which a silent connection is given a comment: one that is dead is noticed then
_MOST: Final = 500  # listeners
_HELLO: Final = b"retry: 1500\n\n"

Look = Callable[[], Snapshot | None]
"""Looks at the files, in a thread: how things are, or None when nothing changed since the last look."""


class FullError(PipelineError):
    """As many follow as are let in."""


class _Follower:
    """One thing that is followed. It looks only while somebody listens."""

    def __init__(self, first: Snapshot, look: Look, ended: Callable[[], bool]) -> None:
        self.now = first
        self.listeners = 0
        self.closed = False
        self._look, self._ended = look, ended
        self._news = asyncio.Event()
        self._sent: dict[str, tuple[bytes, Position]] = {}  # what leads from a position to now: most are at the same

    async def follow(self) -> None:
        """Look until nobody listens, or there is nothing more to see."""
        idle = 0
        try:
            while not self.now.over:
                await asyncio.sleep(_EVERY)
                idle = 0 if self.listeners else idle + 1
                if idle > _PATIENCE or self._ended():
                    return
                with suppress(PipelineError, OSError):  # a file in the middle of a change: the next look sees it whole
                    if (now := await asyncio.to_thread(self._look)) is not None:
                        self._tell(now)
        finally:
            self.closed = True
            self._tell(self.now)

    def _tell(self, now: Snapshot) -> None:
        self.now, self._sent = now, {}
        told, self._news = self._news, asyncio.Event()
        told.set()

    async def listen(self, position: Position) -> AsyncIterator[bytes]:
        """Yield what one browser is sent, from its position on."""
        yield _HELLO
        while True:
            changed, closed = self._news, self.closed
            sent, position = self._leading(position)
            if sent:
                yield sent
            if closed or self.now.over:
                return
            try:
                async with asyncio.timeout(_BEAT):
                    await changed.wait()
            except TimeoutError:
                yield b": still here\n\n"

    def _leading(self, position: Position) -> tuple[bytes, Position]:
        name = str(position)
        if name not in self._sent:
            self._sent[name] = news(position, self.now)
        return self._sent[name]


class Followers:
    """Everything that is followed now. `ended` says that the server goes down: then every stream ends."""

    def __init__(self, ended: Callable[[], bool] = lambda: False) -> None:
        self._ended = ended
        self._known: dict[str, _Follower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners = 0
        self._joining = asyncio.Lock()

    async def join(self, name: str, make: Callable[[], Look], position: str) -> AsyncIterator[bytes]:
        """Return a stream of what changes in the thing of that name; `make` gives what looks at it, where nobody does yet.

        Raises what the first look raises, and `FullError` when too many follow.
        """
        if self._listeners >= _MOST:
            raise FullError(f"{_MOST} browsers follow already", hint="close some, or reload the page now and then")
        async with self._joining:  # of many who come at once, one looks
            follower = self._known.get(name)
            if follower is None or follower.closed:
                look = make()
                first = await asyncio.to_thread(look)
                assert first is not None  # a first look always sees something
                follower = self._known[name] = _Follower(first, look, self._ended)
                self._begin(name, follower)
        return self._listen(follower, Position.read(position))

    def _begin(self, name: str, follower: _Follower) -> None:
        task = asyncio.create_task(follower.follow())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: self._forget(name, follower))

    async def _listen(self, follower: _Follower, position: Position) -> AsyncIterator[bytes]:
        follower.listeners += 1
        self._listeners += 1
        try:
            async for sent in follower.listen(position):
                yield sent
        finally:
            follower.listeners -= 1
            self._listeners -= 1

    def _forget(self, name: str, follower: _Follower) -> None:
        if self._known.get(name) is follower:
            del self._known[name]
