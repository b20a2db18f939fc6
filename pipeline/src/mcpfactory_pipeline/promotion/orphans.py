"""Servers whose folder is gone and that a channel still offers: by the state, or by a folder of a channel on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.channels.channel import has_project
from mcpfactory_pipeline.promotion.decision import projects_of
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.broken import BrokenServer, contain
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

__all__ = ["find_orphans", "leftover_projects"]


@dataclass(frozen=True, slots=True)
class OrphanedServer:
    """A server without a folder. `channels` offer it by its state; `here` are those that do so on this machine only."""

    server: str
    channels: tuple[str, ...] = ()
    here: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What is so, in words."""
        if self.channels:
            return f"servers/{self.server} is gone, and {_join_names(self.channels)} still offers it"
        return (
            f"{self.server} is gone, and pipeline/channels on this machine still offers it in {_join_names(self.here)}"
        )

    @property
    def means(self) -> str:
        """What callers notice."""
        return "who asks for it goes on getting what nobody keeps"

    @property
    def command(self) -> str:
        """What to type next."""
        return f"mcpfactory remove {self.server}"


def find_orphans(workspace: Workspace) -> Iterator[OrphanedServer]:
    """Yield the orphaned servers, by name; without those whose channels were kept on purpose when they were removed.

    A state that cannot be read is left out: `mcpfactory pipeline verify` reports it.
    """
    store = Store(workspace)
    for name in store.servers():
        if (workspace.root / "servers" / name / CONFIG).exists():
            continue
        state = contain(name, partial(store.state, name))
        if isinstance(state, BrokenServer):
            continue
        kept = state.retired is not None and "gone" in state.retired
        channels = () if kept else tuple(sorted(state.channels))
        here = tuple(sorted({channel for channel, _ in leftover_projects(workspace, state)}))
        if channels or here:
            yield OrphanedServer(name, channels, here)


def leftover_projects(workspace: Workspace, state: ServerState) -> list[tuple[str, str]]:
    """Channels whose folder on this machine offers a project of a server, and the project, where the state knows nothing of it."""
    folder = channels_folder(workspace)
    offered = {(channel, project) for channel in state.channels for project in projects_of(state, channel)}
    projects = sorted({project for name in state.candidates for project in projects_of(state, candidate=name)})
    return [
        (place.name, project)
        for place in sorted(folder.glob("[!.]*"))
        for project in projects
        if (place.name, project) not in offered and has_project(folder, place.name, project)
    ]


def _join_names(names: tuple[str, ...]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
