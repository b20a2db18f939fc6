"""Comparison of a history with a Git commit: finds events that are missing now or differ.

Histories only grow. The fold of a shortened history is as consistent as any other, so we compare with commits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from mcpfactory_pipeline.base.errors import NotFoundError, StateError
from mcpfactory_pipeline.base.files import read_regular
from mcpfactory_pipeline.base.git import git_output, git_text
from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.state.history import LARGEST
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

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
    """Return the histories of a commit: server → git's name of the file's bytes."""
    commit = git_text(workspace.root, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise NotFoundError(f"there is no commit {ref}", hint="git fetch it; a shallow clone has one commit only")
    places = [f"{_HISTORIES}/{name}.jsonl" for name in names] if names else [f"{_HISTORIES}/"]
    listed = _git(workspace, ref, "ls-tree", "-z", commit, "--", *places).decode(errors="replace")
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry.endswith(".jsonl")]
    return {PurePosixPath(path).stem: about.split()[2] for about, _, path in entries}


def _git(workspace: Workspace, ref: str, *arguments: str) -> bytes:
    """Return Git's output about an existing commit; an unreadable object raises an error instead of seeming empty."""
    if (printed := git_output(workspace.root, *arguments)) is None:
        raise NotFoundError(
            f"git cannot read what {ref} has of {_HISTORIES}", hint="git fsck; git fetch it whole, without --filter"
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
    return f"{what} {event['id']} ({event.get('event')}{' ' if about else ''}{about}, {event.get('actor')}, {event.get('at')})"


def _read(store: Store, server: str) -> bytes:
    """Return the bytes of a history; empty if it cannot be read, which `verify` reports."""
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
    """Return True if the data is the content of a Git object."""
    make = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    return make(b"blob %d\0" % len(data) + data).hexdigest() == blob
