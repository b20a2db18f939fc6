"""Release plan: the servers to release, and their new versions.

A server is released if its package has changed since the last release, or if it has a changelog fragment. The newest
tag `<server>-vX.Y.Z` on this branch marks the last release. Without a tag, the last candidate that people promoted
counts as the last release. Changes of the tools determine the new version. Fragments can raise the version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from packaging.utils import canonicalize_version

from mcpfactory_codegen.servers.manifest_diff import Change
from mcpfactory_pipeline.base.errors import NotFoundError, ReleaseError, StateError
from mcpfactory_pipeline.base.hashing import shorten_hash
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.base.versions import (
    STEPS,
    Step,
    Version,
    ensure_sufficient_version,
    is_sufficient_step,
    next_version,
)
from mcpfactory_pipeline.channels.contract import (
    Contract,
    ContractComparison,
    compare_contracts,
    find_contract,
    parse_contract,
    read_source_version,
)
from mcpfactory_pipeline.delivery.releases import changelog
from mcpfactory_pipeline.delivery.releases.changelog import FOLDER, ChangelogFragment, read_changelog_fragments
from mcpfactory_pipeline.delivery.releases.git import ReleaseTag, Repository
from mcpfactory_pipeline.delivery.releases.package_group import PackageGroup, read_package_group
from mcpfactory_pipeline.plan.fingerprint import INPUTS, NOT_BUILT, InputReader
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import candidates_by_offered_version
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer, broken_server_of_error

# Tools of the last release; the path is relative to the server's folder.
CONTRACT: Final = f"{FOLDER}/released.json"
_SHOWN: Final = 3  # maximum number of changed files in a message

Reader = Callable[[WorkspaceServer], Contract]
"""Returns the tool list and the version in a server's sources."""

Status = Literal["due", "pending", "current", "retired", "refused"]
"""Status of a proposal.

- `due`: a release is required.
- `pending`: the release commit exists, but not the tag.
- `current`: no release is required.
- `retired`: the server is retired.
- `refused`: `code` is the reason.
"""


