"""Storage of state and history: the only writer of both.

The new state is written next to the old one (temporary file, fsync), then the event is appended, then the state
replaces the old one (rename, fsync of the folder): if the disk is too full for either, neither is recorded. If the
process is killed at any point, the state file is the old or the new one. If it is killed between the last two steps,
the state file is slightly older than the history. It then equals the fold of a prefix of the history, and the next
writer updates it. A state that is not the fold of any prefix was written by another program, and is refused with a
hint.

A snapshot is a cached copy of the fold of a history: it counts while the history has the size, times and inode that it had,
and while the modules that fold are the same. It is not tracked. `mcpfactory pipeline verify` folds the history itself, and
compares.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import move_into_place, read_regular, write_temporary
from mcpfactory_pipeline.base.ids import Clock, actor, confirmed_by, format_time, new_id, utc_now
from mcpfactory_pipeline.base.locks import file_lock, read_holder
from mcpfactory_pipeline.base.text import on_one_line
from mcpfactory_pipeline.reporting import notify_decisions
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.schema import Event, StagesUnderWay
from mcpfactory_pipeline.state.state import ServerState, apply, parse, repair_hint, to_text
from mcpfactory_pipeline.workspace.workspace import Workspace

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoldedHistory:
    """A history, folded: `text` is the state as its file has it, `last` the id of the newest event, `starts` are those of stages that never ended."""

    state: ServerState
    text: str
    last: str
    starts: tuple[Event, ...]


def fold_history(server: str, events: Iterable[Event]) -> FoldedHistory:
    """Fold events, oldest first, into state, last event and open starts.

    Raises:
        StateError: an event cannot be folded.
    """
    state, under_way, last = ServerState(server), StagesUnderWay(), ""
    for event in events:
        state, last = apply(state, event), str(event["id"])
        under_way.take(event)
    return FoldedHistory(state, to_text(state), last, under_way.starts)


Stamp = tuple[int, int, int, int]


def stamp_of(file: Path) -> Stamp:
    """Return values that change with any write to a file: size, times, inode; zeros if the file is missing."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def read_snapshot(file: Path, stamp: Stamp) -> FoldedHistory | None:
    """Return the folded history with this stamp; None if the snapshot is stale, of other rules, or damaged."""
    try:
        content: dict[str, Any] = from_json(read_regular(file, _LARGEST))
        if tuple(content["stamp"]) != stamp or content["rules"] != _rules():
            return None
        text, last, starts = content["state"], content["last"], content["starts"]
        return FoldedHistory(parse(text, str(file)), text, last, tuple(starts))
    except (OSError, ValueError, KeyError, TypeError, StateError):
        return None


