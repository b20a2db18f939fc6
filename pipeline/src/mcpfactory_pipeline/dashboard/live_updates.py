"""Live updates of pages. One poll of the files serves all connected browsers.

A listener receives the changes since the listener's position (`StreamPosition`). Events are not queued, so a slow
listener receives fewer events. Event IDs are positions, so that a browser can resume with `Last-Event-ID`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.pages import Page, path_of
from mcpfactory_pipeline.dashboard.render import Links, render_state
from mcpfactory_pipeline.dashboard.runs import RunPage
from mcpfactory_pipeline.dashboard.workspace_files import open_log, strip_terminal_codes
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader

_MAX_LOG: Final = 12_000  # maximum number of bytes of a log per event
_MAX_STEPS: Final = 16  # maximum number of logs per page
_LINE_END: Final = re.compile(r"\r\n|\r|\n")  # all line endings of an event stream


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last complete lines of a running step's log. `start` is the offset of these lines in the file."""

    step: str  # server/stage/attempt
    start: int
    text: bytes

    @property
    def end(self) -> int:
        """Return the end offset of `text` in the file."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """Current state of a followed page. `over` is True if no further changes will follow."""

    state: str
    tails: tuple[LogTail, ...] = ()
    over: bool = False

    @property
    def digest(self) -> str:
        """Return a short hash of `state`."""
        return hashlib.sha256(self.state.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Position of a listener: hash of the last state, and number of received bytes of each log."""

    digest: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> StreamPosition:
        """Parse an event ID. For any other text, return the position before the first event."""
        digest, _, logs = text.partition(";")
        pairs = [pair.rpartition("@") for pair in logs.split(",")[:_MAX_STEPS] if pair]
        if not all(step and end.isascii() and end.isdecimal() and len(end) < 19 for step, _, end in pairs):
            return cls()
        return cls(digest, {unquote(step): int(end) for step, _, end in pairs})

    def __str__(self) -> str:
        logs = ",".join(f"{quote(step, safe='/')}@{end}" for step, end in self.offsets.items())
        return f"{self.digest};{logs}"


def events_since(position: StreamPosition, now: PageSnapshot) -> tuple[bytes, StreamPosition]:
    """Return the encoded events since a position, and the new position.

    Types of events:

    - `state`: the new state.
    - `log`: a JSON object with `step`, `text`, and `fresh`. If `fresh` is true, the text replaces the earlier text.
    - `done`: a step whose log is complete.
    - `end`: the end of the stream.
    """
    sent = []
    for name, data, after in _events(position, now):
        position = after
        lines = "".join(f"data: {line}\n" for line in _LINE_END.split(data))
        sent.append(f"event: {name}\n{lines}id: {position}\n\n")
    return "".join(sent).encode(), position


def _events(position: StreamPosition, now: PageSnapshot) -> Iterator[tuple[str, str, StreamPosition]]:
    offsets = dict(position.offsets)
    if position.digest != now.digest:
        yield "state", now.state, StreamPosition(now.digest, dict(offsets))
    for tail in now.tails:
        seen = offsets.get(tail.step, -1)
        if seen == tail.end:
            continue
        fresh = not tail.start <= seen <= tail.end
        text = tail.text if fresh else tail.text[seen - tail.start :]
        offsets[tail.step] = tail.end
        entry = {"step": tail.step, "text": escape_invisible(strip_terminal_codes(text)), "fresh": fresh}
        yield "log", json.dumps(entry), StreamPosition(now.digest, dict(offsets))
    for step in [step for step in offsets if step not in {tail.step for tail in now.tails}]:
        del offsets[step]
        yield "done", step, StreamPosition(now.digest, dict(offsets))
    if now.over:
        yield "end", "", StreamPosition(now.digest, offsets)


def read_log_tail(step: str, file: Path) -> LogTail:
    """Return the end of a log, up to the last complete line."""
    try:
        with open_log(file) as stream:
            start = max(0, stream.seek(0, 2) - _MAX_LOG)
            stream.seek(start)
            text = stream.read(_MAX_LOG)
    except OSError:
        return LogTail(step, 0, b"")
    text = text[: text.rfind(b"\n") + 1]
    if start:
        cut = text.find(b"\n") + 1
        start, text = start + cut, text[cut:]
    return LogTail(step, start, text)


_INTERVAL: Final = 0.25  # seconds between two polls
# Polling stops after this number of polls without a listener.
_IDLE_POLLS: Final = 8
_HEARTBEAT: Final = 15.0  # seconds without an event; then a comment is sent to detect dead connections
_MAX_LISTENERS: Final = 500  # maximum number of listeners
_RENEWED: Final = 2.0  # seconds between two updates of a run's displayed duration
_FIRST: Final = b"retry: 1500\n\n"

Poll = Callable[[], PageSnapshot | None]
"""Reads the files in a thread, and returns the state, or None if it has not changed since the last poll."""


