"""Verification, repair and compaction of states and histories.

A repair rewrites states, and removes conflict markers from histories. Unreadable events are never removed, because an
unreadable event may be a hold or a rejection. A history without its last events is still valid. Only a comparison with
a Git commit reveals lost events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import NotFoundError, RefusedError, StateError
from mcpfactory_pipeline.base.files import read_regular_file, replace_file
from mcpfactory_pipeline.base.git import git_output, git_text
from mcpfactory_pipeline.base.ids import format_time, parse_time, utc_now
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.compaction import is_compacted
from mcpfactory_pipeline.state.event_schema import Event, describe_invalid_order
from mcpfactory_pipeline.state.history import CONFLICT_MARKERS, MAX_HISTORY_BYTES
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.view import view_text
from mcpfactory_pipeline.workspace.workspace import BrokenServer, Workspace, isolate_server_errors

_HISTORIES: Final = "pipeline/history"
_UNWRITABLE: Final = "free space, or make the folder writable"
Difference = dict[str, Any]


def make_difference(server: str, message: str, hint: str, changes: Iterable[str] = (), **more: Any) -> Difference:
    """Return a difference as JSON-compatible data."""
    return {"server": server, "message": message, "hint": hint, "changes": list(changes), **more}


def events_added_since(workspace: Workspace, ref: str) -> dict[str, list[Event]]:
    """Return the events that a commit lacks, by server, oldest first."""
    store, blobs = Store(workspace), _blobs(workspace, ref)
    changed, found = _changed(workspace, ref, blobs), {}
    for server in store.servers():
        if server not in blobs or server in changed:
            now, before = _by_id(_read(store, server)), changed.get(server, {})
            if new := [now[key] for key in sorted(now) if key not in before]:
                found[server] = new
    return found


def histories_missing_events(
    workspace: Workspace, ref: str, names: Sequence[str] | None = None, *, blobs: Mapping[str, str] | None = None
) -> list[Difference]:
    """Return the servers whose histories lack events of a commit, or contain changed events.

    For checks of many servers with HEAD, pass the result of `head_history_blobs` as `blobs`.
    """
    store, found = Store(workspace), []
    listed = _blobs(workspace, ref, names) if blobs is None else blobs
    wanted = {server: blob for server, blob in listed.items() if not names or server in names}
    for server, before in sorted(_changed(workspace, ref, wanted).items()):
        now = _by_id(_read(store, server))
        gone = [_describe("has another", event) for key, event in before.items() if now.get(key, event) != event]
        if not is_compacted(server, before, now):
            gone += [_describe("lacks", event) for key, event in before.items() if key not in now]
        if gone:
            where = store.where(server, "history")
            message = f"{where} is not what {ref} has, and more: {pluralize(len(gone), 'event')} missing or changed"
            hint = f"histories only grow: git checkout {ref} -- {where} brings them back"
            found.append(make_difference(server, message, hint, gone))
    return found


def head_history_blobs(workspace: Workspace, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return the blob IDs of the histories in the checked-out commit, by server."""
    if not git_text(workspace.root, "rev-parse", "--quiet", "--verify", "HEAD"):
        return {}
    return _blobs(workspace, "HEAD", names)


def _blobs(workspace: Workspace, ref: str, names: Sequence[str] | None = None) -> dict[str, str]:
    commit = git_text(workspace.root, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise NotFoundError(
            f"unknown commit {ref}", hint="fetch the commit with 'git fetch'; for a shallow clone, add --unshallow"
        )
    places = [f"{_HISTORIES}/{name}.jsonl" for name in names] if names else [f"{_HISTORIES}/"]
    listed = _git(workspace, ref, "ls-tree", "-z", commit, "--", *places).decode(errors="replace")
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry.endswith(".jsonl")]
    return {PurePosixPath(path).stem: about.split()[2] for about, _, path in entries}


def _changed(workspace: Workspace, ref: str, blobs: Mapping[str, str]) -> dict[str, dict[str, Event]]:
    """Return the committed events of servers whose history has changed since the commit."""
    store, found = Store(workspace), {}
    for server, blob in blobs.items():
        data = _read(store, server)
        make = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
        if make(b"blob %d\0" % len(data) + data).hexdigest() != blob:
            found[server] = _by_id(_git(workspace, ref, "cat-file", "blob", blob))
    return found


