"""A project is adopted and becomes one of the runtime in one go: what would be written, and both versions as they would be installed."""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption.proposal import AdoptionProposal, ProposedFile, propose
from mcpfactory_pipeline.adoption.pypi import compile_lock, make_environment, programs, python_program
from mcpfactory_pipeline.adoption.recognise import recognise
from mcpfactory_pipeline.adoption.sources import LOCKS, WHEELS
from mcpfactory_pipeline.adoption.wish import Wish
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError, ServerError
from mcpfactory_pipeline.base.hashing import source_files
from mcpfactory_pipeline.base.versions import tool_version
from mcpfactory_pipeline.build.distributions import RUNTIME, runtime_wheel
from mcpfactory_pipeline.build.frontend import copy_files
from mcpfactory_pipeline.build.leaks import without_ignored
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.build.wheels import build_packages
from mcpfactory_pipeline.ci.origin import INDEX, read_origin
from mcpfactory_pipeline.isolation.sandbox import make_sandbox
from mcpfactory_pipeline.migration.compare import (
    MIGRATED,
    ORIGINAL,
    Likeness,
    Observer,
    ServerImage,
    compare_observed,
    observe_command,
)
from mcpfactory_pipeline.migration.project import PROJECT, ProjectMigration, dependencies, migrate_project
from mcpfactory_pipeline.migration.requests import CallPermission
from mcpfactory_pipeline.plan.isolation import isolation_settings
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, read_toml

__all__ = ["RuntimeAdoption", "compare_adoption", "propose_runtime"]

_AS_IT_IS: Final = "mcpfactory adopt without --as takes a server as it is"


@dataclass(frozen=True, slots=True)
class RuntimeAdoption:
    """An adoption that is not carried out yet, of a project that becomes one of the runtime.

    `folder` is the project and `names` its files. `proposal` is None where something is left to do by hand: then nothing can be written.
    """

    folder: Path
    names: tuple[str, ...]
    migration: ProjectMigration
    proposal: AdoptionProposal | None = None


def propose_runtime(workspace: Workspace, wish: Wish) -> RuntimeAdoption:
    """Return what a project becomes, and what would be written of it. Nothing of it is run.

    Raises:
        RefusedError: it is no project of Python.
        ConfigError: it cannot be read, or was written with neither FastMCP nor the official SDK.
        PipelineError: as `recognise` and `propose`.
    """
    folder = (wish.here / wish.what).resolve()
    if wish.command or not (folder / PROJECT).is_file():
        raise RefusedError(
            f"{wish.what or wish.command} is no folder with a {PROJECT}, and only such a project becomes one of the runtime",
            hint=f"{_AS_IT_IS}; mcpfactory migrate FILE is for a file alone",
        )
    names = tuple(without_ignored(folder, source_files(folder)))
    migration = _migrated(folder, names)
    if not migration.complete:
        return RuntimeAdoption(folder, names, migration)
    with tempfile.TemporaryDirectory(prefix="mcpfactory-adopt-") as work:
        copy = Path(work, "source")
        _lay_out(folder, names, migration, copy)
        wheels = _runtime(workspace)
        read = replace(wish, reading=copy, wheels=wheels.parent if wheels else None)
        found = recognise(workspace, read)
        if wheels:
            found = replace(found, copied={**found.copied, f"{WHEELS}/{wheels.name}": wheels})
        proposal = propose(workspace, found, wish.name)
    place = str(found.table["path"])
    changed = {f"{place}/{path}": pair for path, pair in migration.changed().items()}
    files = (*proposal.files, *(ProposedFile(path, *pair) for path, pair in sorted(changed.items())))
    copies = {path: source for path, source in proposal.copies.items() if path not in changed}
    return RuntimeAdoption(folder, names, migration, replace(proposal, files=files, copies=copies))


def _migrated(folder: Path, names: tuple[str, ...]) -> ProjectMigration:
    texts = {}
    try:
        for name in names:
            if name == PROJECT or name.endswith(".py"):
                texts[name] = (folder / name).read_bytes().decode("utf-8")
        migration = migrate_project(texts, tool_version(RUNTIME))
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        raise ConfigError(f"{folder} cannot be migrated: {error}", hint=f"mend it first; {_AS_IT_IS}") from error
    if not migration.files:
        raise ConfigError(f"nothing in {folder} imports FastMCP or the official SDK", hint=_AS_IT_IS)
    return migration


