"""Making a workspace in a folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from mcpfactory_pipeline.base.errors import WorkspaceError
from mcpfactory_pipeline.init.files import workspace_files
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, read_toml

__all__ = ["init_workspace"]

_HARMLESS = re.compile(r"\.git|LICEN[CS]E.*|README.*")  # what may lie in a folder that becomes a workspace


def init_workspace(folder: Path, name: str = "", *, git: bool = True) -> Workspace:
    """Makes a workspace in `folder` and returns it; `name` is the folder's name by default.

    A folder that is a workspace already gets what it lacks and nothing else. With `git`, a repository is started unless the
    folder lies in one or git is not installed. Raises `WorkspaceError` for a folder that holds other things, or cannot be
    written.
    """
    name = name or folder.name
    existing = folder / CONFIG
    is_workspace = existing.is_file() and "workspace" in read_toml(existing)
    try:
        others = sorted(entry.name for entry in folder.iterdir() if not _HARMLESS.fullmatch(entry.name))
    except FileNotFoundError:
        others = []
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be a workspace: {error.strerror}", hint="name a new or empty folder"
        ) from error
    if others and not is_workspace:
        shown = ", ".join(others[:5]) + (" …" if len(others) > 5 else "")
        raise WorkspaceError(f"{folder} is not empty: {shown}", hint="name a new or empty folder: mcpfactory init NAME")
    try:
        for path, text in workspace_files(name).items():
            file = folder / path
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be written: {error.strerror}", hint="choose a folder that you own"
        ) from error
    if git:
        _start_repository(folder)
    return Workspace.find(folder)


def _start_repository(folder: Path) -> None:
    def call(*arguments: str) -> bool:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False).returncode == 0

    try:
        if not call("rev-parse", "--is-inside-work-tree"):
            call("init", "--quiet", "--initial-branch", "main")
    except FileNotFoundError:  # a workspace is of use without git, too; state is files
        return
