"""How a client starts a server that was adopted: by mcpfactory, as a channel offers it, or at its URL.

The entry names the channel and not the files: what is promoted there, or rolled back, is what the client starts next.
"""

from __future__ import annotations

from pathlib import Path

from mcpfactory_codegen.credentials.names import is_secret
from mcpfactory_pipeline.adoption.candidate import environment_of
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.channels.candidate import artifact_of, verify_files
from mcpfactory_pipeline.clients.errors import ClientError
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["channel_of", "entry_variables"]


def channel_of(workspace: Workspace, server: WorkspaceServer, channel: str, project: Path | None) -> tuple[str, str]:
    """Return the channel that a client takes an adopted server from, and the version there; two empty texts for its files here.

    Without a `channel` the last one that offers it on this machine.

    Raises:
        ClientError: the channel does not offer it on this machine, or the entry is for others, too.
        NotFoundError: there is no such channel.
    """
    state = Store(workspace).state(server.name)
    if not channel:
        here = [row.name for row in reversed(read_channels(workspace)) if _is_here(workspace, state, row.name)]
        channel = here[0] if here and project is None else ""
        return (channel, state.channels[channel].version) if channel else ("", "")
    find_channel(read_channels(workspace), channel)
    if project is not None:
        raise ClientError(
            f"channel {channel} is on this machine only, and a project's file is for others, too",
            hint="--from source, or leave out --project",
        )
    if not _is_here(workspace, state, channel):
        raise ClientError(
            f"channel {channel} does not offer {server.name} on this machine",
            hint=f"mcpfactory pipeline restore {server.name}, or --from source",
        )
    return channel, state.channels[channel].version


def _is_here(workspace: Workspace, state: ServerState, channel: str) -> bool:
    release = state.channels.get(channel)
    artifact = artifact_of(workspace, state, release.candidate) if release else None
    try:
        if artifact is not None:
            verify_files(artifact)
    except StateError:
        return False
    return artifact is not None


def entry_variables(server: WorkspaceServer, *, secret: bool) -> tuple[str, ...]:
    """Return the variables that an adopted server reads: those that hold secrets, by their names, or the others."""
    return tuple(name for name in environment_of(server.config) if is_secret(name) is secret)