def _git(workspace: Workspace, ref: str, *arguments: str) -> bytes:
    if (printed := git_output(workspace.root, *arguments)) is None:
        raise NotFoundError(
            f"git cannot read {_HISTORIES} at {ref}",
            hint="run 'git fsck', or fetch the whole repository without --filter",
        )
    return printed


def _describe(what: str, event: Event) -> str:
    about = ", ".join(str(event[key]) for key in ("stage", "channel", "candidate") if event.get(key))
    return (
        f"{what} {event['id']} ({event.get('event')}{' ' if about else ''}{about}, {event.get('actor')}, "
        f"{event.get('at')})"
    )


def _read(store: Store, server: str) -> bytes:
    try:
        return read_regular_file(store.history_file(server), MAX_HISTORY_BYTES)
    except OSError:
        return b""


def _by_id(data: bytes) -> dict[str, Event]:
    """Return the events of a history by ID, without invalid lines."""
    return {str(event["id"]): event for line in data.split(b"\n") if (event := _event(line)) is not None}


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
        parse_time(str(event["at"]))
    except (ValueError, TypeError, KeyError, RecursionError, StateError):
        return None
    return event if isinstance(event, dict) and isinstance(event["id"], str) else None


def verify(
    workspace: Workspace, names: Sequence[str] | None = None, *, head: Mapping[str, str] | None = None
) -> list[Difference]:
    """Compare all state files with their histories, and return edited and damaged files. No file is written.

    Outdated state files are not differences (`refresh_views`). Missing and changed events of the checked-out commit are
    differences. `names` may include past servers. For checks of many servers, pass the result of `head_history_blobs`
    as `head`.
    """
    store, found = Store(workspace), _missing(workspace, names, head)
    known = store.servers()
    for server in names or known:
        if server not in known:
            workspace.server(server)
        if _mismatch(store, server) is not None:  # another process may be writing, so check again with the lock
            with store.write_lock(server):
                if (wrong := _mismatch(store, server)) is not None:
                    found.append(make_difference(server, wrong.message, wrong.hint, _changes(store, server)))
    return found


def repair(workspace: Workspace, names: Sequence[str] | None = None) -> list[Difference]:
    """Repair the differences that `verify` finds, and return these differences.

    `mended` is True if the repair succeeded.

    If a history lacks committed events, the state is not rewritten, because a new state would hide the loss.
    """
    store, found = Store(workspace), _missing(workspace, names)
    shortened = {wrong["server"] for wrong in found}
    found = [{**wrong, "mended": False} for wrong in found]
    for wrong in verify(workspace, names):
        if wrong["server"] in shortened:
            continue
        try:
            changes = _repair(store, wrong["server"]) or wrong["changes"]
            found.append({**wrong, "changes": changes, "mended": True})
        except StateError as error:
            found.append({**wrong, "message": str(error), "hint": error.hint, "mended": False})
    kept = {wrong["server"] for wrong in found if not wrong["mended"]}
    return [
        *found,
        *(made for server in names or store.servers() if server not in kept for made in _drop_half_line(store, server)),
    ]


def _drop_half_line(store: Store, server: str) -> Iterator[Difference]:
    if (half := store.half_written(server)) is None:
        return
    try:
        with file_lock(store.locks / f"{server}.lock"):
            line = history.half_written(store.history_file(server), remove=True)
        yield make_difference(server, **half, changes=[repr(line[:60].decode(errors="replace"))], mended=True)
    except OSError as error:
        message = f"{store.where(server, 'history')} cannot be written: {error.strerror}"
        yield make_difference(server, message, _UNWRITABLE, mended=False)


def _missing(
    workspace: Workspace, names: Sequence[str] | None, head: Mapping[str, str] | None = None
) -> list[Difference]:
    return histories_missing_events(
        workspace, "HEAD", names, blobs=head_history_blobs(workspace, names) if head is None else head
    )


def _mismatch(store: Store, server: str) -> BrokenServer | None:
    return isolate_server_errors(server, partial(_compare, store, server))


def _compare(store: Store, server: str) -> None:
    text, events = store.state_text(server), store.history(server)
    state = fold(server, events)
    _require_order(store, server, events)
    if text is not None and text != view_text(state):
        store.require_view(server, text)


