"""Who follows what: one task polls for each thing that is followed, for all who follow it; and what it polls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.dashboard.live import Position, Snapshot, Tail, events_since, read_tail
from mcpfactory_pipeline.dashboard.pages import Page, path_of
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.dashboard.render import Links, render_state
from mcpfactory_pipeline.dashboard.runs import RunPage

__all__ = [
    "Followers",
    "Poll",
    "TooManyFollowersError",
    "watch_run",
    "watch_workspace",
]


_INTERVAL: Final = 0.25  # seconds between two polls
_IDLE_POLLS: Final = 8  # polls for nobody, before it is left: whoever goes from page to page comes back
_HEARTBEAT: Final = 15.0  # seconds after which a silent connection is given a comment: one that is dead is noticed then
_MAX_LISTENERS: Final = 500  # listeners
_RENEWED: Final = 2.0  # seconds after which the page of a run that goes on is told how long it has taken by now
_FIRST: Final = b"retry: 1500\n\n"

Poll = Callable[[], Snapshot | None]
"""Reads the files, in a thread: how things are, or None when nothing changed since the last poll."""


class TooManyFollowersError(PipelineError):
    """As many follow as are let in."""


class _Follower:
    """One thing that is followed. It polls only while somebody listens."""

    def __init__(self, first: Snapshot, poll: Poll, ended: Callable[[], bool]) -> None:
        self.now = first
        self.listeners = 0
        self.closed = False
        self._poll, self._ended = poll, ended
        self._changed = asyncio.Event()
        self._sent: dict[str, tuple[bytes, Position]] = {}  # what leads from a position to now: most are at the same

    async def follow(self) -> None:
        """Look until nobody listens, or there is nothing more to see."""
        idle = 0
        try:
            while not self.now.over:
                await asyncio.sleep(_INTERVAL)
                idle = 0 if self.listeners else idle + 1
                if idle > _IDLE_POLLS or self._ended():
                    return
                with suppress(PipelineError, OSError):  # a file in the middle of a change: the next poll sees it whole
                    if (now := await asyncio.to_thread(self._poll)) is not None:
                        self._publish(now)
        finally:
            self.closed = True
            self._publish(self.now)

    def _publish(self, now: Snapshot) -> None:
        self.now, self._sent = now, {}
        waiting, self._changed = self._changed, asyncio.Event()
        waiting.set()

    async def listen(self, position: Position) -> AsyncIterator[bytes]:
        """Yield what one browser is sent, from its position on."""
        yield _FIRST
        while True:
            changed, closed = self._changed, self.closed
            sent, position = self._events_from(position)
            if sent:
                yield sent
            if closed or self.now.over:
                return
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    await changed.wait()
            except TimeoutError:
                yield b": still here\n\n"

    def _events_from(self, position: Position) -> tuple[bytes, Position]:
        name = str(position)
        if name not in self._sent:
            self._sent[name] = events_since(position, self.now)
        return self._sent[name]


class Followers:
    """Everything that is followed now. `ended` says that the server goes down: then every stream ends."""

    def __init__(self, ended: Callable[[], bool] = lambda: False) -> None:
        self._ended = ended
        self._known: dict[str, _Follower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners = 0
        self._joining = asyncio.Lock()

    async def join(self, name: str, make: Callable[[], Poll], position: str) -> AsyncIterator[bytes]:
        """Return a stream of what changes in the thing of that name; `make` gives what polls it, where nobody does yet.

        Raises:
            TooManyFollowersError: when too many follow; and what the first poll raises.
        """
        if self._listeners >= _MAX_LISTENERS:
            raise TooManyFollowersError(
                f"{_MAX_LISTENERS} browsers follow already", hint="close some, or reload the page now and then"
            )
        async with self._joining:  # of many who come at once, one polls
            follower = self._known.get(name)
            if follower is None or follower.closed:
                poll = make()
                first = await asyncio.to_thread(poll)
                assert first is not None  # a first poll always sees something
                follower = self._known[name] = _Follower(first, poll, self._ended)
                self._start(name, follower)
        return self._listen(follower, Position.read(position))

    def _start(self, name: str, follower: _Follower) -> None:
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


def watch_workspace(reader: WorkspaceReader) -> Poll:
    """Sees that some server has another state, or that a run began or ended; what that is, pages say."""
    last = ""

    def poll() -> Snapshot | None:
        nonlocal last
        if (now := reader.digest()) == last:
            return None
        last = now
        reader.forget()
        return Snapshot(now)

    return poll


class _RunWatch:
    """Poll a run: its page is rendered again when a file has changed or time has passed, and the logs of steps at work are read each time."""

    def __init__(self, reader: WorkspaceReader, page: Page, values: dict[str, str], number: str) -> None:
        self._library, self._page, self._values, self._number = reader, page, values, number
        self._links = Links(path_of(page, values), query={"page": number} if number else {})
        self._digest = ""
        self._view: RunPage | None = None
        self._last: Snapshot | None = None
        self._read = 0.0

    def __call__(self) -> Snapshot | None:
        workspace_digest, now = self._library.digest(), self._last
        due = self._view is not None and self._view.going and time.monotonic() - self._read >= _RENEWED
        if now is None or self._view is None or due or workspace_digest != self._digest:
            now = self._reread()
        else:
            now = replace(now, tails=self._tails(self._view))
        same = now == self._last
        self._digest, self._last = workspace_digest, now
        return None if same else now

    def _reread(self) -> Snapshot:
        self._read = time.monotonic()
        try:
            self._view = view = self._page.view(self._library, self._values, {"page": self._number})
        except NotFoundError:
            if self._last is None:
                raise
            return replace(self._last, tails=(), over=True)  # it ended, and nothing had been due
        return Snapshot(render_state(view, self._links), self._tails(view), over=not view.going)

    def _tails(self, view: RunPage) -> tuple[Tail, ...]:
        return tuple(
            read_tail(step.name, self._library.log_file(step.server, step.stage))
            for step in view.steps
            if step.status.key == "running"
        )


def watch_run(reader: WorkspaceReader, page: Page, values: dict[str, str], number: str) -> Poll:
    """Sees what happens in a run: its page as it is then, and what the steps at work print.

    Raises:
        NotFoundError: when no history has such a run.
    """
    return _RunWatch(reader, page, values, number)
