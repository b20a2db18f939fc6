"""What git says in a folder; nothing where git is not installed, there is no repository, or the command fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["git_output", "git_text"]


def git_output(folder: Path | None, *arguments: str) -> bytes | None:
    """Return what a git command prints; None when it cannot be run or fails."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments],
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
