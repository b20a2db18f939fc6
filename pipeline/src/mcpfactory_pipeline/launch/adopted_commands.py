from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption.candidate import build_adopted_candidate, ensure_candidate_installed
from mcpfactory_pipeline.adoption.sources import AdoptionSources
from mcpfactory_pipeline.base.errors import ServerError, StateError
from mcpfactory_pipeline.base.hashing import hash_file, hash_files, hash_named_texts, list_source_files
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.adopted import adopted_files
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

# Number of source folders to keep, including the current folder. Running servers may use earlier folders.
_KEPT: Final = 2


def adopted_source_command(server: WorkspaceServer) -> list[str]:
    """Return the command that starts an adopted server from its files. New files are installed before the return."""
    adopted, root = server.adopted, server.folder.parents[1]
    assert adopted is not None  # callers have checked that the server is adopted
    if adopted.url:
        raise _not_started(server.name, adopted.url)
    own = adopted.folder(root)
    state = {
        "beside": hash_files(server.folder, list_source_files(server.folder, without=("tests",))),
        "own": hash_files(own, adopted_files(adopted, root)) if own else "none",
    }
    house = root / "pipeline" / "artifacts" / server.name / "source"
    place = house / hash_named_texts(state).removeprefix("sha256:")[:16]
    files = place / "files"
    try:
        if not files.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".building-", dir=house) as work:
                sources = AdoptionSources(server.name, adopted, server.folder, root, Path(work), log=False)
                built = build_adopted_candidate(sources, server.config.server.environment)
                built.folder.rename(files)
            _remove_older(house, place)
        hashes = {file.name: hash_file(file) for file in sorted(files.iterdir())}
        ready = ensure_candidate_installed(files, hashes, place / "ready", log=False, verify=False)
    except (ToolRejectedInputError, StateError) as error:
        raise ServerError(
            f"{server.name} cannot be prepared: {error}",
            hint=f"print the full error with 'mcpfactory pipeline run {server.name}'",
        ) from error
    return list(ready.command)


def adopted_channel_command(workspace: Workspace, server: WorkspaceServer, channel: str) -> list[str]:
    """Return the command that starts the checked files of an adopted server's release in a channel."""
    state = Store(workspace).state(server.name)
    release = state.channels.get(channel)
    if release is None:
        raise StateError(
            f"channel {channel} does not offer {server.name}",
            hint=f"use a channel that offers the server: {', '.join(sorted(state.channels)) or 'none'}",
        )
    known, folder = state.candidates[release.candidate], workspace.artifacts / server.name / release.candidate
    try:
        ready = ensure_candidate_installed(folder, dict(known.files), folder / "run", log=False, verify=False)
    except ToolRejectedInputError as error:
        raise ServerError(
            f"{server.name} {release.version} cannot be prepared: {error}",
            hint=f"mcpfactory pipeline restore {server.name}",
        ) from error
    if ready.record.url:
        raise _not_started(server.name, ready.record.url)
    return list(ready.command)


def _not_started(name: str, url: str) -> ServerError:
    return ServerError(
        f"{name} runs at {url}: it cannot be started here", hint=f"mcpfactory install {name} --client CLIENT"
    )


def _remove_older(house: Path, place: Path) -> None:
    others = [one for one in house.iterdir() if one.is_dir() and not one.name.startswith(".") and one != place]
    for old in sorted(others, key=lambda one: one.stat().st_mtime)[: -(_KEPT - 1) or None]:
        shutil.rmtree(old, ignore_errors=True)
