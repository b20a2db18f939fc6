"""Integrity of a workspace: state against history, signatures, names across servers, channel folders against the state.

Differences have the form of `verify`. They include servers whose folder is missing while a channel still offers them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.channels.channel import has_project, is_absent, offer_faults, page_faults, projects_on_page
from mcpfactory_pipeline.decisions.decision import projects_of
from mcpfactory_pipeline.decisions.signatures import SIGNERS, approval_faults, hold_faults, stage_faults
from mcpfactory_pipeline.plan.policy import ChannelPolicy, read_channels
from mcpfactory_pipeline.plan.stage import Stage, offered_name
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import ServerState, fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import CONFIG, BrokenServer, Workspace, contain


def faults(
    workspace: Workspace, names: Sequence[str] | None = None, *, head: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return all that is wrong with what servers say of themselves, as `verify` returns differences; `head` is as there.

    Raises:
        NotFoundError: for a server that never was.
    """
    return [*verify(workspace, names, head=head), *signature_faults(workspace, names)]


def signature_faults(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the servers whose decisions lack a signature that a channel or a stage asks for."""
    channels, stages = read_channels(workspace), workspace_stages(workspace)
    if not any(channel.signed for channel in channels) and not any(s.approval and s.approval.signed for s in stages):
        return []
    store, found = Store(workspace), []
    for server in names or store.servers():
        wrong = contain(server, partial(_unsigned, workspace, server, channels, stages))
        if wrong and not isinstance(wrong, BrokenServer):  # an unreadable server is a separate difference
            message = f"{server} has decisions that do not count: {wrong[0]}"
            hint = f"who decides signs: mcpfactory pipeline approve {server} --sign-with KEY; keys are in {SIGNERS}"
            found.append({"server": server, "message": message, "hint": hint, "changes": wrong})
    return found


def _unsigned(
    workspace: Workspace, server: str, channels: Sequence[ChannelPolicy], stages: Sequence[Stage]
) -> list[str]:
    events = Store(workspace).history(server)
    state = fold(server, events)
    return [
        *approval_faults(workspace, state, events, channels),
        *hold_faults(workspace, state, events, channels),
        *stage_faults(workspace, state, events, stages),
    ]


def require_sound(workspace: Workspace, server: str) -> None:
    """Raise `RefusedError` for a server that `verify` would refuse; a state that is behind its history is brought up to date first.

    Raises:
        RefusedError: what is wrong, as `verify` says it.
        StateError: its files cannot be read.
    """
    store = Store(workspace)
    if not store.history_file(server).exists() and store.state_text(server) is None:
        return
    with store.transaction(
        server
    ):  # a run that broke off leaves a state that is behind, and writing brings it up to date
        pass
    refuse_unsound(workspace, server)


def refuse_unsound(workspace: Workspace, server: str, *, head: Mapping[str, str] | None = None) -> None:
    """Raise `RefusedError` for a server that `verify` would refuse, as its files are. Nothing is written.

    `head` is what `head_histories` gave, where many servers are judged one after another.

    Raises:
        RefusedError: what is wrong, as `verify` says it.
        StateError: its files cannot be read.
    """
    for wrong in faults(workspace, [server], head=head):
        raise RefusedError(f"{wrong['message']}: {'; '.join(wrong['changes'][:3])}".rstrip(": "), hint=wrong["hint"])


def name_clashes(workspace: Workspace, names: Sequence[str]) -> dict[str, BrokenServer]:
    """Return those of the named servers whose distribution name is the runtime's or another server's, each with the reason.

    Of servers with one name, the one that was built under it first keeps it. Where none was built yet, all are refused.
    """
    holders: dict[str, list[str]] = {}
    for server in workspace.names():
        if project := _distribution_name(workspace, server):
            holders.setdefault(project, []).append(server)
    return {one.name: one for one in _clashes(workspace, holders) if one.name in set(names)}


def _clashes(workspace: Workspace, holders: dict[str, list[str]]) -> Iterator[BrokenServer]:
    hint = "give the server another name in [project] of its pyproject.toml; case, -, _ and . do not tell names apart"
    for project, servers in holders.items():
        if project == RUNTIME:
            yield from (
                BrokenServer(server, f"{server} has the distribution name of the runtime, {RUNTIME}", hint)
                for server in servers
            )
        elif len(servers) > 1:
            owner = _owner(workspace, project, servers)
            for server in servers:
                if server != owner:
                    others = owner or ", ".join(other for other in servers if other != server)
                    yield BrokenServer(server, f"{server} has the distribution name of {others}, {project}", hint)


def _owner(workspace: Workspace, project: str, servers: Iterable[str]) -> str:
    """Return the server that was first built under a name; "" if none was, or if unknown."""
    store, built = Store(workspace), []
    for server in servers:
        state = contain(server, partial(store.state, server))
        if isinstance(state, BrokenServer):
            return ""
        if any(project in projects_of(state, candidate=name) for name in state.candidates):
            built.append(server)
    return built[0] if len(built) == 1 else ""


def _distribution_name(workspace: Workspace, server: str) -> str:
    """Return the normalized name in a server's pyproject.toml; "" if missing: the stage `build` reports why."""
    try:
        project = tomllib.loads((workspace.root / "servers" / server / "pyproject.toml").read_text(encoding="utf-8"))
        return canonicalize_name(str(project["project"]["name"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@dataclass(frozen=True, slots=True)
class OrphanedServer:
    """A server without a folder. `channels` offer it by its state; `here` are those that do so on this machine only."""

    server: str
    channels: tuple[str, ...] = ()
    here: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Return the fault as text."""
        if self.channels:
            return f"servers/{self.server} is gone, and {_join_names(self.channels)} still offers it"
        return (
            f"{self.server} is gone, and pipeline/channels on this machine still offers it in {_join_names(self.here)}"
        )

    @property
    def means(self) -> str:
        """Return the effect on callers."""
        return "who asks for it goes on getting what nobody keeps"

    @property
    def command(self) -> str:
        """Return the command to run next."""
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


_RESTORE: Final = "mcpfactory pipeline restore"


def served_faults(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the differences between the channel folders on this machine and the states, in the form of `verify`.

    Without names, it includes servers whose folder is missing, and pages that no state names.
    """
    store, found = Store(workspace), []
    for server in names or store.servers():
        told = contain(server, partial(_lasting_faults, workspace, store, server))
        if told and not isinstance(told, BrokenServer):  # an unreadable server is a separate difference
            message = f"what channels on this machine offer of {server} is not what was promoted"
            found.append({"server": server, "message": message, "hint": f"{_RESTORE} {server}", "changes": told})
    if names:
        return found
    found += [
        {"server": gone.server, "message": gone.message, "hint": gone.command, "changes": []}
        for gone in find_orphans(workspace)
    ]
    for channel, project in ghost_pages(workspace):
        message = f"channel {channel} on this machine offers {project}, which the state of no server names"
        found.append({"server": project, "message": message, "hint": _RESTORE, "changes": []})
    for channel in _channels(workspace):
        if told := page_faults(channels_folder(workspace), channel, RUNTIME):
            message = f"channel {channel} on this machine offers another runtime than its page says"
            found.append({"server": RUNTIME, "message": message, "hint": _RESTORE, "changes": told})
    return found


def state_faults(workspace: Workspace, state: ServerState) -> list[str]:
    """Return the differences between the channel folders and a state, one line per fault.

    Files that are completely missing here are not a fault.
    """
    folder, found = channels_folder(workspace), []
    for channel, release in sorted(state.channels.items()):
        known = state.candidates.get(release.candidate)
        offered = offered_name(known.files) if known else None
        if known is None or offered is None or not (folder / channel).is_dir():
            continue
        if is_absent(folder, channel, wheel_name(offered), known.files):
            continue
        faults = offer_faults(folder, channel, wheel_name(offered), known.files)
        found += [f"{channel} does not offer {release.candidate}: {fault}" for fault in faults]
    return found


def ghost_pages(workspace: Workspace) -> list[tuple[str, str]]:
    """Return each channel and project of a page that no state names. Pages of servers without a folder are `find_orphans`'."""
    pages = {
        (channel, project)
        for channel in _channels(workspace)
        for project in projects_on_page(channels_folder(workspace), channel)
        if project != RUNTIME
    }
    return sorted(_unnamed(workspace, pages)) if pages else []


def _unnamed(workspace: Workspace, pages: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    store, left = Store(workspace), set(pages)
    for server in store.servers():
        if not left:
            return
        state = contain(server, partial(store.state, server))
        if isinstance(state, BrokenServer):  # ownership is unknown until the server is repaired
            return
        left -= {(channel, project) for channel in state.channels for project in projects_of(state, channel)}
        if not workspace.has_folder(server):
            gone = {project for name in state.candidates for project in projects_of(state, candidate=name)}
            left = {(channel, project) for channel, project in left if project not in gone}
    yield from left


def _lasting_faults(workspace: Workspace, store: Store, server: str) -> list[str]:
    """Return the faults that are not caused by a running promotion: a channel is filled before the state changes."""
    if not state_faults(workspace, store.state(server)):
        return []
    with file_lock(store.locks / f"{server}.lock"):
        return state_faults(workspace, store.state(server))


def _channels(workspace: Workspace) -> list[str]:
    return sorted(place.name for place in channels_folder(workspace).glob("[!.]*") if place.is_dir())
