"""What git says in a folder; nothing where git is not installed, there is no repository, or the command fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["QUIET", "git_output", "git_text"]

QUIET: Final = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),  # files of a folder that look like a repository are none
)
"""Options of every git command of ours: the configuration of a repository that somebody else made runs nothing."""


def git_output(folder: Path | None, *arguments: str) -> bytes | None:
    """Return what a git command prints; None when it cannot be run or fails."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *QUIET, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def git_text(folder: Path | None, *arguments: str) -> str:
    """Return what a git command prints as text, without white space around it; "" when it cannot be run or fails."""
    return (git_output(folder, *arguments) or b"").decode(errors="replace").strip()
