"""A candidate's files on this machine, and putting them into a channel: always the bytes that were checked."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.channels.channel import publish, read_checked
from mcpfactory_pipeline.plan.stage import Artifact
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["artifact_of", "channels_folder", "check_bytes", "offer"]


def artifact_of(workspace: Workspace, state: ServerState, candidate: str | None = None) -> Artifact | None:
    """Return a candidate (the newest by default) with the folder where its files are on this machine; None when there is none."""
    name = candidate or state.candidate
    known = state.candidates.get(name or "")
    if name is None or known is None:
        return None
    return Artifact(name, known.version, workspace.artifacts / state.server / name, dict(known.files))


def channels_folder(workspace: Workspace) -> Path:
    """Where the channels are."""
    return workspace.pipeline / "channels"


def check_bytes(artifact: Artifact) -> None:
    """Raise `StateError` when a file of a candidate is not on this machine, or not what was checked."""
    for name, content in artifact.files.items():
        read_checked(artifact.folder / name, content)


def offer(workspace: Workspace, channel: str, artifact: Artifact, *, build: bool = True) -> None:
    """Put a candidate's files into a channel; the runtime's with it where no public index has that one.

    Without `build` the runtime's wheel is taken only when it was built before. Raises `StateError` when the bytes are not
    on this machine, or not those that were checked; then the channel is as it was.
    """
    wheel = artifact.wheel
    runtime = runtime_wheel(workspace.artifacts, build=False)
    if runtime is None and build:
        with contextlib.redirect_stdout(io.StringIO()):  # uv tells what it builds; what goes wrong is in its error
            runtime = runtime_wheel(workspace.artifacts)
    others = {artifact.folder / name: content for name, content in artifact.files.items() if name != wheel.name}
    companions = [runtime] if runtime else []
    publish(channels_folder(workspace), channel, wheel, artifact.files[wheel.name], companions, others=others)
