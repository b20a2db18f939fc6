"""Remove a server: its folder and channels. The server's history is closed and kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from mcpfactory_pipeline.base.errors import RefusedError, StateError, WorkspaceError
from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.locks import file_lock, read_run_notes
from mcpfactory_pipeline.base.text import normalize_reason
from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.channels.channel import withdraw_project
from mcpfactory_pipeline.decisions.decision import offered_project_names
from mcpfactory_pipeline.decisions.integrity import leftover_projects
from mcpfactory_pipeline.delivery.clients.config_files import UserPaths
from mcpfactory_pipeline.delivery.clients.installed_servers import installed
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

_PATIENCE: Final = 0.2  # seconds to wait for the run lock; a server that is being run is not removed
_MADE: Final = (".venv/", "__pycache__/", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/", "dist/", "build/")
_SUBMODULE: Final = "160000 "  # mode that marks a submodule in git's index


def remove(
    workspace: Workspace,
    server: str,
    home: UserPaths,
    *,
    project: Path | None = None,
    reason: str = "",
    keep_channels: bool = False,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Remove a server, or the remains of a server whose folder was deleted.

    A dry run only reports the changes. State and history are kept; the last event closes the history. Return the fields
    of `operations.removal.RemoveResult`.

    Raises:
        NotFoundError: the server never existed.
        RefusedError: a stage is running, or git could not restore some files and `force` is False.
    """
    reason = normalize_reason(reason)
    store, folder = Store(workspace, clock), workspace.root / "servers" / server
    there = workspace.has_folder(server)
    if not there and server not in store.servers():
        workspace.server(server)
    if there and not force and (lost := files_not_in_git(workspace.root, folder)):
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise RefusedError(
            f"git could not restore {', '.join(lost[:3])}{more}, because the files are not committed",
            hint=f"commit these files first, or delete the files with 'mcpfactory remove {server} --force'",
        )
    with hold_run_lock(store, server):
        entries = installed_client_entries(workspace, server, home, project)
        artifacts = (workspace.artifacts / server).is_dir() and not keep_channels
        rest = leftover_projects(workspace, store.state(server)) if not there else []
        with hide_then_delete_folder(folder) if there and not dry_run else nullcontext():
            before = close_history(
                workspace, store, server, gone="removed", reason=reason, keep_channels=keep_channels, dry_run=dry_run
            )
        offered = tuple(sorted({*before.channels, *(channel for channel, _ in rest)}))
        if not there and not offered and before.retired is not None:
            raise RefusedError(
                f"{server} was already removed",
                hint=f"find the date and the person with 'mcpfactory pipeline history {server}'",
            )
    return {
        "server": server,
        "folder": f"servers/{server}" if there else "",
        "channels": offered,
        "kept": keep_channels and bool(offered),
        "artifacts": f"pipeline/artifacts/{server}" if artifacts else "",
        "history": store.where(server, "history") if server in store.servers() else "",
        "published": tuple(describe_published(before)),
        "clients": tuple(entries),
        "dry_run": dry_run,
    }


def installed_client_entries(
    workspace: Workspace, server: str, home: UserPaths, project: Path | None
) -> Sequence[dict[str, str]]:
    """Return the entries of a server in client configurations, each with the command that removes it."""
    rows = [row for row in installed(workspace, home, project) if row.server == server]
    fields = ("client", "scope", "name", "file")
    return [{**{key: getattr(row, key) for key in fields}, "command": row.uninstall_command} for row in rows]


@contextmanager
def hide_then_delete_folder(folder: Path, problem: str = "") -> Iterator[None]:
    """Hide the folder during the block, then delete the folder.

    If the block fails or is interrupted, restore the folder.

    Raises:
        WorkspaceError: the folder cannot be moved; `problem` describes the consequence for the user.
    """
    backup = None
    try:
        backup = Path(mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
        folder.rename(backup / folder.name)
    except OSError as error:
        if backup:
            backup.rmdir()
        raise WorkspaceError(
            f"{problem or f'{folder} cannot be removed'}: {error.strerror}; nothing was changed",
            hint="make servers/ writable, and run the command again",
        ) from error
    try:
        yield
    except BaseException:
        (backup / folder.name).rename(folder)
        backup.rmdir()
        raise
    shutil.rmtree(backup)


@contextmanager
def hold_run_lock(store: Store, server: str) -> Iterator[None]:
    """Hold the run lock of a server for the block; raise `RefusedError` if a run holds the lock."""
    try:
        with file_lock(store.locks / f"{server}.run.lock", timeout=_PATIENCE):
            yield
    except StateError as error:
        holder = read_run_notes(store.locks, server)
        if not holder.get("alive"):
            raise
        stages = ", ".join(holder["stages"])
        raise RefusedError(
            f"a run of {server} is in progress (process {holder['pid']}{stages and f', running: {stages}'})",
            hint="wait until the run has finished, or stop the run",
        ) from error


def close_history(
    workspace: Workspace,
    store: Store,
    server: str,
    *,
    gone: str,
    reason: str,
    keep_channels: bool,
    dry_run: bool = False,
) -> ServerState:
    """End the history of a server under its current name, and return the previous state.

    `gone` describes the end: `removed` or `renamed to …`. If `keep_channels` is True, the channels keep their releases.
    The history ends before the channels are emptied. If a channel cannot be emptied, the inbox reports its release, and
    the user can repeat the command.
    """
    with store.transaction(server, rehearsal=dry_run) as transaction:
        before = transaction.state
        ended = before.retired is not None and "gone" in before.retired
        offers = [
            (channel, project) for channel in before.channels for project in offered_project_names(before, channel)
        ]
        offers += leftover_projects(workspace, before)
        if transaction.events and not (ended and (keep_channels or not before.channels)):
            transaction.append(
                "retired", reason=reason, gone=gone, kept=True if keep_channels and before.channels else None
            )
    if not dry_run and not keep_channels:
        for channel, project in offers:
            withdraw_project(channels_folder(workspace), channel, project)
        shutil.rmtree(workspace.artifacts / server, ignore_errors=True)
    return before


def describe_published(state: ServerState) -> list[str]:
    """Describe the server's releases on targets outside the workspace."""
    return [f"{target} has {live.version} ({live.candidate})" for target, live in sorted(state.published.items())]


def files_not_in_git(root: Path, folder: Path) -> list[str]:
    """Return the paths of files below a folder that git could not restore. Generated files are left out.

    If git is not available, return the folder itself. Git restores only the commit of a nested repository, so a nested
    repository counts as a file that git could not restore. Git does not run inside a nested repository, because the
    repository's configuration could start programs.
    """
    options = ("--porcelain=v1", "-z", "--untracked-files=normal", "--ignored=traditional", "--no-renames")
    rows, prefix = git_output(folder, "status", *options, "--", "."), git_output(root, "rev-parse", "--show-prefix")
    inside = git_output(folder, "ls-files", "--full-name", "--stage", "-z", "--", ".")
    if rows is None or prefix is None or inside is None:
        return [f"{folder.relative_to(root).as_posix()}/"]
    above = prefix.decode().strip()
    found = [row[3:] for row in rows.decode(errors="surrogateescape").split("\0") if row]
    entries = inside.decode(errors="surrogateescape").split("\0")
    found += [entry.partition("\t")[2] for entry in entries if entry.startswith(_SUBMODULE)]
    paths = dict.fromkeys(path.removeprefix(above) for path in found)
    return [path for path in paths if not path.endswith(_MADE)]
