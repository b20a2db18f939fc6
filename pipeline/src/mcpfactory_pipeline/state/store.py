"""Storage of state and history. Only this module writes these files.

`Store.state` computes the state from the history. This computation is called the fold. The state file is a view of the
state for people. An untracked snapshot stores the state with the sizes, times and inodes of both files, and a checksum
of the fold's code. If a value in the snapshot is outdated, the fold is computed again.

A write has three steps:

1. Write the new state to a temporary file (fsync).
2. Append the event to the history.
3. Replace the state file with the temporary file (rename, fsync of the folder).

If the disk is full, neither state nor event is recorded. If the process is killed before the last step, the next writer
updates the state file. The next writer also replaces a state file that Git merged. A state file with a line that the
history never had is refused: a person edited the file, or the history lost an event.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import file_stamp, move_into_place, read_regular_file, write_temporary_file
from mcpfactory_pipeline.base.ids import Clock, confirmed_by, current_actor, format_time, new_id, utc_now
from mcpfactory_pipeline.base.locks import file_lock, read_run_notes
from mcpfactory_pipeline.base.text import join_lines
from mcpfactory_pipeline.reporting import notify_made_decisions
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.compaction import describe_replaced_events, find_replaceable_events
from mcpfactory_pipeline.state.event_schema import COMPACTED, RUN_DIED, STAGE_ENDS, UPGRADE, Event
from mcpfactory_pipeline.state.state import ServerState, extend, fold, repair_hint, state_from_json
from mcpfactory_pipeline.state.view import VIEW_SCHEMA, is_view_of, view_schema, view_text
from mcpfactory_pipeline.workspace.workspace import Workspace

_log: Final = logging.getLogger(__name__)

_LARGEST: Final = 1 << 26  # maximum size of a state file in bytes


@functools.cache
def _rules() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Transaction:
    """History and state of one server whose state lock is held. A rehearsal changes no file."""

    def __init__(self, store: Store, server: str, state: ServerState, *, rehearsal: bool) -> None:
        self._store, self._server, self._rehearsal = store, server, rehearsal
        self._before = state.last
        self.size = store.history_size(server)
        self.alone = True  # False if another program has changed the history meanwhile
        self.state = state
        self.appended: list[Event] = []

    @cached_property
    def events(self) -> list[Event]:
        """Return the events before the transaction, oldest first."""
        return [event for event in self._store.history(self._server) if event["id"] <= self._before]

    def append(self, kind: str, **facts: Any) -> Event:
        """Append one event with ID, time and actor, and write the new state."""
        event = self._store.make_event(self.state.last, kind, **facts)
        state = extend(self.state, [event])  # an invalid event raises an error before it is written
        if not self._rehearsal:
            text = view_text(state)
            changed = text != view_text(self.state) or not self._store.state_file(self._server).exists()
            # If the state cannot be written, the event must not be recorded either.
            with self._store.writing_state(self._server, text if changed else None):
                where = self._store.where(self._server, "history")
                start, end = history.append(self._store.history_file(self._server), [event], where)
            # Allow one more byte, because a missing newline may have been added.
            self.alone, self.size = self.alone and start <= self.size + 1, end
            self.appended.append(event)
            _log.info("%s: recorded %s", self._server, kind)
        self.state = state
        return event


class Store:
    """State and history of all servers of a workspace. Readers need no lock, because writers replace whole files.

    `recorded` has the events that this object wrote.
    """

    def __init__(self, workspace: Workspace, clock: Clock = utc_now) -> None:
        self._workspace, self.clock, self.locks = workspace, clock, workspace.pipeline / "locks"
        self.tracked = workspace.settings.state.tracked
        self._states, self._histories = workspace.pipeline / "state", workspace.pipeline / "history"
        self.recorded: dict[str, list[Event]] = {}
        self._known: dict[str, tuple[object, ServerState]] = {}

    def make_event(self, last: str, kind: str, **facts: Any) -> dict[str, Any]:
        """Return a new event with ID, time and actor. `last` is the ID of the server's newest event."""
        event = {"id": new_id(last), "at": format_time(self.clock()), "actor": current_actor(), "event": kind}
        facts = {**facts, "confirmed": confirmed_by()}
        if reason := facts.get("reason"):
            facts["reason"] = join_lines(reason)
        return event | {key: value for key, value in facts.items() if value is not None}

    def state_file(self, server: str) -> Path:
        """Return the path of a server's state file."""
        return self._states / f"{server}.json"

    def history_file(self, server: str) -> Path:
        """Return the path of a server's history."""
        return self._histories / f"{server}.jsonl"

    def history_size(self, server: str) -> int:
        """Return the size of a history in bytes."""
        stamp = file_stamp(self.history_file(server))
        return stamp[1] if stamp else 0

    def snapshot_file(self, server: str) -> Path:
        """Return the path of the snapshot of a server."""
        return self.locks / f"{server}.snapshot"

    def where(self, server: str, kind: str) -> str:
        """Return the path of a state or history relative to the workspace, for messages."""
        return f"pipeline/{kind}/{server}.{'json' if kind == 'state' else 'jsonl'}"

    def servers(self) -> list[str]:
        """Return all servers with a state or a history. Servers without a folder are included."""
        names = {file.stem for file in self._states.glob("[!.]*.json")}
        return sorted(names | {file.stem for file in self._histories.glob("[!.]*.jsonl")})

    def history(self, server: str) -> list[Event]:
        """Return all events of a server, oldest first."""
        return history.read(self.history_file(server), self.where(server, "history"))

    def half_written(self, server: str) -> dict[str, str] | None:
        """Return a message and a hint if a history ends with an incomplete line.

        The incomplete line has no effect. The next write removes the line.
        """
        file = self.history_file(server)
        if not history.half_written(file):
            return None
        with self.write_lock(server):
            half = history.half_written(file)
        if not half:
            return None
        where, command = self.where(server, "history"), f"mcpfactory pipeline verify {server} --repair"
        return {
            "message": (
                f"{where} ends in half a line of {len(half)} bytes: an interrupted write, which was never reported as "
                "done and does not count"
            ),
            "hint": f"the next write takes it away, or: {command}",
        }

    def state(self, server: str) -> ServerState:
        """Return the state of a server.

        Raises:
            StateError: a file cannot be read, or the state file was edited by hand or has no history.
        """
        return self._read(server)[0]

    def is_settled(self, server: str) -> bool:
        """Return True if a server's files are up to date, and if no run is active or has crashed."""
        state, current = self._read(server)
        return current and bool(state.last) and not read_run_notes(self.locks, server)

    def unfinished_starts(self, server: str) -> tuple[Event, ...]:
        """Return the starts of stages on this machine whose end is not in the history: running or crashed stages."""
        if not (starts := read_run_notes(self.locks, server).get("starts")):
            return ()
        ends = {end["stage"]: end["id"] for end in self.state(server).timeline if end["event"] in STAGE_ENDS}
        return tuple(start for start in starts if start["id"] > ends.get(start["stage"], ""))

    def history_and_starts(self, server: str) -> list[Event]:
        """Return all events of a server, and the starts of stages that have not ended on this machine."""
        return [*self.history(server), *self.unfinished_starts(server)]

    def crashed_stages(self, server: str) -> tuple[Event, ...]:
        """Return a `stage.interrupted` event for each stage whose process died. The next run records these events.

        Crashed runs on other machines are not found.
        """
        if read_run_notes(self.locks, server).get("alive", True):
            return ()
        starts = self.unfinished_starts(server)
        return tuple({**start, "event": "stage.interrupted", "message": RUN_DIED} for start in starts)

    def _read(self, server: str) -> tuple[ServerState, bool]:
        """Return the state of a server, and True if the state file is up to date."""
        stamps = self._stamps(server)
        if (known := self._known.get(server)) and known[0] == stamps:
            return known[1], True
        state, current = self._read_snapshot(server, stamps)
        if state is None or not current:
            state = state or fold(server, self.history(server))
            text = self.state_text(server)
            if self.tracked and text != view_text(state):
                if text is not None:
                    self.require_view(server, text)
                return state, not state.last
            self._write_snapshot(server, stamps, state)
        self._known[server] = stamps, state
        return state, True

    def _stamps(self, server: str) -> list[list[int] | None]:
        stamps = [file_stamp(self.history_file(server)), file_stamp(self.state_file(server))]
        return [stamp and list(stamp) for stamp in stamps]

    def _read_snapshot(self, server: str, stamps: list[list[int] | None]) -> tuple[ServerState | None, bool]:
        """Return the state in the snapshot, and True if the state file has not changed since.

        If the history has changed since, or if the snapshot is damaged, return None.
        """
        try:
            content: dict[str, Any] = from_json(read_regular_file(self.snapshot_file(server), _LARGEST))
            if content["stamps"][0] != stamps[0] or content["rules"] != _rules():
                return None, False
            state = state_from_json(content["state"])
            state = replace(state, timeline=tuple(content["timeline"]), last=str(content["last"]))
            return state, content["stamps"] == stamps
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None, False

    def _write_snapshot(self, server: str, stamps: object, state: ServerState) -> None:
        """Store the state. Write errors are ignored, because the snapshot is only a cache."""
        content = {
            "rules": _rules(),
            "stamps": stamps,
            "last": state.last,
            "timeline": state.timeline,
            "state": state.to_json(),
        }
        with contextlib.suppress(OSError):
            self.locks.mkdir(parents=True, exist_ok=True)
            self.snapshot_file(server).write_bytes(json.dumps(content, ensure_ascii=False).encode())

    @contextmanager
    def transaction(self, server: str, *, rehearsal: bool = False) -> Iterator[Transaction]:
        """Yield a transaction, and hold the state lock. A `rehearsal` takes no lock and writes nothing."""
        if rehearsal:
            yield Transaction(self, server, self.state(server), rehearsal=True)
            return
        with file_lock(self.locks / f"{server}.lock"):
            state, current = self._read(server)
            if not current:
                self.write_state(server, state)
            transaction = Transaction(self, server, state, rehearsal=False)
            try:
                yield transaction
            finally:
                self.recorded.setdefault(server, []).extend(transaction.appended)
            if transaction.appended:
                self._keep(server, transaction)
        notify_made_decisions(self._workspace, server, transaction.appended)

    def _keep(self, server: str, transaction: Transaction) -> None:
        """Write the snapshot after a transaction. Refuse a history that another program changed meanwhile."""
        stamps = self._stamps(server)
        if not transaction.alone or self.history_size(server) != transaction.size:
            where = self.where(server, "history")
            raise StateError(
                f"{where} does not match the written state: another program changed the file",
                hint=repair_hint(self.where(server, "state")),
            )
        self._known[server] = stamps, transaction.state
        self._write_snapshot(server, stamps, transaction.state)

    def compact(self, server: str, oldest: str, *, dry_run: bool = False) -> int:
        """Replace events before the time `oldest` that the state does not depend on. Return the number of these events.

        The new event is written before the old events are removed, so that a killed process loses nothing.
        """
        with self.transaction(server, rehearsal=dry_run) as transaction:
            replaced = find_replaceable_events(server, transaction.events, oldest)
            if replaced:
                transaction.append(COMPACTED, **describe_replaced_events(server, transaction.events, replaced))
            if transaction.appended:
                file, where = self.history_file(server), self.where(server, "history")
                history.remove(file, {str(event["id"]) for event in replaced}, where)
                transaction.size = self.history_size(server)
        return len(replaced)

    @contextmanager
    def write_lock(self, server: str) -> Iterator[None]:
        """Prevent writes during the block. If the lock cannot be taken, continue without a lock."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(StateError):
                stack.enter_context(file_lock(self.locks / f"{server}.lock"))
            yield

    def require_view(self, server: str, text: str) -> None:
        """Refuse a state file that no interrupted write or merge can have left."""
        self.require_known_schema(server, text)
        if not (events := self.history(server)):
            raise self.missing_history_error(server)
        if not is_view_of(server, text, events):
            where = self.where(server, "state")
            words = f"{where} does not match its history: a line was edited by hand, or its event was lost"
            raise StateError(words, hint=repair_hint(where))

    def require_known_schema(self, server: str, text: str) -> None:
        """Refuse a state file that a newer version of mcpfactory wrote."""
        if (schema := view_schema(text)) > VIEW_SCHEMA:
            words = f"has state schema {schema}, but this version of mcpfactory reads {VIEW_SCHEMA}"
            raise StateError(f"{self.where(server, 'state')} {words}", hint=UPGRADE)

    def state_text(self, server: str, *, broken: str | None = None) -> str | None:
        """Return the content of a server's state file, or None if it does not exist or is not tracked.

        If the file is unreadable, return `broken`. Without `broken`, raise a `StateError`.
        """
        if not self.tracked:
            return None
        try:
            return read_regular_file(self.state_file(server), _LARGEST).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            if broken is not None:
                return broken
            where = self.where(server, "state")
            why = error.strerror if isinstance(error, OSError) else error
            raise StateError(f"{where} cannot be read: {why}", hint=repair_hint(where)) from error

    def write_state(self, server: str, state: ServerState) -> None:
        """Replace the state file. The caller must hold the state lock."""
        with self.writing_state(server, view_text(state)):
            pass

    @contextmanager
    def writing_state(self, server: str, text: str | None) -> Iterator[None]:
        """Write the new state to a temporary file before the block, and replace the state file after the block.

        If `text` is None or state files are not tracked, nothing is written. The caller must hold the state lock.

        Raises:
            StateError: the disk is full, or the folder is not writable. This error is raised before the block.
        """
        if text is None or not self.tracked:
            yield
            return
        file = self.state_file(server)
        try:
            temporary = write_temporary_file(file, text.encode())
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

    def missing_history_error(self, server: str) -> StateError:
        """Return the error for a state file without a history."""
        where = self.where(server, "history")
        return StateError(
            f"{where} is missing or empty, but the state exists", hint=f"restore the file: git checkout -- {where}"
        )

    def _unwritable(self, server: str, error: OSError, after: str = "nothing was lost") -> StateError:
        return StateError(
            f"{self.where(server, 'state')} cannot be written: {error.strerror}",
            hint=f"free space, or make the folder writable; {after}",
        )
