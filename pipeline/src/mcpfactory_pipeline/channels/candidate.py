"""Build, store, publish and prune candidates.

Pruning deletes unreferenced files: old candidates, old runtimes and leftovers of killed runs. Each run and each
promotion prunes its own servers by the limits in `[artifacts]` of the workspace.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, StateError
from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.base.hashing import hash_file, list_source_files
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.factory_distributions import RUNTIME, cached_runtime_wheel
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.secret_scan import exclude_git_ignored, find_secrets_in_packages
from mcpfactory_pipeline.build.wheels import build_packages, replace_source_version, wheel_build_backend, wheel_name
from mcpfactory_pipeline.channels.channel import copy_files_into_channel, offered_hashes, read_verified_file
from mcpfactory_pipeline.plan.fingerprint import NOT_BUILT
from mcpfactory_pipeline.plan.stage import Artifact, BuiltCandidate, candidate_id
from mcpfactory_pipeline.state.state import ServerState, candidates_to_keep
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import (
    CONFIG,
    BrokenServer,
    Workspace,
    broken_server_of_error,
    isolate_server_errors,
    read_toml,
)


def build_candidate(
    source: Path, work: Path, *, backend: str = "", settings: Mapping[str, object] | None = None, version: str = ""
) -> BuiltCandidate:
    """Build the wheel and the source distribution of the server in `source`; `work` is the folder for the build.

    `backend` is the required build backend, if any. `settings` are the isolation settings of a stage or of
    `[pipeline]`. A local `version` replaces the version in the sources.

    Files that git ignores are left out.

    Raises:
        ToolRejectedInputError: the server does not build, or its packages contain secrets.
        ReleaseError: the sources do not state their version.
    """
    sources = exclude_git_ignored(source, list_source_files(source, without=NOT_BUILT))
    if "+" in version:
        path, text = replace_source_version(source, str(read_toml(source / CONFIG)["server"]["package"]), version)
        copy_files(source, sources, work / "versioned")
        source = work / "versioned"
        (source / path).write_bytes(text.encode())
    packages = build_packages(source, sources, work, backend=backend, settings=settings)
    if leaks := list(find_secrets_in_packages(packages)):
        raise ToolRejectedInputError(f"the packages contain secrets: {'; '.join(leaks[:5])}")
    files = {package.name: hash_file(package) for package in packages}
    return BuiltCandidate(candidate_id(files), work / "dist", files, wheel_build_backend(packages[0]))


def store_candidate(built: BuiltCandidate, folder: Path) -> None:
    """Copy a candidate's files into its folder, each atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in built.files.items():
        if hash_file(folder / name) != content:
            temporary = folder / f".{name}.tmp"
            shutil.copyfile(built.folder / name, temporary)
            temporary.replace(folder / name)


def find_artifact(workspace: Workspace, state: ServerState, candidate: str | None = None) -> Artifact | None:
    """Return a candidate with its local folder, by default the newest candidate; None if it is unknown."""
    name = candidate or state.candidate
    known = state.candidates.get(name or "")
    if name is None or known is None:
        return None
    return Artifact(name, known.version, workspace.artifacts / state.server / name, dict(known.files))


def channels_folder(workspace: Workspace) -> Path:
    """Return the folder of all channels."""
    return workspace.pipeline / "channels"


def verify_candidate_files(artifact: Artifact) -> None:
    """Verify the hashes of a candidate's files.

    Raises:
        StateError: a file is not on this machine, or differs from the validated file.
    """
    for name, content in artifact.files.items():
        read_verified_file(artifact.folder / name, content)


def copy_into_channel(workspace: Workspace, channel: str, artifact: Artifact, *, build: bool = True) -> None:
    """Copy a candidate's files into a channel. The runtime's wheel is included if no public index has this version.

    If `build` is False, the runtime's wheel is included only if it was already built.

    Raises:
        StateError: a file is missing or differs from the validated file, or another server has the distribution name.
    """
    offered, folder = artifact.offered, channels_folder(workspace)
    project = wheel_name(offered.name)
    refuse_taken_project_name(workspace, channel, project, artifact.folder.parent.name)
    needed = offered.name.endswith(".whl")  # adopted servers list their dependencies in their own lock
    runtime = cached_runtime_wheel(workspace.artifacts, build=False) if needed else None
    if needed and runtime is None and build:
        # Hide the build output of uv, because errors have their own message.
        with contextlib.redirect_stdout(io.StringIO()):
            runtime = cached_runtime_wheel(workspace.artifacts)
    others = {artifact.folder / name: content for name, content in artifact.files.items() if name != offered.name}
    companions = [runtime] if runtime else []
    copy_files_into_channel(folder, channel, offered, artifact.files[offered.name], companions, others=others)


