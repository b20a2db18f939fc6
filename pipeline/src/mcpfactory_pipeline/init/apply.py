"""Making a workspace in a folder."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.base.errors import ConfigError, WorkspaceError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.ci.origin import Origin
from mcpfactory_pipeline.ci.vendored import refresh
from mcpfactory_pipeline.init import repository
from mcpfactory_pipeline.init.setup import ADD, WHEELS, WRITE, Setup, read_setup
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["apply_setup", "init_workspace"]


def init_workspace(folder: Path, name: str = "", *, git: bool = True, origin: Origin | None = None) -> Workspace:
    """Make a workspace in `folder` and return it; `name` is the folder's name by default.

    A folder that is a workspace already gets what it lacks and nothing else; `origin` is where jobs take the factory from.
    With `git`, a repository is started unless the folder lies in one or git is not installed.

    Raises:
        WorkspaceError: for a folder that holds other things, and as `read_setup` and `apply_setup` do.
    """
    setup = read_setup(folder, name, origin)
    if setup.others:
        shown = ", ".join(setup.others[:5]) + (" …" if len(setup.others) > 5 else "")
        raise WorkspaceError(f"{folder} is not empty: {shown}", hint="name a new or empty folder: mcpfactory init NAME")
    return apply_setup(setup, git=git)


def apply_setup(setup: Setup, *, git: bool = True) -> Workspace:
    """Do what a setup says, and return the workspace.

    Raises:
        ConfigError: when something is in the way.
        StageError: when a wheel cannot be had (nothing was written then).
        WorkspaceError: for a folder that cannot be written.
    """
    if setup.blocked:
        obstacles = "; ".join(f"{change.path}: {change.note}" for change in setup.blocked)
        raise ConfigError(
            f"{setup.folder} cannot become a workspace: {obstacles}",
            hint="move what is named, or choose another folder",
        )
    try:
        for change in setup.changes:
            if change.action == WHEELS:  # before all others: it may fail
                refresh(setup.folder / change.path)
        for change in setup.changes:
            file = setup.folder / change.path
            if change.action in {WRITE, ADD}:
                file.parent.mkdir(parents=True, exist_ok=True)
                before = file.read_bytes() if change.action == ADD else b""
                replace_file(file, before + change.text.encode())
    except OSError as error:
        raise WorkspaceError(
            f"{setup.folder} cannot be written: {error.strerror}", hint="choose a folder that you own"
        ) from error
    if git:
        repository.init_repository(setup.folder)
    return Workspace.find(setup.folder)