def write_snapshot(file: Path, stamp: Stamp, folded: FoldedHistory) -> None:
    """Write a snapshot of the history with this stamp; ignore write errors, because it is only a cache."""
    content = {
        "rules": _rules(),
        "stamp": stamp,
        "state": folded.text,
        "last": folded.last,
        "starts": list(folded.starts),
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(json.dumps(content, ensure_ascii=False).encode())


@functools.cache
def _rules() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


_LARGEST: Final = 1 << 26  # bytes of a state file


class Transaction:
    """History and state of one server while its state lock is held.

    In a rehearsal nothing is written, and everything else is as it would be.
    """

    def __init__(self, store: Store, server: str, folded: FoldedHistory, *, rehearsal: bool) -> None:
        self._store, self._server, self._rehearsal = store, server, rehearsal
        self._last, self._text, self._folded = folded.last, folded.text, folded
        self.size = store.history_size(server)
        self.alone = True  # no other program has added to the history meanwhile
        self.state = folded.state
        self.appended: list[Event] = []

    @cached_property
    def events(self) -> list[Event]:
        """Every event before the transaction, oldest first."""
        return [event for event in self._store.history(self._server) if event["id"] <= self._folded.last]

    @property
    def starts(self) -> tuple[Event, ...]:
        """Return the starts of unfinished stages, as before the transaction."""
        return self._folded.starts

    def append(self, kind: str, **facts: Any) -> Event:
        """Add one event with id, clock and actor, and write the state that follows. Facts that are None are left out; a reason is one line."""
        self._last = new_id(self._last)
        event = {"id": self._last, "at": format_time(self._store.clock()), "actor": actor(), "event": kind}
        facts = {**facts, "confirmed": confirmed_by()}
        if reason := facts.get("reason"):
            facts["reason"] = on_one_line(reason)
        event |= {key: value for key, value in facts.items() if value is not None}
        state = apply(self.state, event)  # before anything is written: an event that cannot be folded is not recorded
        if self._rehearsal:
            self.state = state
            return event
        before, self._text = self._text, to_text(state)
        changed = self._text != before or not self._store.state_file(self._server).exists()
        # What may fail comes first: where the state cannot be written, the event is not recorded either.
        with self._store.writing_state(self._server, self._text if changed else None):
            where = self._store.where(self._server, "history")
            start, end = history.append(self._store.history_file(self._server), [event], where)
        self.alone, self.size = self.alone and start <= self.size + 1, end  # 1: the end of a last line that lacked it
        self.state = state
        self.appended.append(event)
        _log.info("%s: recorded %s", self._server, kind)
        return event

    def folded(self) -> FoldedHistory:
        """Return the folded history, including the events of this transaction."""
        under_way = StagesUnderWay((*self._folded.starts, *self.appended))
        return FoldedHistory(self.state, self._text, self._last, under_way.starts)


class Store:
    """State and history of all servers of a workspace. Reading takes no lock: files are replaced whole.

    `clock` says when an event happens. `recorded` are the events that this very object wrote, by server.
    """

    def __init__(self, workspace: Workspace, clock: Clock = utc_now) -> None:
        self._workspace, self._folder, self.clock = workspace, workspace.pipeline, clock
        self.locks = workspace.pipeline / "locks"
        self.recorded: dict[str, list[Event]] = {}
        self._known: dict[str, tuple[Stamp, FoldedHistory]] = {}

    def state_file(self, server: str) -> Path:
        """Return the path of a server's state file."""
        return self._folder / "state" / f"{server}.json"

    def history_file(self, server: str) -> Path:
        """Return the path of a server's history."""
        return self._folder / "history" / f"{server}.jsonl"

    def history_size(self, server: str) -> int:
        """Return the bytes of a history."""
        return stamp_of(self.history_file(server))[0]

    def snapshot_file(self, server: str) -> Path:
        """Return the path of a snapshot of a server's folded history."""
        return self.locks / f"{server}.snapshot"

    def where(self, server: str, kind: str) -> str:
        """Return the path that messages name: relative to the workspace."""
        return f"pipeline/{kind}/{server}.{'json' if kind == 'state' else 'jsonl'}"

    def servers(self) -> list[str]:
        """Every server that has a state or a history, whether its folder still exists or not."""
        names = {file.stem for file in (self._folder / "state").glob("[!.]*.json")}
        return sorted(names | {file.stem for file in (self._folder / "history").glob("[!.]*.jsonl")})

    def history(self, server: str) -> list[Event]:
        """Every event of a server, oldest first."""
        return history.read(self.history_file(server), self.where(server, "history"))

    def half_written(self, server: str) -> dict[str, str] | None:
        """Return message and hint if the history of a server ends in an incomplete line, else None.

        This does not affect the server's state: the line was never acknowledged, and the next write removes it.
        """
        if not history.half_written(self.history_file(server)):
            return None
        try:
            with file_lock(self.locks / f"{server}.lock"):  # a write in progress has ended once we hold the lock
                size = history.half_written(self.history_file(server))
        except StateError:  # if we cannot take the lock, no other process is writing
            size = history.half_written(self.history_file(server))
        if not size:
            return None
        where, command = self.where(server, "history"), f"mcpfactory pipeline verify {server} --repair"
        return {
            "message": (
                f"{where} ends in half a line of {size} bytes: a write broke off, nobody was told of it, and it "
                "does not count"
            ),
            "hint": f"the next write takes it away, or: {command}",
        }

    def state(self, server: str) -> ServerState:
        """Return the state from a server's history. Refuse a state file that contradicts it.

        Raises:
            StateError: the state file is invalid, was edited by hand, or has no history.
        """
        folded, text = self.folded(server), self.state_text(server)
        # Where a run is under way, or broke off, history knows better.
        if text not in {None, folded.text} and not read_holder(self.locks, server):
            self._require_older(server, text or "")
        return folded.state

    def settled(self, server: str) -> ServerState | None:
        """Return the state of a server with consistent files, without a running or crashed run; otherwise None."""
        if read_holder(self.locks, server):
            return None
        try:
            folded = self.folded(server)
            agree = bool(folded.last) and self.state_text(server) == folded.text
        except StateError:
            return None
        return folded.state if agree and not folded.starts else None

    def folded(self, server: str) -> FoldedHistory:
        """Return the folded history of a server, regardless of the state file; reuse an unchanged one."""
        file, stamp = self.snapshot_file(server), stamp_of(self.history_file(server))
        known = self._known.get(server)
        if known is not None and known[0] == stamp:
            return known[1]
        found = read_snapshot(file, stamp)
        if found is None:
            found = fold_history(server, self.history(server))
            if found.last:
                write_snapshot(file, stamp, found)
        self._known[server] = (stamp, found)
        return found

    @contextmanager
    def transaction(self, server: str, *, rehearsal: bool = False) -> Iterator[Transaction]:
        """Hold the state lock; what is read in the block is what the appended events build on.

        A `rehearsal` takes no lock and writes nothing.
        """
        if rehearsal:
            yield Transaction(self, server, self.folded(server), rehearsal=True)
            return
        with file_lock(self.locks / f"{server}.lock"):
            folded, text = self.folded(server), self.state_text(server)
            if text != folded.text and not (text is None and not folded.last):
                if text is not None:
                    self._require_older(server, text)
                self.write_state(server, folded.text)
            transaction = Transaction(self, server, folded, rehearsal=False)
            try:
                yield transaction
            finally:
                self.recorded.setdefault(server, []).extend(transaction.appended)
            self._keep(server, transaction)
        notify_decisions(self._workspace, server, transaction.appended)

    def _keep(self, server: str, transaction: Transaction) -> None:
        """Keep what a transaction came to. Raise `StateError` if another program changed the history meanwhile: no command reports success then."""
        stamp = stamp_of(self.history_file(server))
        if transaction.appended and not (transaction.alone and stamp[0] == transaction.size):
            where = self.where(server, "history")
            raise StateError(
                f"{where} does not match the state that was written: another program changed it meanwhile",
                hint=repair_hint(self.where(server, "state")),
            )
        if transaction.appended:
            self._known[server] = (stamp, folded := transaction.folded())
            write_snapshot(self.snapshot_file(server), stamp, folded)

    def _require_older(self, server: str, text: str) -> None:
        """Raise `StateError` unless a state file is that of an earlier history: a write that did not come to its end."""
        events = self.history(server)
        if not events or not is_older(server, text, events):
            raise self.contradiction(server, text, events)

    def contradiction(self, server: str, text: str, events: Sequence[Event]) -> StateError:
        """Return the error for a state file that is not the state after any beginning of the history."""
        if not events:
            return self.without_history(server)
        where = self.where(server, "state")
        try:
            parse(
                text, where
            )  # the parser's error is better: it reports a merge conflict, another schema version or damage
        except StateError as error:
            return error
        return StateError(
            f"{where} does not match its history: it was edited by hand, or merged wrongly", hint=repair_hint(where)
        )

    def state_text(self, server: str, *, broken: str | None = None) -> str | None:
        """Return the content of a server's state file, None if it does not exist.

        If it cannot be read, return `broken`; without `broken`, raise a `StateError`.
        """
        try:
            return read_regular(self.state_file(server), _LARGEST).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            if broken is not None:
                return broken
            where = self.where(server, "state")
            why = error.strerror if isinstance(error, OSError) else error
            raise StateError(f"{where} cannot be read: {why}", hint=repair_hint(where)) from error

    def write_state(self, server: str, text: str) -> None:
        """Replace the state file; the caller holds the state lock."""
        with self.writing_state(server, text):
            pass

    @contextmanager
    def writing_state(self, server: str, text: str | None) -> Iterator[None]:
        """Write the new state file before the block, and move it into place after it; None: write nothing.

        The caller holds the state lock.

        Raises:
            StateError: before the block, if disk space or write permission is missing.
        """
        if text is None:
            yield
            return
        file = self.state_file(server)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = write_temporary(file, text.encode())
        except OSError as error:
            raise self._unwritable(server, error) from error
        try:
            yield
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        try:
            move_into_place(temporary, file)
        except OSError as error:
            raise self._unwritable(
                server, error, "the event is in the history, and the next run updates the state"
            ) from error

    def without_history(self, server: str) -> StateError:
        """Return the error for a state that is there although its history is not: nothing could be derived from that."""
        where = self.where(server, "history")
        return StateError(
            f"{where} is missing or empty, but the state exists", hint=f"restore it: git checkout -- {where}"
        )

    def _unwritable(self, server: str, error: OSError, after: str = "nothing was lost") -> StateError:
        return StateError(
            f"{self.where(server, 'state')} cannot be written: {error.strerror}",
            hint=f"free space, or make the folder writable; {after}",
        )


def is_older(server: str, text: str, events: list[Event]) -> bool:
    """Return True if the text is the state after a prefix of the history: an interrupted write."""
    state = ServerState(server)
    if text == to_text(state):
        return True
    for event in events:
        state = apply(state, event)
        if text == to_text(state):
            return True
    return False