class TooManySubscribersError(PipelineError):
    """Error if there are too many listeners."""


class _Follower:
    """A page that is polled while it has listeners."""

    def __init__(self, first: PageSnapshot, poll: Poll, ended: Callable[[], bool]) -> None:
        self.now = first
        self.listeners = 0
        self.closed = False
        self._poll, self._ended = poll, ended
        self._changed = asyncio.Event()

    async def follow(self) -> None:
        """Poll until the last listener has left or the state is final."""
        idle = 0
        try:
            while not self.now.over:
                await asyncio.sleep(_INTERVAL)
                idle = 0 if self.listeners else idle + 1
                if idle > _IDLE_POLLS or self._ended():
                    return
                with suppress(PipelineError, OSError):  # a file may be incomplete until the next poll
                    if (now := await asyncio.to_thread(self._poll)) is not None:
                        self._publish(now)
        finally:
            self.closed = True
            self._publish(self.now)

    def _publish(self, now: PageSnapshot) -> None:
        self.now = now
        waiting, self._changed = self._changed, asyncio.Event()
        waiting.set()

    async def listen(self, position: StreamPosition) -> AsyncIterator[bytes]:
        """Yield the events for one browser."""
        yield _FIRST
        while True:
            changed, closed = self._changed, self.closed
            sent, position = events_since(position, self.now)
            if sent:
                yield sent
            if closed or self.now.over:
                return
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    await changed.wait()
            except TimeoutError:
                yield b": still here\n\n"


class PageSubscriptions:
    """All followed pages. If `ended` returns True, every stream ends."""

    def __init__(self, ended: Callable[[], bool] = lambda: False) -> None:
        self._ended = ended
        self._known: dict[str, _Follower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners = 0
        self._joining = asyncio.Lock()

    async def join(self, name: str, make: Callable[[], Poll], position: str) -> AsyncIterator[bytes]:
        """Return a stream of the changes of a page. `make` creates the poll if nobody follows the page yet."""
        if self._listeners >= _MAX_LISTENERS:
            raise TooManySubscribersError(
                f"too many browsers follow live updates: the maximum is {_MAX_LISTENERS}",
                hint="close a browser, or reload this page for an update",
            )
        async with self._joining:  # concurrent requests share one first poll
            follower = self._known.get(name)
            if follower is None or follower.closed:
                poll = make()
                first = await asyncio.to_thread(poll)
                assert first is not None  # only later polls may return None
                follower = self._known[name] = _Follower(first, poll, self._ended)
                self._start(name, follower)
        return self._listen(follower, StreamPosition.read(position))

    def _start(self, name: str, follower: _Follower) -> None:
        task = asyncio.create_task(follower.follow())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: self._forget(name, follower))

    async def _listen(self, follower: _Follower, position: StreamPosition) -> AsyncIterator[bytes]:
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


def workspace_poll(reader: WorkspaceReader) -> Poll:
    """Return a poll for changes of any server's state, and for the start and end of runs."""
    last = ""

    def poll() -> PageSnapshot | None:
        nonlocal last
        if (now := reader.digest()) == last:
            return None
        last = now
        reader.forget()
        return PageSnapshot(now)

    return poll


class RunPoll:
    """Poll of a run.

    Each poll reads the logs of running steps. The page is rendered only if files changed or durations are outdated.
    """

    def __init__(self, reader: WorkspaceReader, page: Page, values: dict[str, str], number: str) -> None:
        self._reader, self._page, self._values, self._number = reader, page, values, number
        self._links = Links(path_of(page, values), query={"page": number} if number else {})
        self._digest = ""
        self._view: RunPage | None = None
        self._last: PageSnapshot | None = None
        self._read = 0.0

    def __call__(self) -> PageSnapshot | None:
        """Return the current state, or None if nothing has changed since the last poll."""
        workspace_digest, now = self._reader.digest(), self._last
        due = self._view is not None and self._view.going and time.monotonic() - self._read >= _RENEWED
        if now is None or self._view is None or due or workspace_digest != self._digest:
            now = self._reread()
        else:
            now = replace(now, tails=self._tails(self._view))
        same = now == self._last
        self._digest, self._last = workspace_digest, now
        return None if same else now

    def _reread(self) -> PageSnapshot:
        self._read = time.monotonic()
        try:
            self._view = view = self._page.view(self._reader, self._values, {"page": self._number})
        except NotFoundError:
            if self._last is None:
                raise
            return replace(self._last, tails=(), over=True)  # the run ended without a stage
        return PageSnapshot(render_state(view, self._links), self._tails(view), over=not view.going)

    def _tails(self, view: RunPage) -> tuple[LogTail, ...]:
        return tuple(
            read_log_tail(step.name, self._reader.log_file(step.server, step.stage))
            for step in view.steps
            if step.status.key == "running"
        )
