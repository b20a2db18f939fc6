"""Repair of what `verify` finds: state files are written anew from history, and histories lose the marks of a merge.

An event that cannot be read is never dropped here: it may be a hold or a rejection. A person has to put it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.state.history import CONFLICT_MARKERS
from mcpfactory_pipeline.state.state import fold, newer_schema
from mcpfactory_pipeline.state.store import Store, verify
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["mend"]


def mend(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return what `verify` gives, each with `mended`: true when the files of that server now agree.

    What stays as it was has the `hint` of what a person must do: files of a newer mcpfactory, events that cannot be read,
    files that cannot be written.
    """
    store, found = Store(workspace), []
    for wrong in verify(workspace, names):
        try:
            changes = _repair(store, wrong["server"]) or wrong["changes"]
            found.append({**wrong, "changes": changes, "mended": True})
        except StateError as error:
            found.append({**wrong, "message": str(error), "hint": error.hint, "mended": False})
    return found


def _repair(store: Store, server: str) -> list[str]:
    """Repair the files of one server; return what changed where `verify` could not say it."""
    with file_lock(store.locks / f"{server}.lock"):
        marks = _without_marks(store, server)
        if not (events := store.history(server)):
            raise store.without_history(server)
        text = store.state_text(server, broken="")
        if text and newer_schema(text):
            raise StateError(
                f"{store.where(server, 'state')} was written by a newer mcpfactory", hint="update mcpfactory"
            )
        store.write_state(server, fold(server, events))
    return marks


def _without_marks(store: Store, server: str) -> list[str]:
    """Take the marks of a merge out of a history: both sides stay, and readers sort them by their ids."""
    file, where = store.history_file(server), store.where(server, "history")
    try:
        lines = file.read_bytes().splitlines(keepends=True)
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
