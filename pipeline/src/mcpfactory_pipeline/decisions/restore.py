"""Restoration of channel folders from the states, for example after a fresh clone.

A missing wheel is rebuilt from the server's folder or from a commit. The rebuilt wheel is accepted only if its bytes
match the recorded hash.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from mcpfactory_codegen.servers.config import ServerConfig
from mcpfactory_pipeline.adoption.candidate import build_adopted_candidate
from mcpfactory_pipeline.adoption.sources import AdoptionSources
from mcpfactory_pipeline.base.errors import JsonRecord, PipelineError, StateError
from mcpfactory_pipeline.base.git import git_output, git_text
from mcpfactory_pipeline.base.hashing import hash_files, list_source_files, shorten_hash
from mcpfactory_pipeline.base.versions import installed_version
from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.candidate import (
    build_candidate,
    channels_folder,
    copy_into_channel,
    find_artifact,
    store_candidate,
    verify_candidate_files,
)
from mcpfactory_pipeline.channels.channel import channel_project_faults, companion_project_faults, withdraw_project
from mcpfactory_pipeline.decisions.decision import choose_candidate
from mcpfactory_pipeline.decisions.integrity import require_integrity, unreferenced_pages
from mcpfactory_pipeline.plan.fingerprint import NOT_BUILT, combine_source_hashes, hash_external_files
from mcpfactory_pipeline.plan.stage import Artifact, BuiltCandidate, isolation_settings
from mcpfactory_pipeline.state.state import Candidate, ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import (
    CONFIG,
    BrokenServer,
    Workspace,
    WorkspaceServer,
    isolate_server_errors,
    read_settings_file,
)

_COMMITS: Final = 200  # maximum number of commits that are searched for the sources of a candidate


@dataclass(frozen=True, slots=True)
class RestoredChannel(JsonRecord):
    """Result for one channel of one server.

    Attributes:
        outcome: `there` (unchanged), `restored`, `rebuilt`, `missing`, or `withdrawn` (a page that no state lists).
        source: origin of the files, or the reason why files are missing.
    """

    server: str
    channel: str
    candidate: str
    outcome: str
    source: str = ""
    hint: str = ""


def restore(workspace: Workspace, names: Sequence[str] | None = None, *, rebuild: bool = True) -> list[RestoredChannel]:
    """Restore the channel folders from the states of the servers.

    Without `rebuild`, files that are not in `pipeline/artifacts/` are reported as `missing`.
    """
    servers, broken = workspace.load_servers(names)
    found = [_unreadable(one) for one in broken]
    store = Store(workspace)

    def one(server: WorkspaceServer) -> list[RestoredChannel]:
        require_integrity(workspace, server.name)
        with store.transaction(server.name) as transaction:
            state = transaction.state
            return [_restore(workspace, server, state, name, rebuild=rebuild) for name in sorted(state.channels)]

    for server in servers:
        done = isolate_server_errors(server.name, partial(one, server))
        found += [_unreadable(done)] if isinstance(done, BrokenServer) else done
    for name, project in () if names else unreferenced_pages(workspace):
        withdraw_project(channels_folder(workspace), name, project)
        found.append(RestoredChannel(project, name, "", "withdrawn", "no state names it"))
    return found


def _unreadable(one: BrokenServer) -> RestoredChannel:
    return RestoredChannel(one.name, "", "", "missing", one.message, one.hint)


def restore_candidate_files(workspace: Workspace, server: str, candidate: str) -> RestoredChannel:
    """Restore the files of one candidate on this machine."""
    store = Store(workspace)
    require_integrity(workspace, workspace.server(server).name)
    with store.transaction(server) as transaction:
        chosen = choose_candidate(transaction.state, candidate)
        return _restore_files(workspace, workspace.server(server), transaction.state, chosen)


def _restore(
    workspace: Workspace, server: WorkspaceServer, state: ServerState, channel: str, *, rebuild: bool
) -> RestoredChannel:
    candidate = state.channels[channel].candidate
    artifact = find_artifact(workspace, state, candidate)
    about = (server.name, channel, candidate)
    if artifact is None:
        return RestoredChannel(*about, "missing", "the state no longer knows its files", "mcpfactory pipeline verify")
    folder, project = channels_folder(workspace), wheel_name(artifact.offered.name)
    if not channel_project_faults(folder, channel, project, artifact.files) and not companion_project_faults(
        folder, channel, RUNTIME
    ):
        return RestoredChannel(*about, "there")
    restored = replace(_restore_files(workspace, server, state, candidate, rebuild=rebuild), channel=channel)
    if restored.outcome == "missing":
        return restored
    copy_into_channel(workspace, channel, artifact)
    return (
        restored
        if restored.outcome == "rebuilt"
        else replace(restored, outcome="restored", source="pipeline/artifacts")
    )


def _restore_files(
    workspace: Workspace, server: WorkspaceServer, state: ServerState, candidate: str, *, rebuild: bool = True
) -> RestoredChannel:
    artifact, about = find_artifact(workspace, state, candidate), (server.name, "", candidate)
    assert artifact is not None
    try:
        verify_candidate_files(artifact)
        return RestoredChannel(*about, "there")
    except StateError as error:
        if not rebuild:
            return RestoredChannel(*about, "missing", str(error), f"mcpfactory pipeline restore {server.name}")
        try:
            return RestoredChannel(*about, "rebuilt", _rebuild(workspace, server, state, artifact))
        except PipelineError as error:
            return RestoredChannel(*about, "missing", str(error), error.hint)


def _rebuild(workspace: Workspace, server: WorkspaceServer, state: ServerState, artifact: Artifact) -> str:
    """Rebuild a candidate, and return a description of its sources."""
    known, copy = state.candidates[artifact.id], f"pipeline/artifacts/{server.name}/{artifact.id}/"
    wheel = artifact.offered.name
    wanted = known.inputs.get("source", "")
    with _sources(server, wanted) as (folder, words):
        if folder is None:
            raise StateError(
                f"{wheel} is not on this machine, and the wheel's sources ({wanted}) are neither in "
                f"servers/{server.name} nor in the last {_COMMITS} commits of that folder",
                hint=f"copy {copy} from another machine, or fetch the branch with the sources of the wheel",
            )
        with tempfile.TemporaryDirectory(prefix="mcpfactory-") as work, contextlib.redirect_stdout(io.StringIO()):
            try:
                built = _built_again(workspace, server, folder, Path(work), known)
            except ToolRejectedInputError as error:
                raise StateError(f"{wheel} cannot be built from {words}: {error}", hint=f"copy {copy}") from error
            if any(built.files.get(name) != content for name, content in artifact.files.items()):
                before, now = known.facts.get("uv", known.inputs.get("uv")), installed_version("uv")
                tools = f": the first build used uv {before}, the new build used uv {now}" if before != now else ""
                raise StateError(
                    f"the new build of {wheel} from {words} has different bytes{tools}",
                    hint=f"install uv {before}, or copy {copy} from another machine",
                )
            store_candidate(replace(built, files=artifact.files), artifact.folder)
    return words


def _built_again(
    workspace: Workspace, server: WorkspaceServer, folder: Path, work: Path, known: Candidate
) -> BuiltCandidate:
    kept_apart, config = (
        isolation_settings(workspace.settings.pipeline),
        read_settings_file(ServerConfig, folder / CONFIG),
    )
    if config.adopted is None:
        backend = str(known.facts.get("backend", ""))
        return build_candidate(folder, work, backend=backend, settings=kept_apart, version=known.version)
    return build_adopted_candidate(
        AdoptionSources(server.name, config.adopted, folder, workspace.root, work, kept_apart),
        config.server.environment,
    )


@contextlib.contextmanager
def _sources(server: WorkspaceServer, wanted: str) -> Iterator[tuple[Path | None, str]]:
    """Yield a folder whose sources have the wanted hash, and a description of this folder."""
    own = hash_external_files(server)
    if _hash(server.folder, own) == wanted:
        yield server.folder, f"servers/{server.name}"
        return
    for commit in git_text(server.folder, "log", f"--max-count={_COMMITS}", "--format=%H", "--", ".").split():
        with tempfile.TemporaryDirectory(prefix="mcpfactory-") as work:
            archive = git_output(server.folder, "archive", "--format=tar", commit)
            if not archive:
                continue
            try:
                with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                    # Python before 3.11.4 has no filter, but archives from Git contain no paths outside the folder.
                    files.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
                    files.extractall(work)  # noqa: S202 - see above
            except tarfile.TarError:  # a candidate's sources never have links out of the folder
                continue
            if _hash(Path(work), own) == wanted:
                yield Path(work), f"commit {commit[:12]}"
                return
    yield None, ""


def _hash(folder: Path, own: str) -> str:
    return shorten_hash(combine_source_hashes(hash_files(folder, list_source_files(folder, without=NOT_BUILT)), own))