def refresh_views(workspace: Workspace, names: Sequence[str] | None = None) -> list[Difference]:
    """Rewrite the state files that a merge or an interrupted write left behind. Return a note for each file."""
    store = Store(workspace)
    if not store.tracked:
        return []
    servers = store.servers() if names is None else names
    notes = (isolate_server_errors(server, partial(_refresh_view, store, server)) for server in servers)
    return [note for note in notes if isinstance(note, dict)]


def _refresh_view(store: Store, server: str) -> Difference | None:
    with file_lock(store.locks / f"{server}.lock"):
        _compare(store, server)
        state, text = fold(server, store.history(server)), store.state_text(server)
        if not state.last or text == view_text(state):
            return None
        changes = list(_changes(store, server))
        store.write_state(server, state)
    message = f"{store.where(server, 'state')} lacked facts of its history, as after a merge, and was written again"
    return make_difference(server, message, "commit the file with your next change", changes, level="warning")


def _require_order(store: Store, server: str, events: Iterable[Event]) -> None:
    """Refuse a history that no run can have recorded. Without this check, a repair would accept such a history."""
    if wrong := next(describe_invalid_order(events), ""):
        where = store.where(server, "history")
        raise StateError(
            f"{where} contains an impossible stage result: {wrong}",
            hint=f"find the author of the line with 'git log -p -- {where}', then remove the line with 'git revert'",
        )


def _changes(store: Store, server: str) -> Iterator[str]:
    try:
        text, wanted = store.state_text(server, broken=""), view_text(fold(server, store.history(server)))
        there, derived = _facts(from_json(text or "")), _facts(from_json(wanted))
    except (ValueError, StateError):
        return
    for name in sorted(there.keys() | derived.keys()):
        if there.get(name) != derived.get(name):
            yield f"{name}: {there.get(name, 'nothing')} → {derived.get(name, 'nothing')}"


def _facts(value: Any, name: str = "") -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        return {name: json.dumps(value, ensure_ascii=False)}
    return {
        path: fact for key in value for path, fact in _facts(value[key], f"{name}.{key}" if name else str(key)).items()
    }


def _repair(store: Store, server: str) -> list[str]:
    with file_lock(store.locks / f"{server}.lock"):
        markers = _remove_markers(store, server)
        # the next command writes a new snapshot
        store.snapshot_file(server).unlink(missing_ok=True)
        if not (events := store.history(server)):
            raise store.missing_history_error(server)
        _require_order(store, server, events)
        store.require_known_schema(server, store.state_text(server, broken="") or "")
        store.write_state(server, fold(server, events))
    return markers


def _remove_markers(store: Store, server: str) -> list[str]:
    file, where = store.history_file(server), store.where(server, "history")
    try:
        lines = read_regular_file(file, MAX_HISTORY_BYTES).splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(CONFLICT_MARKERS)]
        if kept != lines:
            replace_file(file, b"".join(kept))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(f"{where} cannot be written: {error.strerror}", hint=_UNWRITABLE) from error
    return [
        f"{where}, line {number}: removed a merge conflict marker"
        for number, line in enumerate(lines, 1)
        if line not in kept
    ]


def compact_histories(
    workspace: Workspace, names: Sequence[str], *, days: int, dry_run: bool = False
) -> tuple[dict[str, int], list[BrokenServer]]:
    """Compact histories, by default of all servers (`Store.compact`).

    Return the number of replaced events by server, and the servers whose history is unreadable or differs from the
    checked-out commit. Events of the last `days` days stay, because other branches may need them.
    """
    store, oldest = Store(workspace), format_time(utc_now() - timedelta(days=days))
    blobs = head_history_blobs(workspace)
    changed = _changed(workspace, "HEAD", blobs)

    def compact(server: str) -> int:
        count = store.compact(server, oldest, dry_run=True)
        if count and (server not in blobs or server in changed):
            raise RefusedError(
                f"{store.where(server, 'history')} has uncommitted changes, but only commits keep replaced events",
                hint="commit pipeline/, then repeat the command",
            )
        return count if dry_run else store.compact(server, oldest)

    known = [workspace.server(name).name for name in names] or store.servers()
    found = {server: isolate_server_errors(server, partial(compact, server)) for server in known}
    broken = [one for one in found.values() if isinstance(one, BrokenServer)]
    return {server: one for server, one in found.items() if isinstance(one, int) and one}, broken
