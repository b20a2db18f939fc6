"""Comparison of every state with its history, and of histories with a Git commit; repair of states and histories.

Repair rewrites states, and removes merge markers from histories. An event that cannot be read is never dropped here: it may
be a hold or a rejection. A person has to restore it. Histories only grow. The fold of a shortened history is as consistent
as any other, so we compare with commits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import NotFoundError, StateError
from mcpfactory_pipeline.base.files import read_regular, replace_file
from mcpfactory_pipeline.base.git import git_output, git_text
from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.history import CONFLICT_MARKERS, LARGEST
from mcpfactory_pipeline.state.schema import Event, misplaced
from mcpfactory_pipeline.state.state import fold, newer_schema, to_text
from mcpfactory_pipeline.state.store import Store, is_older
from mcpfactory_pipeline.workspace.workspace import Workspace, explain_broken

_HISTORIES: Final = "pipeline/history"


def events_at(
    workspace: Workspace, ref: str, names: Sequence[str] | None = None, *, blobs: Mapping[str, str] | None = None
) -> dict[str, dict[str, Event]]:
    """Return the events that a commit has of servers (of all, when none is named) whose files are other files now: server → id → event.

    `blobs` is what `head_histories` gave, where that commit is meant and many servers are asked for one after another.

    Raises:
        NotFoundError: there is no such commit.
    """
    store, found = Store(workspace), {}
    listed = _blobs(workspace, ref, names) if blobs is None else blobs
    for server, blob in listed.items():
        if names and server not in names:
            continue
        if not _is_blob(_read(store, server), blob):
            found[server] = _by_id(_git(workspace, ref, "cat-file", "blob", blob))
    return found


def brought(workspace: Workspace, ref: str) -> dict[str, list[Event]]:
    """Return the events that a commit does not have, by server, oldest first.

    Raises:
        NotFoundError: there is no such commit.
    """
    store, there, changed = Store(workspace), _blobs(workspace, ref), events_at(workspace, ref)
    found = {}
    for server in store.servers():
        if server in there and server not in changed:
            continue
        now, before = _by_id(_read(store, server)), changed.get(server, {})
        if new := [now[key] for key in sorted(now) if key not in before]:
            found[server] = new
    return found


def head_histories(workspace: Workspace, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return the histories of the commit that is checked out: server → git's name of the file's bytes; none where nothing is committed."""
    if not git_text(workspace.root, "rev-parse", "--quiet", "--verify", "HEAD"):
        return {}
    return _blobs(workspace, "HEAD", names)


def _blobs(workspace: Workspace, ref: str, names: Sequence[str] | None = None) -> dict[str, str]:
    commit = git_text(workspace.root, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise NotFoundError(f"unknown commit {ref}", hint="git fetch the commit; a shallow clone has only one commit")
    places = [f"{_HISTORIES}/{name}.jsonl" for name in names] if names else [f"{_HISTORIES}/"]
    listed = _git(workspace, ref, "ls-tree", "-z", commit, "--", *places).decode(errors="replace")
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry.endswith(".jsonl")]
    return {PurePosixPath(path).stem: about.split()[2] for about, _, path in entries}


def _git(workspace: Workspace, ref: str, *arguments: str) -> bytes:
    """Return Git's output about an existing commit; an unreadable object raises an error instead of seeming empty."""
    if (printed := git_output(workspace.root, *arguments)) is None:
        raise NotFoundError(
            f"git cannot read {_HISTORIES} at {ref}", hint="git fsck; or fetch the whole repository, without --filter"
        )
    return printed


