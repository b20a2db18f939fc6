"""Packages that are released together, and the check of a release tag.

The packages are released if the workspace's CHANGELOG.md has notes below `## Unreleased`. Headings such as `### Added`
determine the version step.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import JsonRecord, ReleaseError
from mcpfactory_pipeline.base.versions import STEPS, Step
from mcpfactory_pipeline.build.wheels import replace_source_version
from mcpfactory_pipeline.channels.contract import read_source_version
from mcpfactory_pipeline.delivery.releases import changelog
from mcpfactory_pipeline.delivery.releases.changelog import KINDS
from mcpfactory_pipeline.delivery.releases.git import ReleaseTag, Repository
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

_FIELDS: Final = ("name", "packages")
_KIND: Final = re.compile(r"^### +(?P<kind>\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PackageGroup:
    """Packages that share one version. `name` is the name of the packages in tags and commands."""

    root: Path
    name: str
    folders: tuple[str, ...]

    @property
    def version(self) -> str:
        """Return the version of all packages."""
        stated = {folder: str(self._project(folder).get("version", "")) for folder in self.folders}
        if len(set(stated.values())) > 1 or "" in stated.values():
            shown = ", ".join(f"{folder} {version or 'none'}" for folder, version in stated.items())
            raise ReleaseError(
                "version",
                f"{self.name} must have one version, but its packages declare: {shown}",
                hint="set the same version in each package",
            )
        return next(iter(stated.values()))

    @property
    def unreleased(self) -> str:
        """Return the changelog text below `## Unreleased`, or ""."""
        return changelog.unreleased_of(self._log())

    @property
    def step(self) -> Step:
        """Return the version step that the headings of the release notes require."""
        kinds = (found["kind"].lower() for found in _KIND.finditer(self.unreleased))
        return max((KINDS.get(kind, "patch") for kind in kinds), key=STEPS.index, default="patch")

    def files(self, version: str, day: date) -> dict[str, bytes]:
        """Return the new content of the files that a release changes, by path."""
        names = [str(self._project(folder).get("name", "")) for folder in self.folders]
        found = {changelog.FILE: changelog.release_unreleased_section(self._log(), version, day).encode()}
        for folder in self.folders:
            place, text = replace_source_version(self.root / folder, "", version)
            found[f"{folder}/{place}"] = _with_pins(text, names, version).encode()
        return found

    def _project(self, folder: str) -> Mapping[str, Any]:
        try:
            data = tomllib.loads((self.root / folder / "pyproject.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ReleaseError(
                "version",
                f"{folder}/pyproject.toml cannot be read: {error}",
                hint="correct 'packages' in [release] of mcpfactory.toml",
            ) from error
        project = data.get("project")
        return project if isinstance(project, dict) else {}

    def _log(self) -> str:
        try:
            return (self.root / changelog.FILE).read_bytes().decode()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise ReleaseError(
                "changelog",
                f"{changelog.FILE} is not in UTF-8: {error}",
                hint="save the changelog in UTF-8, and commit the file",
            ) from error


def read_package_group(workspace: Workspace) -> PackageGroup | None:
    """Return the packages in `[release]`, or None if the table is missing."""
    release = workspace.settings.release
    if release is None:
        return None
    name, folders = release.name or workspace.name, release.packages
    for folder in folders:
        if (
            Path(folder).is_absolute()
            or ".." in Path(folder).parts
            or not (workspace.root / folder / "pyproject.toml").is_file()
        ):
            raise setting_error(
                f"release.packages: {folder} is not a folder with a pyproject.toml",
                "name folders below the root of the workspace",
            )
    if (workspace.root / "servers" / name).is_dir():
        raise setting_error(
            f"release.name is {name!r}, which is also the name of a server: both would have the same tags",
            "choose another name",
        )
    return PackageGroup(workspace.root, name, folders)


def _with_pins(text: str, names: list[str], version: str) -> str:
    """Set the version in exact requirements for these packages, such as `"name[extra]==1.0"`."""
    any_name = "|".join(re.escape(name) for name in names)
    return re.sub(
        rf"""(["'](?:{any_name})(?:\[[^\]\n]*\])? *== *)[^"'\s;,]+""", lambda found: f"{found[1]}{version}", text
    )


@dataclass(frozen=True, slots=True)
class CheckedReleaseTag(JsonRecord):
    """A valid release tag. `candidate` is the local candidate with the same version, or ""."""

    tag: str
    server: str
    version: str
    commit: str
    candidate: str = ""


def check_release_tag(workspace: Workspace, name: str, *, branch: str = "") -> CheckedReleaseTag:
    """Check that a tag exists, is checked out, matches the version of its sources, and is on `branch`."""
    repository, wanted = Repository.around(workspace.root), ReleaseTag.read(name)
    if wanted is None:
        raise ReleaseError(
            "tag",
            f"{name} is not a valid release tag",
            hint="use the form <server>-vX.Y.Z of 'mcpfactory release apply'",
        )
    packages = read_package_group(workspace)
    shared = packages if packages and packages.name == wanted.server else None
    server = None if shared else workspace.server(wanted.server)
    there = repository.tags().get(name)
    if there is None:
        raise ReleaseError("tag", f"{name} does not exist in this repository", hint="git fetch --tags")
    if there.commit != repository.head():
        raise ReleaseError(
            "tag", f"{name} points to {there.commit[:12]}, which is not checked out", hint=f"git checkout {name}"
        )
    stated = shared.version if shared else read_source_version(server) if server else ""
    if stated != wanted.version:
        raise ReleaseError(
            "tag",
            f"{name} does not match the version of its sources, {stated}",
            hint="create tags with 'mcpfactory release apply'",
        )
    if branch and not repository.contains(branch, there.commit):
        raise ReleaseError("tag", f"{branch} does not contain {name}", hint=f"merge the commit into {branch} first")
    if server is None:
        return CheckedReleaseTag(name, wanted.server, wanted.version, there.commit)
    state = Store(workspace).state(server.name)
    known = state.candidates.get(state.candidate or "")
    built = state.candidate if known and known.version == wanted.version else None
    return CheckedReleaseTag(name, server.name, wanted.version, there.commit, built or "")
