"""The repository around a folder: what git says of it. Without git, or without a repository, nothing is said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mcpfactory_pipeline.base.git import git_text

__all__ = ["forge_owner", "ignored", "init_repository", "main_branch", "root_of"]


def root_of(folder: Path) -> Path | None:
    """Return the root of the repository that a folder lies in, or would lie in."""
    top = git_text(_existing(folder), "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None


def main_branch(folder: Path) -> str:
    """Return the branch that work comes together on: where the remote's HEAD points, else the one that is checked out; else ""."""
    if root_of(folder) is None:
        return ""
    there = _existing(folder)
    remote = git_text(there, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    found = remote or git_text(there, "symbolic-ref", "--short", "HEAD")
    return found if re.fullmatch(r"[A-Za-z0-9][\w./-]{0,99}", found) else ""


def forge_owner(folder: Path) -> str:
    """Return who owns the remote repository at GitHub or GitLab, as `@name`; "" where that is not known."""
    if root_of(folder) is None:
        return ""
    url = git_text(_existing(folder), "remote", "get-url", "origin")
    found = re.search(r"(?:github|gitlab)[\w.-]*[:/]([A-Za-z0-9][\w.-]{0,99})/", url)
    return f"@{found[1]}" if found else ""


def ignored(folder: Path, paths: Iterable[str]) -> list[str]:
    """Those of the paths below a folder that git would not track."""
    named = list(paths)
    return git_text(folder, "check-ignore", *named).splitlines() if named else []


def init_repository(folder: Path) -> None:
    """Start a repository, unless the folder lies in one. A workspace is of use without git, too; state is files."""
    if root_of(folder) is None:
        git_text(folder, "init", "--quiet", "--initial-branch", "main")


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.is_dir())