NAME_HINT: Final = (
    "give the server another name in [project] of its pyproject.toml; case, -, _ and . make no difference"
)


def refuse_taken_project_name(workspace: Workspace, channel: str, project: str, server: str) -> None:
    """Raise `StateError` if a project name belongs to the runtime, or to another server in the channel."""
    if project == RUNTIME:
        raise StateError(
            f"{server} cannot use the distribution name {RUNTIME}: the name belongs to the runtime", hint=NAME_HINT
        )
    store, offered = Store(workspace), offered_hashes(channels_folder(workspace), channel, project)
    if not offered or _has_built(store, server, offered):
        return
    if owner := next((name for name in store.servers() if _has_built(store, name, offered)), ""):
        raise StateError(
            f"{server} cannot use the distribution name {project}: the name belongs to {owner}", hint=NAME_HINT
        )


def _has_built(store: Store, server: str, hashes: set[str]) -> bool:
    state = isolate_server_errors(server, partial(store.state, server))
    known = () if isinstance(state, BrokenServer) else state.candidates.values()
    return any(not hashes.isdisjoint(candidate.files.values()) for candidate in known)


# Name of a candidate's folder; other folders contain logs, reports or evidence.
_CANDIDATE: Final = re.compile(r"[0-9a-f]{16}")
_PATIENCE: Final = 0.05  # seconds to wait for the locks of a server; afterwards, the server is skipped


@dataclass(frozen=True, slots=True)
class PrunedFolder(JsonRecord):
    """Deleted folder below `pipeline/artifacts/`. `kept` is the reason for a failed deletion."""

    path: str
    bytes: int = 0
    kept: str = ""


def prune(
    workspace: Workspace, names: Sequence[str] | None = None, *, keep: int | None = None, dry_run: bool = False
) -> list[PrunedFolder]:
    """Delete the files of old candidates.

    The newest `keep` candidates stay; the default is the number in `[artifacts]`. Published candidates, and candidates
    that were ever in a channel, also stay. Servers with running stages are skipped.

    Raises:
        ConfigError: `keep` is 0.
    """
    newest = workspace.settings.artifacts.keep if keep is None else keep
    if newest == "all":
        return []
    if newest < 1:
        raise ConfigError("'keep' in [artifacts] must be 1 or more", hint="set [artifacts] keep = 1 in mcpfactory.toml")
    found: list[PrunedFolder] = []
    store = Store(workspace)
    servers, broken = workspace.load_servers(names)
    found += [
        PrunedFolder(f"{one.name}/", kept=one.message) for one in broken if (workspace.artifacts / one.name).is_dir()
    ]
    for server in servers:
        folder = workspace.artifacts / server.name
        if not folder.is_dir():
            continue
        try:
            # Take both locks, so that no stage writes a file and no decision restores a file during the deletion.
            run, state = (store.locks / f"{server.name}{kind}.lock" for kind in (".run", ""))
            with file_lock(run, timeout=_PATIENCE), file_lock(state, timeout=_PATIENCE):
                forgotten = _unreferenced(folder, candidates_to_keep(store.state(server.name), newest))
                found += [_remove(workspace, old, dry_run=dry_run) for old in forgotten]
        except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the others
            found.append(PrunedFolder(f"{server.name}/", kept=broken_server_of_error(server.name, error).message))
    if not names:
        found += _old_runtimes(workspace, dry_run=dry_run)
    return found


def prune_by_policy(workspace: Workspace, names: Sequence[str]) -> dict[str, int]:
    """Prune the named servers according to `[artifacts]`; return the deleted folders with their sizes.

    Servers with running stages or unreadable files are skipped. If `names` is empty, no candidate is pruned.
    """
    found = prune(workspace, names) if names else []
    return {entry.path: entry.bytes for entry in found if not entry.kept}


def _unreferenced(folder: Path, needed: set[str]) -> list[Path]:
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.is_dir() and _CANDIDATE.fullmatch(entry.name) and entry.name not in needed
    )


def _old_runtimes(workspace: Workspace, *, dry_run: bool) -> list[PrunedFolder]:
    wheelhouse = workspace.artifacts / ".wheelhouse"
    current = cached_runtime_wheel(workspace.artifacts, build=False)
    if current is None or not wheelhouse.is_dir():
        return []
    with file_lock(wheelhouse / ".lock"):
        old = [entry for entry in sorted(wheelhouse.iterdir()) if entry.is_dir() and entry != current.parent]
        return [_remove(workspace, entry, dry_run=dry_run) for entry in old]


def _remove(workspace: Workspace, folder: Path, *, dry_run: bool) -> PrunedFolder:
    size = sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
    path = folder.relative_to(workspace.artifacts).as_posix()
    if not dry_run:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            return PrunedFolder(path, kept=f"{error.strerror}: {error.filename}")
    return PrunedFolder(path, size)
