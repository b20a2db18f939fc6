"""CI files that `mcpfactory ci` writes for each provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.delivery.ci import github, gitlab
from mcpfactory_pipeline.delivery.ci.factory_origin import (
    FactoryOrigin,
    read_ci_settings,
    read_origin,
    record_origin,
    write_origin_files,
)
from mcpfactory_pipeline.workspace.settings import CiSettings
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace


@dataclass(frozen=True, slots=True)
class CiFile:
    """A CI file: its path in the workspace, and the function that generates its text."""

    place: Path
    text: Callable[[CiSettings], str]


# CI provider → pipeline file and release file
PROVIDERS: Final[Mapping[str, tuple[CiFile, CiFile]]] = {
    "github": (
        CiFile(github.PLACE, github.github_workflow),
        CiFile(github.RELEASE_PLACE, github.github_release_workflow),
    ),
    "gitlab": (CiFile(gitlab.PLACE, gitlab.gitlab_pipeline), CiFile(gitlab.RELEASE_PLACE, gitlab.gitlab_release)),
}


def is_ci_file_current(workspace: Workspace, written: CiFile) -> bool:
    """Return True if a CI file is identical to the file that this version would write."""
    file = workspace.root / written.place
    return file.is_file() and file.read_text(encoding="utf-8") == written.text(read_ci_settings(workspace.settings))


def write_ci_file(workspace: Workspace, written: CiFile) -> list[str]:
    """Write a CI file and the files of the factory's origin. Return the changed paths."""
    origin = read_origin(workspace.settings)
    changed = write_origin_files(workspace.root, origin) if origin else []
    return [*changed, *_update(workspace, written)]


def change_factory_origin(workspace: Workspace, origin: FactoryOrigin) -> list[str]:
    """Set the origin of the factory and update existing CI files. Return the changed paths.

    Raises:
        ConfigError: a setting is invalid. In this case, only the wheels have been changed.
    """
    changed = write_origin_files(workspace.root, origin)
    if record_origin(workspace.root / CONFIG, origin):
        changed.append(CONFIG)
    now = Workspace.find(workspace.root)
    for purposes in PROVIDERS.values():
        for written in purposes:
            if (workspace.root / written.place).is_file():
                changed += _update(now, written)
    return changed


def _update(workspace: Workspace, written: CiFile) -> list[str]:
    if is_ci_file_current(workspace, written):
        return []
    replace_file(workspace.root / written.place, written.text(read_ci_settings(workspace.settings)).encode())
    return [written.place.as_posix()]