@dataclass(frozen=True, slots=True)
class ReleaseProposal:
    """Release proposal for a server, or for packages that are released together.

    Attributes:
        before: version of the previous release, or "".
        step: version step that the tool changes and fragments require.
    """

    server: str
    status: Status
    before: str = ""
    version: str = ""
    step: Step = "none"
    reasons: tuple[str, ...] = ()
    notes: tuple[ChangelogFragment, ...] = ()
    changes: tuple[Change, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    commit: str = ""
    code: str = ""
    message: str = ""
    hint: str = ""

    @property
    def tag(self) -> ReleaseTag:
        """Return the tag of the release."""
        return ReleaseTag(self.server, self.version, self.commit)

    def to_json(self) -> dict[str, Any]:
        """Return JSON-compatible data, without the tools."""
        shown = {key: value for key, value in asdict(self).items() if key not in {"tools", "notes"}}
        return {**shown, "tag": self.tag.name if self.version else "", "notes": [note.to_json() for note in self.notes]}


def plan_releases(
    workspace: Workspace, repository: Repository, names: Sequence[str] | None, read: Reader
) -> list[ReleaseProposal]:
    """Return release proposals for the named servers, or for all.

    An error in one server affects only the proposal for this server.
    """
    planner, packages = _Planner(workspace, repository, read), read_package_group(workspace)
    wanted = [name for name in names or () if packages is None or name != packages.name]
    servers, broken = workspace.load_servers(wanted) if wanted or not names else ([], [])
    found = [planner.propose(server) for server in servers]
    found += [ReleaseProposal(one.name, "refused", code="broken", message=one.message, hint=one.hint) for one in broken]
    if packages is not None and (not names or packages.name in names):
        found.insert(0, planner.guarded(packages.name, lambda: planner.propose_packages(packages)))
    return found


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class _Planner:
    workspace: Workspace
    repository: Repository
    read: Reader

    @cached_property
    def tags(self) -> dict[str, ReleaseTag]:
        return self.repository.tags()

    @cached_property
    def last(self) -> dict[str, ReleaseTag]:
        return _newest(self.repository.tags(merged=True))

    @cached_property
    def committed(self) -> dict[str, ReleaseTag]:
        """Return each server's newest release according to commit trailers."""
        return _newest(self.repository.committed())

    @cached_property
    def dirty(self) -> list[str]:
        return self.repository.dirty()

    @cached_property
    def same(self) -> set[str]:
        """Return the servers whose committed files have not changed since their last release."""
        known = {server.name for server in self.workspace.servers()}
        return self.repository.unchanged_servers({name: tag.commit for name, tag in self.last.items() if name in known})

    def propose(self, server: WorkspaceServer) -> ReleaseProposal:
        return self.guarded(server.name, lambda: self._proposal(server))

    def guarded(self, name: str, propose_one: Callable[[], ReleaseProposal]) -> ReleaseProposal:
        try:
            return propose_one()
        except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the other servers
            code, broke = str(getattr(error, "code", "broken")), broken_server_of_error(name, error)
            message = broke.message.removeprefix(f"{code}: ")
            before = self.last[name].version if name in self.last else ""
            return ReleaseProposal(name, "refused", before, code=code, message=message, hint=broke.hint)

    def propose_packages(self, packages: PackageGroup) -> ReleaseProposal:
        """Return the proposal for packages that share one version."""
        stated, last = packages.version, self.last.get(packages.name)
        if pending := self._pending(packages.name, stated):
            return pending
        before, noted = last.version if last else "", packages.unreleased
        if not noted:
            return ReleaseProposal(packages.name, "current", before=before, version=before)
        asked = ensure_sufficient_version(before, stated, packages.step) if before else stated
        reasons: tuple[str, ...] = ("never released",) if last is None else ()
        items = sum(line.startswith("- ") for line in noted.splitlines())
        reasons += (f"{pluralize(items, 'change')} in {changelog.FILE}",)
        return self._free(
            ReleaseProposal(packages.name, "due", before, str(Version.read(asked)), packages.step, reasons)
        )

    def _proposal(self, server: WorkspaceServer) -> ReleaseProposal:
        state = Store(self.workspace).state(server.name)
        if state.retired:
            return ReleaseProposal(server.name, "retired")
        return self._pending(server.name, read_source_version(server)) or self._due(server, state)

    def _pending(self, name: str, stated: str) -> ReleaseProposal | None:
        """Return a release that has a commit but no tag. The sources must still have the release's version."""
        committed, last = self.committed.get(name), self.last.get(name)
        there = self.tags.get(committed.name) if committed else None
        if committed is None or (there and there.commit == committed.commit):
            return None
        if there is not None:
            raise ReleaseError(
                "tag-elsewhere",
                f"{committed.name} points to {there.commit[:12]}, but this branch released it in "
                f"{committed.commit[:12]}",
                hint=f"if the tag was never pushed, run 'git tag -d {committed.name}'; otherwise release another version",
            )
        if Version.read(stated) != committed.order:
            return None
        before, reasons = last.version if last else "", (f"its commit {committed.commit[:12]} has no tag yet",)
        return ReleaseProposal(name, "pending", before, committed.version, reasons=reasons, commit=committed.commit)

    def _due(self, server: WorkspaceServer, state: ServerState) -> ReleaseProposal:
        last, notes = self.last.get(server.name), read_changelog_fragments(server.folder)
        reasons = self._reasons(server, state, notes)
        if reasons:
            _refuse_stale(server, state)
        offered = _promoted(self.workspace, state) if last is None else ""
        before = last.version if last else state.channels[offered].version if offered else ""
        if not reasons:
            return ReleaseProposal(server.name, "current", before=before, version=before)
        after = self.read(server)
        if not before:
            found, step = compare_contracts(self._staged(state) or after, after), _largest_step(notes)
            version = str(Version.read(after.version)) if after.version else ""
        else:
            base = self._released(last, state) if last else find_contract(self.workspace, state, offered)
            found = compare_contracts(replace(base, version=before), after)
            step = _release_step(server, found, notes)
            version = str(Version.read(ensure_sufficient_version(before, after.version, step)))
        if not version:
            raise ReleaseError("version", "its sources declare no version", hint="set a version in pyproject.toml")
        version = self._unoffered(server, version)
        return self._free(
            ReleaseProposal(server.name, "due", before, version, step, reasons, notes, found.changes, after.tools)
        )

    def _unoffered(self, server: WorkspaceServer, version: str) -> str:
        """Skip versions that a channel ever offered, because a version must always stand for the same bytes."""
        known = candidates_by_offered_version(Store(self.workspace).history(server.name))
        while canonicalize_version(version) in known:
            version = next_version(version, "patch")
        return version

    def _free(self, proposal: ReleaseProposal) -> ReleaseProposal:
        if (there := self.tags.get(proposal.tag.name)) is not None:
            raise ReleaseError(
                "tag-elsewhere",
                f"tag {there.name} already exists at {there.commit[:12]}, which this branch does not contain",
                hint=f"git merge {there.name}; if the tag was never pushed, run 'git tag -d {there.name}' instead",
            )
        return proposal

    def _reasons(
        self, server: WorkspaceServer, state: ServerState, notes: Sequence[ChangelogFragment]
    ) -> tuple[str, ...]:
        last, found = self.last.get(server.name), []
        if last is not None:
            files = self._changed(server, last)
            if files:
                more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
                found.append(f"changed since {last.name}: {', '.join(files[:_SHOWN])}{more}")
        elif offered := _promoted(self.workspace, state):
            known = state.candidates.get(state.channels[offered].candidate)
            if known is None or known.inputs.get("source") != _input("source", server, state):
                found.append(f"changed since {offered} got {state.channels[offered].version}")
        else:
            found.append("never released")
        return (*found, *([pluralize(len(notes), "note")] if notes else ()))

    def _changed(self, server: WorkspaceServer, last: ReleaseTag) -> list[str]:
        folder = f"servers/{server.name}/"
        dirty = [path for path in self.dirty if path.startswith(folder)]
        if server.name in self.same and not dirty:
            return []
        paths = {*self.repository.changed_since(last.commit, folder), *dirty}
        inner = (path.removeprefix(folder) for path in sorted(paths))
        return [path for path in inner if path.partition("/")[0] not in {*NOT_BUILT, changelog.FILE}]

    def _staged(self, state: ServerState) -> Contract | None:
        """Return the tool list that a channel offers before the first release; None if it is unknown."""
        try:
            return find_contract(self.workspace, state)
        except (NotFoundError, StateError):
            return None

    def _released(self, last: ReleaseTag, state: ServerState) -> Contract:
        """Return the tool list of the last release. If a person made the tag by hand, use a channel's tool list."""
        text = self.repository.read(last.commit, f"servers/{last.server}/{CONTRACT}")
        if text is not None:
            return parse_contract(text, last.name)
        try:
            return find_contract(self.workspace, state)
        except NotFoundError as error:
            raise ReleaseError(
                "contract",
                f"{last.name} does not record its tools, and no channel offers {last.server}",
                hint=(
                    f"check out {last.name}, run 'mcpfactory pipeline run {last.server}', return to this branch, and release again"
                ),
            ) from error


def _newest(tags: Mapping[str, ReleaseTag]) -> dict[str, ReleaseTag]:
    return {tag.server: tag for tag in sorted(tags.values(), key=lambda tag: tag.order)}


def _promoted(workspace: Workspace, state: ServerState) -> str:
    """Return the last channel with a source channel that offers the server, or ""."""
    names = [channel.name for channel in read_channels(workspace) if channel.source]
    return next((name for name in reversed(names) if name in state.channels), "")


def _input(name: str, server: WorkspaceServer, state: ServerState) -> str:
    return shorten_hash(INPUTS[name](InputReader(server, state)))


def _refuse_stale(server: WorkspaceServer, state: ServerState) -> None:
    from mcpfactory_codegen.servers.create import stale_files  # noqa: PLC0415 - heavy; few releases need it

    record = state.stages.get("generate")
    if not server.document or record is None:
        return
    # `mcpfactory update` also generates the files, but records no run of the stage.
    changed = record.inputs.get("document") != _input("document", server, state)
    if changed and stale_files(server.folder):
        raise ReleaseError(
            "stale",
            "the tools were not generated from the current API document",
            hint=f"mcpfactory pipeline run {server.name}, and commit the changes",
        )


def _release_step(server: WorkspaceServer, found: ContractComparison, notes: Sequence[ChangelogFragment]) -> Step:
    noted, before = _largest_step(notes), found.before.version
    if any(note.stated for note in notes) and not is_sufficient_step(before, next_version(before, noted), found.needed):
        change = next(
            one for one in found.changes if one.kind == ("breaking" if found.needed == "major" else "additive")
        )
        stated = next(note for note in notes if note.stated)
        raise ReleaseError(
            "lowered",
            f"{stated.file} states {stated.stated}, but the changes to the contract require {found.needed}: "
            f"{change.code} {change.message}",
            hint=(
                f"state {found.needed} in the name of {stated.file}, or revert the change; list all changes with "
                f"'mcpfactory diff {server.name}'"
            ),
        )
    return max(noted, found.needed, key=STEPS.index)


def _largest_step(notes: Sequence[ChangelogFragment]) -> Step:
    return max((note.step for note in notes), key=STEPS.index, default="patch")
