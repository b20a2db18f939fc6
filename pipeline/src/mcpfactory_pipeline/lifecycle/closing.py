"""The end of a server's history under a name: one event that says why, and channels that offer it no longer, unless they shall."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import RefusedError, StateError
from mcpfactory_pipeline.base.locks import file_lock, read_holder
from mcpfactory_pipeline.channels.artifacts import channels_folder
from mcpfactory_pipeline.channels.channel import withdraw
from mcpfactory_pipeline.promotion.decision import projects_of
from mcpfactory_pipeline.promotion.gone import leftover_projects
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["close_history", "describe_published", "exclusive_access", "uncommitted"]

_PATIENCE: Final = 0.2  # seconds to wait for a run lock: a server that is worked on is left alone
_MADE: Final = (".venv/", "__pycache__/", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/", "dist/", "build/")


@contextmanager
def exclusive_access(store: Store, server: str) -> Iterator[None]:
    """Keep runs away from a server for the block. Raises `RefusedError` while one is at it."""
    try:
        with file_lock(store.locks / f"{server}.run.lock", timeout=_PATIENCE):
            yield
    except StateError as error:
        holder = read_holder(store.locks, server)
        if not holder.get("alive"):
            raise
        raise RefusedError(
            f"stage {holder.get('stage')} of {server} is running (process {holder.get('pid')})",
            hint="wait until it has ended, or end it",
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
    """End the history of a server under this name, if it has one; return the state before.

    `gone` says how it ended: `removed`, or `renamed to …`. With `keep_channels` what channels offer stays, on purpose.
    """
    with store.transaction(server, rehearsal=dry_run) as transaction:
        before = transaction.state
        ended = before.retired is not None and "gone" in before.retired
        if not dry_run and not keep_channels:
            for channel in before.channels:
                for project in projects_of(before, channel):
                    withdraw(channels_folder(workspace), channel, project)
            for channel, project in leftover_projects(workspace, before):
                withdraw(channels_folder(workspace), channel, project)
        if transaction.events and not (ended and (keep_channels or not before.channels)):
            transaction.append(
                "retired", reason=reason, gone=gone, kept=True if keep_channels and before.channels else None
            )
    if not dry_run and not keep_channels:
        shutil.rmtree(workspace.artifacts / server, ignore_errors=True)
    return before


def describe_published(state: ServerState) -> list[str]:
    """Return what targets outside the workspace have of a server, in words: nobody but a person can take that back."""
    return [f"{target} has {live.version} ({live.candidate})" for target, live in sorted(state.published.items())]


def uncommitted(root: Path, folder: Path) -> list[str]:
    """Files below a folder that git could not bring back, by path below `root`; what is made anew is none.

    Without git, or outside of a repository, that is the folder itself.
    """
    words = [
        "git",
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=normal",
        "--ignored=traditional",
        "--no-renames",
        "--",
    ]
    everything = [f"{folder.relative_to(root).as_posix()}/"]
    try:
        done = subprocess.run([*words, "."], cwd=folder, capture_output=True, text=True, check=False)
        prefix = subprocess.run(
            ["git", "rev-parse", "--show-prefix"], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return everything
    if done.returncode != 0 or prefix.returncode != 0:
        return everything
    paths = [row[3:].removeprefix(prefix.stdout.strip()) for row in done.stdout.split("\0") if row]
    return [path for path in paths if not path.endswith(_MADE)]
