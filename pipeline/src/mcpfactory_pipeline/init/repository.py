"""The repository around a folder: what git says of it. Without git, or without a repository, nothing is said."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["ignored", "init_repository", "main_branch", "root_of"]


def root_of(folder: Path) -> Path | None:
    """Return the root of the repository that a folder lies in, or would lie in."""
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    top = _ask(there, "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None


def main_branch(folder: Path) -> str:
    """Return the branch that work comes together on: where the remote's HEAD points, else the one that is checked out; else ""."""
    if root_of(folder) is None:
        return ""
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    remote = _ask(there, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    found = remote or _ask(there, "symbolic-ref", "--short", "HEAD")
    return found if re.fullmatch(r"[A-Za-z0-9][\w./-]{0,99}", found) else ""


def ignored(folder: Path, paths: Iterable[str]) -> list[str]:
    """Those of the paths below a folder that git would not track."""
    named = list(paths)
    return _ask(folder, "check-ignore", *named).splitlines() if named else []


def init_repository(folder: Path) -> None:
    """Start a repository, unless the folder lies in one. A workspace is of use without git, too; state is files."""
    if root_of(folder) is None:
        _ask(folder, "init", "--quiet", "--initial-branch", "main")


def _ask(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
