"""What changes, sent to browsers: one poll of the files for all who follow the same thing, and no queue for anybody.

A follower knows only how things are now (`Snapshot`). A listener knows how far it has come (`Position`), and is sent what
leads from there to now: a slow one is sent less, and nothing is kept for it. The id of an event is the position
after it, so that a browser that comes back with `Last-Event-ID` goes on where it was, even at another process.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.files import open_log, plain_text

__all__ = ["Position", "Snapshot", "Tail", "events_since", "read_tail"]

_MAX_LOG: Final = 12_000  # bytes of a log that a browser is shown at first, or after it has missed more than these
_MAX_STEPS: Final = 16  # logs that one page follows
_LINE_END: Final = re.compile(r"\r\n|\r|\n")  # all of them end a line of an event stream: a lone \r would end the data


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the log of a step at work, in whole lines: `text` begins `start` bytes after the beginning of the file."""

    step: str  # server/stage/attempt
    start: int
    text: bytes

    @property
    def end(self) -> int:
        """How many bytes of the file are known."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How something is now. `state` is the part of the page that is replaced, `over` says that nothing more will come."""

    state: str
    tails: tuple[Tail, ...] = ()
    over: bool = False

    @property
    def digest(self) -> str:
        """A short name for the state."""
        return hashlib.sha256(self.state.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Position:
    """How much a listener has been sent: which state, and how many bytes of which logs."""

    digest: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Position:
        """From the id of an event; from any other text the beginning."""
        digest, _, logs = text.partition(";")
        pairs = [pair.rpartition("@") for pair in logs.split(",")[:_MAX_STEPS] if pair]
        if not all(step and end.isascii() and end.isdecimal() and len(end) < 19 for step, _, end in pairs):
            return cls()
        return cls(digest, {unquote(step): int(end) for step, _, end in pairs})

    def __str__(self) -> str:
        logs = ",".join(f"{quote(step, safe='/')}@{end}" for step, end in self.offsets.items())
        return f"{self.digest};{logs}"


def events_since(position: Position, now: Snapshot) -> tuple[bytes, Position]:
    """Return the events that lead from a position to now, as they are sent, and the position after them.

    `state` is the new state, `log` a JSON object: `step`, `text`, and `fresh` if the text replaces the earlier one; `done` names a
    step whose log is no longer followed; `end` is the last event of all.
    """
    sent = []
    for name, data, after in _events(position, now):
        position = after
        lines = "".join(f"data: {line}\n" for line in _LINE_END.split(data))
        sent.append(f"event: {name}\n{lines}id: {position}\n\n")
    return "".join(sent).encode(), position


def _events(position: Position, now: Snapshot) -> Iterator[tuple[str, str, Position]]:
    offsets = dict(position.offsets)
    if position.digest != now.digest:
        yield "state", now.state, Position(now.digest, dict(offsets))
    for tail in now.tails:
        seen = offsets.get(tail.step, -1)
        if seen == tail.end:
            continue
        fresh = not tail.start <= seen <= tail.end
        text = tail.text if fresh else tail.text[seen - tail.start :]
        offsets[tail.step] = tail.end
        entry = {"step": tail.step, "text": escape_invisible(plain_text(text)), "fresh": fresh}
        yield "log", json.dumps(entry), Position(now.digest, dict(offsets))
    for step in [step for step in offsets if step not in {tail.step for tail in now.tails}]:
        del offsets[step]
        yield "done", step, Position(now.digest, dict(offsets))
    if now.over:
        yield "end", "", Position(now.digest, offsets)


def read_tail(step: str, file: Path) -> Tail:
    """Return the end of a log, up to its last whole line; empty where there is none."""
    try:
        with open_log(file) as stream:
            start = max(0, stream.seek(0, 2) - _MAX_LOG)
            stream.seek(start)
            text = stream.read(_MAX_LOG)
    except OSError:
        return Tail(step, 0, b"")
    text = text[: text.rfind(b"\n") + 1]
    if start:
        cut = text.find(b"\n") + 1
        start, text = start + cut, text[cut:]
    return Tail(step, start, text)