def _runtime(workspace: Workspace) -> Path | None:
    """Return the wheel of the runtime, which stands beside the server; None where the index has it."""
    origin = read_origin(read_toml(workspace.root / CONFIG))
    if origin is not None and origin.kind == INDEX:
        return None
    with contextlib.redirect_stdout(io.StringIO()):  # uv tells what it builds; what goes wrong is in its error
        return runtime_wheel(workspace.artifacts)


def _lay_out(folder: Path, names: tuple[str, ...], migration: ProjectMigration | None, place: Path) -> None:
    """Copy a project; with a migration as it will be."""
    copy_files(folder, names, place)
    for path, (_, after) in migration.changed().items() if migration else ():
        (place / path).write_bytes(after.encode())


def compare_adoption(
    workspace: Workspace, adoption: RuntimeAdoption, permission: CallPermission, seconds: float
) -> Likeness:
    """Build and install both versions, each with what it depends on, start them in a sandbox, and return how alike they are.

    Args:
        workspace: says how code is kept apart.
        adoption: one with a proposal.
        permission: which tools may be called.
        seconds: for each start with all its calls.

    Raises:
        ServerError: one of them cannot be built, installed, started or asked.
        StageError: an index did not answer.
        ConfigError: a call was given of a tool that the original does not list.
    """
    assert adoption.proposal is not None  # the caller looked
    found = adoption.proposal.recognised
    start, environ = tuple(found.table["start"]), dict.fromkeys(found.environment, "dummy")
    with tempfile.TemporaryDirectory(prefix="mcpfactory-compare-") as work:
        settings = isolation_settings(workspace.settings)
        wheel = next((source for path, source in found.copied.items() if path.startswith(f"{WHEELS}/")), None)
        first = _InstalledVersion(Path(work, "before"), ORIGINAL, start, environ, settings)
        first.install(adoption, None, None)
        second = _InstalledVersion(Path(work, "after"), MIGRATED, start, environ, settings)
        second.install(adoption, adoption.migration, wheel)
        return asyncio.run(
            compare_observed(
                lambda: first.observe(permission, seconds), lambda: second.observe(permission, seconds), permission
            )
        )


@dataclass(frozen=True, slots=True)
class _InstalledVersion:
    """One version: where it is built and installed, what it is called, how it starts, with which variables, and how it is kept apart."""

    place: Path
    about: str
    start: tuple[str, ...]
    environ: Mapping[str, str]
    settings: Mapping[str, object]

    def install(self, adoption: RuntimeAdoption, migration: ProjectMigration | None, wheel: Path | None) -> None:
        source, files = self.place / "source", self.place / "files"
        files.mkdir(parents=True)
        _lay_out(adoption.folder, adoption.names, migration, source)
        needs = list(dependencies((source / PROJECT).read_text(encoding="utf-8")))
        try:
            built, _ = build_packages(source, adoption.names, self.place / "build", settings=self.settings, log=False)
            for one in filter(None, (built, wheel)):
                shutil.copy(one, files / one.name)
            lock = compile_lock(needs, (), self.place, wheels=files) if needs else ""
            (files / LOCKS["python"]).write_text(lock, encoding="utf-8")
            make_environment(files, sorted(one.name for one in files.iterdir()), self.place, log=False)
        except ProgramRefusedError as error:
            raise ServerError(f"{self.about} cannot be installed: {error}", hint=_AS_IT_IS) from error

    async def observe(self, permission: CallPermission, seconds: float) -> ServerImage:
        with tempfile.TemporaryDirectory(prefix="started-", dir=self.place) as work:
            sandbox = make_sandbox(self.settings, Path(work), readable=(programs(self.place).parent,))
            empty = sandbox.folder / "empty"
            empty.mkdir(parents=True)
            command = sandbox.command(python_program(self.place, self.start))
            observer = Observer(self.about, seconds, permission, _AS_IT_IS)
            return await observe_command(command, empty, {**sandbox.environ, **self.environ}, observer)
