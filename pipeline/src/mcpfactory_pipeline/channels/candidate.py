"""Candidates: the packages of some sources, identified by the hash of their bytes; built, stored on this machine, published into a channel."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.adoption.candidate import build_adopted
from mcpfactory_pipeline.adoption.sources import Sources
from mcpfactory_pipeline.base.hashing import hash_file, hash_record, source_files
from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.build.leaks import find_leaks, without_ignored
from mcpfactory_pipeline.build.pep517 import copy_files
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.build.wheels import backend_of, build_packages, wheel_name, with_version
from mcpfactory_pipeline.channels.channel import publish_files, read_verified, refuse_foreign_project
from mcpfactory_pipeline.plan.fingerprint import NOT_BUILT
from mcpfactory_pipeline.plan.stage import Artifact
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, read_toml


@dataclass(frozen=True, slots=True)
class BuiltCandidate:
    """Built packages in a working directory, and the resulting candidate; `backend` is the program that built them.

    For an adopted server it also has the version and the facts specific to its kind.
    """

    id: str
    folder: Path
    files: Mapping[str, str]
    backend: str = ""
    version: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def build_candidate(
    source: Path,
    work: Path,
    *,
    backend: str = "",
    settings: Mapping[str, object] | None = None,
    version: str = "",
) -> BuiltCandidate:
    """Build wheel and source distribution of the server in `source` in the folder `work`, by a certain `backend` if one is named.

    `settings` say how the backend is kept apart: those of a stage, or of `[pipeline]`. A local `version` takes the
    place of the one that the sources state.

    Files that git ignores are not built: they are of this machine alone.

    Raises:
        ProgramRefusedError: the server does not build, or its packages hold secrets.
        StageError: the build cannot be run.
        ReleaseError: the sources do not state their version.
    """
    sources = without_ignored(source, source_files(source, without=NOT_BUILT))
    if "+" in version:
        path, text = with_version(source, str(read_toml(source / CONFIG)["server"]["package"]), version)
        copy_files(source, sources, work / "versioned")
        source = work / "versioned"
        (source / path).write_bytes(text.encode())
    packages = build_packages(source, sources, work, backend=backend, settings=settings)
    if leaks := list(find_leaks(packages)):
        raise ProgramRefusedError(f"its packages would publish secrets: {'; '.join(leaks[:5])}")
    files = {package.name: hash_file(package) for package in packages}
    return BuiltCandidate(_id(files), work / "dist", files, backend_of(packages[0]))


def build_adopted_candidate(sources: Sources, config: Mapping[str, Any]) -> BuiltCandidate:
    """Gather what an adopted server runs from, as `build_adopted` does; `config` is its `mcpfactory.toml`."""
    made = build_adopted(sources, config)
    return BuiltCandidate(_id(made.files), made.folder, made.files, version=made.version, facts=made.facts)


def _id(files: Mapping[str, str]) -> str:
    return hash_record(dict(files)).removeprefix("sha256:")[:16]


def store_candidate(built: BuiltCandidate, folder: Path) -> None:
    """Copy a candidate's files into its folder, each whole or not at all; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in built.files.items():
        if hash_file(folder / name) != content:
            temporary = folder / f".{name}.tmp"
            shutil.copyfile(built.folder / name, temporary)
            temporary.replace(folder / name)


def artifact_of(workspace: Workspace, state: ServerState, candidate: str | None = None) -> Artifact | None:
    """Return a candidate (by default the newest) with its local folder, or None if not found."""
    name = candidate or state.candidate
    known = state.candidates.get(name or "")
    if name is None or known is None:
        return None
    return Artifact(name, known.version, workspace.artifacts / state.server / name, dict(known.files))


def channels_folder(workspace: Workspace) -> Path:
    """Return the folder of the channels."""
    return workspace.pipeline / "channels"


def verify_files(artifact: Artifact) -> None:
    """Verify the hashes of a candidate's files.

    Raises:
        StateError: a file is not on this machine, or differs from the validated one.
    """
    for name, content in artifact.files.items():
        read_verified(artifact.folder / name, content)


def publish_candidate(workspace: Workspace, channel: str, artifact: Artifact, *, build: bool = True) -> None:
    """Copy a candidate's files into a channel, with the runtime's wheel if no public index has that version.

    Without `build`, the runtime's wheel is included only if it was built before.

    Raises:
        StateError: the files are not on this machine, differ from the validated ones, or the distribution name
            belongs to another server; the channel is then unchanged.
    """
    offered, folder = artifact.offered, channels_folder(workspace)
    project = wheel_name(offered.name)
    page = folder / channel / "simple" / project / "index.html"
    refuse_foreign_project(page, project, artifact.folder.parent.name, workspace.pipeline / "state")
    needed = offered.name.endswith(".whl")  # adopted servers have dependencies in their own lock
    runtime = runtime_wheel(workspace.artifacts, build=False) if needed else None
    if needed and runtime is None and build:
        with contextlib.redirect_stdout(io.StringIO()):  # hide uv's build output; errors carry their own message
            runtime = runtime_wheel(workspace.artifacts)
    others = {artifact.folder / name: content for name, content in artifact.files.items() if name != offered.name}
    companions = [runtime] if runtime else []
    publish_files(folder, channel, offered, artifact.files[offered.name], companions, others=others)
