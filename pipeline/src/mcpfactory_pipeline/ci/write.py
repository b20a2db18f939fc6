"""Writing what a CI provider runs, and what that needs in the workspace: the factory, and where uv finds it."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.ci.bring import bring, record
from mcpfactory_pipeline.ci.origin import Origin, read_origin
from mcpfactory_pipeline.ci.providers import PROVIDERS, Written
from mcpfactory_pipeline.ci.settings import read_ci
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

__all__ = ["is_fresh", "take_from", "write"]


def is_fresh(workspace: Workspace, written: Written) -> bool:
    """Whether a file is what this workspace and this version would write."""
    file = workspace.root / written.place
    return file.is_file() and file.read_text(encoding="utf-8") == written.text(read_ci(workspace.config))


def write(workspace: Workspace, written: Written) -> list[str]:
    """Write a file, and what the workspace's origin asks for; return the paths that changed.

    Raises `ConfigError` for settings that cannot be used, `StageError` when a wheel of the factory cannot be had.
    """
    origin = read_origin(workspace.config)
    changed = bring(workspace.root, origin) if origin else []
    return [*changed, *_write(workspace, written)]


def take_from(workspace: Workspace, origin: Origin) -> list[str]:
    """Make jobs and uv take the factory from there, in all files that were written before; return the paths that changed.

    Raises as `write` does; nothing of the workspace was changed then but the wheels.
    """
    changed = bring(workspace.root, origin)
    if record(workspace.root / CONFIG, origin):
        changed.append(CONFIG)
    now = Workspace.find(workspace.root)
    for purposes in PROVIDERS.values():
        for written in purposes:
            if (workspace.root / written.place).is_file():
                changed += _write(now, written)
    return changed


def _write(workspace: Workspace, written: Written) -> list[str]:
    if is_fresh(workspace, written):
        return []
    file: Path = workspace.root / written.place
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, written.text(read_ci(workspace.config)).encode())
    return [written.place.as_posix()]