def lost(
    workspace: Workspace, ref: str, names: Sequence[str] | None = None, *, blobs: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the servers whose histories lack events of a commit, or have others in their place, as `verify` returns differences.

    `blobs` is as in `events_at`.

    Raises:
        NotFoundError: there is no such commit.
    """
    store, found = Store(workspace), []
    for server, before in sorted(events_at(workspace, ref, names, blobs=blobs).items()):
        now = _by_id(_read(store, server))
        gone = [_told("lacks", event) for key, event in before.items() if key not in now]
        gone += [_told("has another", event) for key, event in before.items() if now.get(key, event) != event]
        if gone:
            where = store.where(server, "history")
            message = f"{where} is not what {ref} has, and more: {pluralize(len(gone), 'event')} missing or changed"
            hint = f"histories only grow: git checkout {ref} -- {where} brings them back"
            found.append({"server": server, "message": message, "hint": hint, "changes": gone})
    return found


def _told(what: str, event: Event) -> str:
    about = ", ".join(str(event[key]) for key in ("stage", "channel", "candidate") if event.get(key))
    return (
        f"{what} {event['id']} ({event.get('event')}{' ' if about else ''}{about}, {event.get('actor')}, "
        f"{event.get('at')})"
    )


def _read(store: Store, server: str) -> bytes:
    try:
        return read_regular(store.history_file(server), LARGEST)
    except OSError:
        return b""


def _by_id(data: bytes) -> dict[str, Event]:
    return {str(event["id"]): event for event in _lines(data)}


def _lines(data: bytes) -> list[Event]:
    """Return the events of a file in the order of its lines; skip invalid lines, which `verify` reports."""
    return [event for line in data.split(b"\n") if (event := _event(line)) is not None]


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
        parse_time(str(event["at"]))
    except (ValueError, TypeError, KeyError, RecursionError, StateError):
        return None
    return event if isinstance(event, dict) and isinstance(event["id"], str) else None


def _is_blob(data: bytes, blob: str) -> bool:
    make = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    return make(b"blob %d\0" % len(data) + data).hexdigest() == blob


def verify(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    head: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Derive every state from its history again and return the differences. Change nothing.

    Every event of the checked-out commit must still exist unchanged.

    Each difference is `{"server", "message", "hint", "changes"}`; `changes` are lines with the actual and the
    expected content of the state file. `names` are present or past servers of the workspace. `head` is the result of
    `head_histories`, which is called if `head` is not given.

    Raises:
        NotFoundError: the server never existed.
    """
    store, found = Store(workspace), _lost(workspace, names, head)
    known = store.servers()
    for server in names or known:
        if server not in known:
            workspace.server(server)
        if (wrong := _lasting_mismatch(store, server)) is not None:
            message, changes = str(wrong), list(_changes(store, server))
            found.append({"server": server, "message": message, "hint": wrong.hint, "changes": changes})
    return found


def mend(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Repair the differences that `verify` finds; return them with `mended`: True if the server's files now agree.

    An unrepaired difference has a `hint` for a person: files of a newer mcpfactory, events that cannot be read, files
    that cannot be written. A state is never written from a history that lacks events of a commit, because it would
    confirm their loss.
    """
    store, found = Store(workspace), _lost(workspace, names)
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


def _drop_half_line(store: Store, server: str) -> Iterator[dict[str, Any]]:
    """Take a last line away that never was whole, and say so."""
    half = store.half_written(server)
    if half is None:
        return
    try:
        with file_lock(store.locks / f"{server}.lock"):
            data = read_regular(store.history_file(server), LARGEST)
            replace_file(store.history_file(server), history.without_half_line(data))
        yield {
            "server": server,
            **half,
            "changes": [repr(data[data.rfind(b"\n") + 1 :][:60].decode(errors="replace"))],
            "mended": True,
        }
    except OSError as error:
        message = f"{store.where(server, 'history')} cannot be written: {error.strerror}"
        yield {
            "server": server,
            "message": message,
            "hint": "free space, or make the folder writable",
            "changes": [],
            "mended": False,
        }


def _lost(
    workspace: Workspace, names: Sequence[str] | None, head: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the result of `lost` for the checked-out commit, if any."""
    return lost(workspace, "HEAD", names, blobs=head_histories(workspace, names) if head is None else head)


def _lasting_mismatch(store: Store, server: str) -> StateError | None:
    """Return a mismatch that persists under the lock: a write in progress causes a harmless one."""
    if (wrong := _mismatch(store, server)) is None:
        return None
    try:
        with file_lock(store.locks / f"{server}.lock"):
            return _mismatch(store, server)
    except StateError:  # if we cannot take the lock, no other process is writing
        return wrong


def _mismatch(store: Store, server: str) -> StateError | None:
    """Return the difference between a server's state file and history as the writer's error; None if they agree."""
    where = store.where(server, "state")
    try:
        events, text = store.history(server), store.state_text(server)
        state = fold(server, events)
    except StateError as error:
        return error
    except Exception as error:  # noqa: BLE001 - one server's files can be broken in any way, and stop no other
        broken = explain_broken(server, error)
        return StateError(broken.message, hint=broken.hint)
    if wrong := next(misplaced(events), ""):
        return _no_order(store, server, wrong)
    if text is None:
        return StateError(f"{where} is missing", hint="run the pipeline to write it") if events else None
    if text == to_text(state):
        return None
    if is_older(server, text, events):
        return StateError(f"{where} is older than its history", hint="run the pipeline to update it")
    return store.contradiction(server, text, events)


def _no_order(store: Store, server: str, wrong: str) -> StateError:
    """Return the error for a history that has what no run recorded; it is not repaired, for that would be to believe it."""
    where = store.where(server, "history")
    hint = f"a run did not write that; see who did: git log -p -- {where}, and take the line back (git revert)"
    return StateError(f"{where} has a result of a stage that no run can have recorded: {wrong}", hint=hint)


def _changes(store: Store, server: str) -> Iterator[str]:
    try:
        text, wanted = store.state_text(server, broken=""), fold(server, store.history(server))
        there, derived = _facts(from_json(text or "")), _facts(wanted.to_json())
    except (ValueError, StateError):
        return
    for name in sorted(there.keys() | derived.keys()):
        if there.get(name) != derived.get(name):
            yield f"{name}: {there.get(name, 'nothing')} → {derived.get(name, 'nothing')}"


def _facts(value: Any, name: str = "") -> dict[str, str]:
    """Return nested data as one fact a line: its path, with dots between the keys, and its value as JSON."""
    if not isinstance(value, dict) or not value:
        return {name: json.dumps(value, ensure_ascii=False)}
    return {
        path: fact for key in value for path, fact in _facts(value[key], f"{name}.{key}" if name else str(key)).items()
    }


def _repair(store: Store, server: str) -> list[str]:
    with file_lock(store.locks / f"{server}.lock"):
        marks = _without_marks(store, server)
        store.snapshot_file(server).unlink(missing_ok=True)  # safe to delete: the next command writes a new one
        if not (events := store.history(server)):
            raise store.without_history(server)
        if wrong := next(misplaced(events), ""):
            raise _no_order(store, server, wrong)
        text = store.state_text(server, broken="")
        if text and newer_schema(text):
            raise StateError(
                f"{store.where(server, 'state')} was written by a newer mcpfactory", hint="update mcpfactory"
            )
        store.write_state(server, to_text(fold(server, events)))
    return marks


def _without_marks(store: Store, server: str) -> list[str]:
    file, where = store.history_file(server), store.where(server, "history")
    try:
        lines = read_regular(file, LARGEST).splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(CONFLICT_MARKERS)]
        if kept != lines:
            replace_file(file, b"".join(kept))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(
            f"{where} cannot be written: {error.strerror}", hint="free space, or make the folder writable"
        ) from error
    return [
        f"{where}, line {number}: a mark of a merge, taken out"
        for number, line in enumerate(lines, 1)
        if line not in kept
    ]
