"""Integrity checks of a workspace: states, histories, signatures, names and channel folders.

Servers without a folder are also checked if a channel still offers them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.hashing import ABSENT, hash_file
from mcpfactory_pipeline.base.locks import read_run_notes
from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.candidate import NAME_HINT, channels_folder
from mcpfactory_pipeline.channels.channel import (
    channel_project_faults,
    companion_project_faults,
    has_project,
    lacks_candidate_files,
    projects_in_channel,
)
from mcpfactory_pipeline.decisions.decision import offered_project_names
from mcpfactory_pipeline.decisions.signatures import SIGNERS, decision_signature_faults
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage, offered_file_name
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.manifest import MANIFESTS, find_manifest, manifest_file, recorded_artifacts
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import Difference, make_difference, verify
from mcpfactory_pipeline.workspace.adopted import Drift
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import CONFIG, BrokenServer, Workspace, isolate_server_errors


def faults(
    workspace: Workspace, names: Sequence[str] | None = None, *, head: Mapping[str, str] | None = None
) -> list[Difference]:
    """Return the differences that `verify` finds, and invalid signatures."""
    return [*verify(workspace, names, head=head), *signature_faults(workspace, names)]


def signature_faults(workspace: Workspace, names: Sequence[str] | None = None) -> list[Difference]:
    """Return the servers with decisions that lack a required signature."""
    channels, stages = read_channels(workspace), workspace_stages(workspace)
    if not any(channel.signed for channel in channels) and not any(s.approval and s.approval.signed for s in stages):
        return []
    store, found = Store(workspace), []
    for server in names or store.servers():
        wrong = isolate_server_errors(server, partial(_unsigned, workspace, server, channels, stages))
        if wrong and not isinstance(wrong, BrokenServer):  # unreadable servers are reported elsewhere
            message = f"{server} has decisions that do not count: {wrong[0]}"
            hint = f"sign them: mcpfactory pipeline approve {server} --sign-with KEY; allowed keys are in {SIGNERS}"
            found.append(make_difference(server, message, hint, wrong))
    return found


def _unsigned(
    workspace: Workspace, server: str, channels: Sequence[ChannelPolicy], stages: Sequence[Stage]
) -> list[str]:
    store = Store(workspace)
    state, events = store.state(server), store.history(server)
    return list(decision_signature_faults(workspace, state, events, channels, stages))


def require_integrity(workspace: Workspace, server: str) -> None:
    """Refuse a server with faults. An outdated state file is first updated from the history."""
    store = Store(workspace)
    if not store.history_file(server).exists() and store.state_text(server) is None:
        return
    with store.transaction(server):  # updates the state file, which may be outdated after a crash
        pass
    refuse_faults(workspace, server)


def refuse_faults(workspace: Workspace, server: str, *, head: Mapping[str, str] | None = None) -> None:
    """Refuse a server with faults. No file is written.

    For checks of many servers, pass the result of `head_history_blobs` as `head`.
    """
    for wrong in faults(workspace, [server], head=head):
        raise RefusedError(f"{wrong['message']}: {'; '.join(wrong['changes'][:3])}".rstrip(": "), hint=wrong["hint"])


def name_clashes(workspace: Workspace, names: Sequence[str]) -> dict[str, BrokenServer]:
    """Return the servers whose package name belongs to the runtime or to another server, with the reason.

    Of several servers with the same package name, the only one that was built keeps the name.
    """
    holders: dict[str, list[str]] = {}
    for server in workspace.names():
        if project := _distribution_name(workspace, server):
            holders.setdefault(project, []).append(server)
    return {one.name: one for one in _clashes(workspace, holders) if one.name in set(names)}


def _clashes(workspace: Workspace, holders: dict[str, list[str]]) -> Iterator[BrokenServer]:
    for project, servers in holders.items():
        if project == RUNTIME:
            yield from (
                BrokenServer(
                    server, f"{server} has the distribution name {RUNTIME}, which belongs to the runtime", NAME_HINT
                )
                for server in servers
            )
        elif len(servers) > 1:
            owner = _owner(workspace, project, servers)
            for server in servers:
                if server != owner:
                    others = owner or ", ".join(other for other in servers if other != server)
                    yield BrokenServer(
                        server, f"{server} has the distribution name {project}, which belongs to {others}", NAME_HINT
                    )


def _owner(workspace: Workspace, project: str, servers: Iterable[str]) -> str:
    """Return the only server that was ever built with a package name, or ""."""
    store, built = Store(workspace), []
    for server in servers:
        state = isolate_server_errors(server, partial(store.state, server))
        if isinstance(state, BrokenServer):
            return ""
        if any(project in offered_project_names(state, candidate=name) for name in state.candidates):
            built.append(server)
    return built[0] if len(built) == 1 else ""


def _distribution_name(workspace: Workspace, server: str) -> str:
    """Return the normalized package name in a server's pyproject.toml, or ""."""
    try:
        project = tomllib.loads((workspace.root / "servers" / server / "pyproject.toml").read_text(encoding="utf-8"))
        return canonicalize_name(str(project["project"]["name"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""


_RESTORE: Final = "mcpfactory pipeline restore"
_REMAINS: Final = "clients still get a file that no state records"


def orphaned_channel_offers(workspace: Workspace) -> Iterator[Drift]:
    """Yield offered servers without a folder, then channel pages that no state lists.

    Servers are omitted if their channels were kept on purpose.
    """
    store = Store(workspace)
    gone = {name for name in store.servers() if not (workspace.root / "servers" / name / CONFIG).exists()}
    for name in sorted(gone and gone - _servers_outside_checkout(workspace)):
        state = isolate_server_errors(name, partial(store.state, name))
        if isinstance(state, BrokenServer):
            continue
        kept = state.retired is not None and "gone" in state.retired
        here = sorted({channel for channel, _ in leftover_projects(workspace, state)})
        if not kept and state.channels:
            message = f"servers/{name} is gone, and {_join_names(sorted(state.channels))} still offers it"
        elif here:
            message = f"{name} is gone, and pipeline/channels on this machine still offers it in {_join_names(here)}"
        else:
            continue
        yield Drift("gone", message, _REMAINS, f"mcpfactory remove {name}", name)
    for channel, project in unreferenced_pages(workspace):
        message = f"channel {channel} on this machine offers {project}, which the state of no server names"
        yield Drift("gone", message, "clients get a file that was not promoted", _RESTORE, project)


def leftover_projects(workspace: Workspace, state: ServerState) -> list[tuple[str, str]]:
    """Return (channel, project) of projects that a channel folder contains and the state does not list."""
    folder = channels_folder(workspace)
    offered = {(channel, project) for channel in state.channels for project in offered_project_names(state, channel)}
    projects = sorted(
        {project for name in state.candidates for project in offered_project_names(state, candidate=name)}
    )
    return [
        (place.name, project)
        for place in sorted(folder.glob("[!.]*"))
        for project in projects
        if (place.name, project) not in offered and has_project(folder, place.name, project)
    ]


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def channel_folder_faults(workspace: Workspace, names: Sequence[str] | None = None) -> list[Difference]:
    """Return differences between the states and the channel folders on this machine, in the form of `verify`.

    Without names, all servers and all channel pages are checked.
    """
    store, found = Store(workspace), []
    for server in names or store.servers():
        faulty = isolate_server_errors(server, partial(_lasting_faults, workspace, store, server))
        if isinstance(faulty, BrokenServer):  # unreadable servers are reported elsewhere
            continue
        damaged, late = faulty
        if damaged:
            message = f"channels on this machine offer other files of {server} than were promoted"
            found.append(make_difference(server, message, f"{_RESTORE} {server}", damaged))
        if late:
            message = f"channels on this machine offer an earlier release of {server}"
            found.append(make_difference(server, message, f"{_RESTORE} {server}", late, level="warning"))
    if names:
        return found
    found += [make_difference(gone.server, gone.message, gone.command) for gone in orphaned_channel_offers(workspace)]
    for channel in _channels(workspace):
        if told := companion_project_faults(channels_folder(workspace), channel, RUNTIME):
            message = f"channel {channel} on this machine offers another runtime than its page says"
            found.append(make_difference(RUNTIME, message, _RESTORE, told))
    return found


def report_faults(workspace: Workspace, names: Sequence[str] | None = None) -> Iterator[Difference]:
    """Yield servers with changed manifests or reports on this machine, in the form of `verify`.

    Logs are not checked, nor servers with a running or killed stage, because the stage may have written files.
    """
    store = Store(workspace)
    for server in names or store.servers():
        state = isolate_server_errors(server, partial(store.state, server))
        if isinstance(state, BrokenServer) or read_run_notes(store.locks, server):
            continue
        folder, changed = workspace.artifacts / server, list[str]()
        for record in state.stages.values():
            file = manifest_file(folder / MANIFESTS, record.manifest)
            changed += [file.name] if file.exists() and not find_manifest(record.manifest, [file.parent]) else []
            for path, content in recorded_artifacts(record, file.parent).items():
                if not path.startswith("logs/") and hash_file(folder / path) not in {ABSENT, content}:
                    changed.append(path)
        if changed:
            message = f"reports of {server} on this machine differ from the recorded reports"
            yield make_difference(server, message, f"mcpfactory pipeline run {server} --force", changed)


def channel_state_faults(
    workspace: Workspace, state: ServerState, events: Iterable[Event] = ()
) -> tuple[list[str], list[str]]:
    """Describe the damaged channels of a server on this machine, then the channels that offer an earlier candidate.

    If this machine has none of the files, the channel is not reported. Candidates that the state no longer has are
    known only with the server's `events`.
    """
    built = [event["built"]["files"] for event in events if event.get("built")]
    folder, damaged, late = channels_folder(workspace), list[str](), list[str]()
    for channel, release in sorted(state.channels.items()):
        known = state.candidates.get(release.candidate)
        offered = offered_file_name(known.files) if known else None
        if known is None or offered is None or not (folder / channel).is_dir():
            continue
        project = wheel_name(offered)
        if lacks_candidate_files(folder, channel, project, known.files):
            continue
        faults = channel_project_faults(folder, channel, project, known.files)
        others = [*(one.files for one in state.candidates.values()), *built]
        is_late = faults and any(not channel_project_faults(folder, channel, project, files) for files in others)
        found = late if is_late else damaged
        found += [f"{channel} does not offer {release.candidate}: {fault}" for fault in faults]
    return damaged, late


def _servers_outside_checkout(workspace: Workspace) -> set[str]:
    """Return the servers whose folders a sparse checkout leaves out."""
    listed = git_output(workspace.root, "ls-files", "-t", "-z", "--", f":(glob)servers/*/{CONFIG}") or b""
    entries = listed.decode(errors="replace").split("\0")
    return {entry.split("/")[-2] for entry in entries if entry.startswith("S ")}


def unreferenced_pages(workspace: Workspace) -> list[tuple[str, str]]:
    """Return (channel, project) of each page that no state lists."""
    pages = {
        (channel, project)
        for channel in _channels(workspace)
        for project in projects_in_channel(channels_folder(workspace), channel)
        if project != RUNTIME
    }
    return sorted(_unnamed(workspace, pages)) if pages else []


def _unnamed(workspace: Workspace, pages: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    store, left = Store(workspace), set(pages)
    for server in store.servers():
        if not left:
            return
        state = isolate_server_errors(server, partial(store.state, server))
        if isinstance(state, BrokenServer):  # it is unknown which projects an unreadable server owns
            return
        left -= {(channel, project) for channel in state.channels for project in offered_project_names(state, channel)}
        if not workspace.has_folder(server):
            gone = {project for name in state.candidates for project in offered_project_names(state, candidate=name)}
            left = {(channel, project) for channel, project in left if project not in gone}
    yield from left


def _lasting_faults(workspace: Workspace, store: Store, server: str) -> tuple[list[str], list[str]]:
    """Return lasting faults.

    A running promotion causes temporary faults, because the channel changes before the state.
    """
    if not any(found := channel_state_faults(workspace, store.state(server))):
        return found
    with store.write_lock(server):
        return channel_state_faults(workspace, store.state(server), store.history(server))


def _channels(workspace: Workspace) -> list[str]:
    return sorted(place.name for place in channels_folder(workspace).glob("[!.]*") if place.is_dir())
