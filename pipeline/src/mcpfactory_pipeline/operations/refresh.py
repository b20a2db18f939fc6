"""Operation `refresh`: test servers with newer versions of their dependencies."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_bytes, shorten_hash
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.dependency_lock import locked_versions, resolve_dependencies, write_lock
from mcpfactory_pipeline.channels.candidate import find_artifact
from mcpfactory_pipeline.operations.operation import Omitted, Operation, OperationContext, OperationResult, Servers
from mcpfactory_pipeline.plan.fingerprint import INPUTS, InputReader, lock_file
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.errors import Exit

_OMIT: Final[Omitted] = {
    "dashboard": "a scheduled job or a person at a terminal runs it",
    "mcp": "a scheduled job or a person at a terminal runs it",
}


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A dependency whose version differs. `before` or `after` is "" if only one lock has the dependency."""

    server: str
    package: str
    before: str
    after: str


class RefreshResult(OperationResult):
    """Changed dependencies, and the worst outcome of each server that was tested with them."""

    changes: tuple[VersionChange, ...] = ()
    servers: dict[str, str] = Field(default={}, description="Server, and the worst outcome of its stages.")
    skipped: dict[str, str] = Field(default={}, description="Server without a lock to refresh, and the reason.")
    failed: dict[str, tuple[str, str]] = Field(default={}, description="Server, and an error with its hint.")
    ended: int = Field(default=0, description="Exit code of the run.")

    @property
    def exit_code(self) -> Exit:
        """Return the exit code of the run, or NEGATIVE if the dependencies of a server cannot be resolved."""
        return Exit(self.ended) or super().exit_code

    def errors(self) -> list[tuple[str, str]]:
        """Return the servers whose dependencies cannot be resolved."""
        return [(f"{server}: {message}", hint) for server, (message, hint) in self.failed.items()]

    def lines(self) -> list[str]:
        """Return one line for each change, and one for each tested server."""
        changes = [f"{one.server}: {one.package} {one.before or '-'} → {one.after or '-'}" for one in self.changes]
        return [*changes, *(f"{server}: {outcome}" for server, outcome in self.servers.items()), *super().lines()]

    def notes(self) -> tuple[str, ...]:
        """Return the servers without a lock."""
        return tuple(f"{server}: {reason}" for server, reason in self.skipped.items())


class Refresh(Operation):
    """Test servers with the newest dependencies.

    The dependencies of each server's newest candidate are resolved again. If a version changed, the stages that test
    the candidate run with the new versions. If a stage fails, the candidate keeps its earlier versions.
    """

    command: ClassVar[str] = "pipeline refresh"
    title: ClassVar[str] = "Refresh dependencies"
    result: ClassVar[type[OperationResult]] = RefreshResult
    omit: ClassVar[Omitted] = _OMIT

    servers: Servers = ()

    def run(self, context: OperationContext) -> RefreshResult:
        """Resolve, compare, and run the stages of the servers with changes."""
        workspace = context.workspace
        changes: list[VersionChange] = []
        earlier: dict[str, tuple[Path, str]] = {}
        skipped: dict[str, str] = {}
        servers, broken = workspace.load_servers(self.servers or None)
        failed = {one.name: (one.message, one.hint) for one in broken}
        for server in servers:
            context.notify(f"resolving the dependencies of {server.name} …")
            try:
                found, place, before = _resolved(workspace, server, dry_run=context.dry_run)
                changes += found
                earlier[server.name] = place, before
            except _NothingToRefreshError as reason:
                skipped[server.name] = str(reason)
            except PipelineError as error:
                failed[server.name] = (str(error), error.hint)
        changed = list(dict.fromkeys(one.server for one in changes))
        done = RefreshResult(
            message=f"{pluralize(len(changes), 'new version')} in {pluralize(len(changed), 'server')}",
            changes=tuple(changes),
            skipped=skipped,
            failed=failed,
            dry_run=context.dry_run,
        )
        if context.dry_run or not changed:
            return done
        run = partial(run_pipeline, workspace, reporter=context.reporter, stages=context.stages, stop=context.stop)
        outcome = run(changed)
        worse = [name for name in changed if earlier[name][1] and outcome.servers.get(name) in {"failed", "errored"}]
        for name in worse:
            write_lock(*earlier[name])
        if worse:
            run(worse)
        return done.model_copy(update={"servers": dict(outcome.servers), "ended": outcome.exit_code})


class _NothingToRefreshError(Exception):
    pass


def _resolved(workspace: Workspace, server: WorkspaceServer, *, dry_run: bool) -> tuple[list[VersionChange], Path, str]:
    """Resolve the dependencies of a server's newest candidate, and replace a different lock.

    Return the changes, the place of the lock, and its earlier text ("" without a lock).
    """
    if server.adopted:
        raise _NothingToRefreshError(f"adopted servers have their own lock: mcpfactory update {server.name}")
    state = Store(workspace).state(server.name)
    artifact = find_artifact(workspace, state)
    if artifact is None:
        raise _NothingToRefreshError(f"it has no candidate: mcpfactory pipeline run {server.name}")
    if not artifact.wheel.is_file():
        restore = f"mcpfactory pipeline restore {server.name} --candidate {artifact.id}"
        raise _NothingToRefreshError(f"its candidate is not on this machine: {restore}")
    place = lock_file(artifact.folder)
    before = place.read_text(encoding="utf-8") if place.is_file() else ""
    with tempfile.TemporaryDirectory(dir=workspace.artifacts) as work:  # below the root, where uv finds its settings
        after = resolve_dependencies(
            artifact.wheel, artifacts=workspace.artifacts, root=workspace.root, work=Path(work)
        )
    tested = INPUTS["dependencies"](InputReader(server, state))  # in a fresh clone, only the hash of the lock is known
    if shorten_hash(hash_bytes(after.encode())) == shorten_hash(tested):
        before = after
    if not dry_run:
        write_lock(place, after)
    old, new = locked_versions(before), locked_versions(after)
    changes = [
        VersionChange(server.name, package, old.get(package, ""), new.get(package, ""))
        for package in sorted(old.keys() | new.keys())
        if old.get(package) != new.get(package)
    ]
    return changes, place, before
