"""Rename a server: its folder, package and files.

The renamed package has other bytes, so it needs new checks and approvals. A channel with a hold keeps the hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcpfactory_codegen.servers.config import read_config
from mcpfactory_codegen.servers.generation import Notify, ignore_notice
from mcpfactory_codegen.servers.rename import Renaming, rename_server, write_renamed
from mcpfactory_codegen.settings import SettingsError
from mcpfactory_pipeline.base.errors import RefusedError, WorkspaceError
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.delivery.clients.config_files import UserPaths
from mcpfactory_pipeline.maintenance.remove import (
    close_history,
    describe_published,
    hide_then_delete_folder,
    hold_run_lock,
    installed_client_entries,
)
from mcpfactory_pipeline.plan.policy import describe_decision
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace


def rename(
    workspace: Workspace,
    old: str,
    new: str,
    home: UserPaths,
    *,
    project: Path | None = None,
    keep_channels: bool = False,
    dry_run: bool = False,
    clock: Clock = utc_now,
    notify: Notify = ignore_notice,
) -> dict[str, Any]:
    """Rename a server. A dry run only reports the changes.

    If a person already renamed the folder, `new` is the folder's name and `old` is the name in its configuration.
    `notify` is called before slow steps. Return the fields of `operations.removal.RenameResult`.

    Raises:
        NotFoundError: unknown server.
        CreateError: the new name is invalid.
        RefusedError: the new name is taken, the server is retired, or a stage is running.
    """
    store = Store(workspace, clock)
    if workspace.has_folder(old) and (adopted := workspace.server(old).adopted) is not None:
        raise RefusedError(
            f"{old} was adopted and cannot be renamed: other files also contain the name",
            hint=f"run 'mcpfactory adopt {adopted.origin} --name {new}', then 'mcpfactory remove {old}'",
        )
    folder = _source(workspace, old, new)
    renaming = rename_server(folder, new, notify=notify)
    _refuse_history(store, new)
    with hold_run_lock(store, old):
        state = store.state(old)
        if state.retired:
            raise RefusedError(
                f"{old} is {describe_decision('retired', state.retired)}",
                hint=f"run 'mcpfactory pipeline revive {old}' or 'mcpfactory remove {old}'",
            )
        entries = tuple(installed_client_entries(workspace, old, home, project)) if workspace.has_folder(old) else ()
        if not dry_run:
            with _moved(folder, renaming, workspace.root / "servers" / new):
                _record(workspace, store, old, new, keep_channels=keep_channels)
    return {
        "server": new,
        "previous": old,
        "path": f"servers/{new}",
        "package": renaming.new.package,
        "changed": renaming.changed,
        "mentions": tuple(asdict(mention) for mention in renaming.mentions),
        "variables": dict(renaming.variables),
        "channels": tuple(sorted(state.channels)),
        "kept": keep_channels and bool(state.channels),
        "holds": tuple(sorted(state.holds)),
        "published": tuple(describe_published(state)),
        "clients": entries,
        "dry_run": dry_run,
    }


def _source(workspace: Workspace, old: str, new: str) -> Path:
    """Return the folder to rename: `servers/OLD`, or `servers/NEW` if the folder was already moved."""
    servers = workspace.root / "servers"
    if old == new:
        raise RefusedError(f"the server already has the name {old}", hint="mcpfactory rename OLD NEW")
    if not workspace.has_folder(old):
        if workspace.has_folder(new) and _stated_name(servers / new) == old:
            return servers / new
        return workspace.server(old).folder
    if (servers / new).exists():
        raise RefusedError(
            f"servers/{new} already exists", hint=f"choose another name, or run 'mcpfactory remove {new}'"
        )
    return workspace.server(old).folder


def _stated_name(folder: Path) -> str:
    try:
        return read_config(folder).name
    except SettingsError:
        return ""


def _refuse_history(store: Store, new: str) -> None:
    state = store.state(new) if new in store.servers() else ServerState(new)
    if state != ServerState(new) and not (state.retired and "gone" in state.retired):
        raise RefusedError(
            f"the history of an earlier server {new} still exists",
            hint=f"choose another name, or run 'mcpfactory remove {new}'",
        )


@contextmanager
def _moved(folder: Path, renaming: Renaming, place: Path) -> Iterator[None]:
    """Replace the old folder with the new folder. If the block fails, restore the old folder."""
    renamed, problem = write_renamed(folder, renaming, folder.parent), f"{place} cannot be created"
    try:
        with hide_then_delete_folder(folder, problem):
            try:
                renamed.rename(place)
            except OSError as error:
                raise WorkspaceError(
                    f"{problem}: {error.strerror}", hint="make servers/ writable, and run the command again"
                ) from error
            try:
                yield
            except BaseException:
                shutil.rmtree(place)
                raise
    finally:
        shutil.rmtree(renamed, ignore_errors=True)


def _record(workspace: Workspace, store: Store, old: str, new: str, *, keep_channels: bool) -> None:
    before = close_history(workspace, store, old, gone=f"renamed to {new}", reason="", keep_channels=keep_channels)
    if not before.stages and not before.holds and not before.channels:
        return  # no stage of the server has run, so no history needs to continue
    with store.transaction(new) as transaction:
        transaction.append("renamed", previous=old, reason="")
        for channel, hold in sorted(before.holds.items()):
            if channel not in transaction.state.holds:
                why = f"{hold['reason']} (held by {hold['actor']} when it was {old})"
                transaction.append("held", channel=channel, reason=why.strip())
