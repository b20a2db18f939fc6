"""Checks that every new server must pass: its tests, the strict type checker, and the linter with its and our rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from filelock import FileLock

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / "build/mypy-of-tests"
THEIRS: Final = (
    "--ignore=TID252",  # a server's modules import each other relatively, so that its package can be renamed
    "--config=lint.isort.known-first-party=[]",  # in a server, the runtime is an ordinary third-party package
)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in a server's folder, with the server importable."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def check_types(folder: Path, *parts: str) -> None:
    """Fail unless these parts of a folder are strictly typed; keep mypy's cache of the libraries for later calls."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "lock"):
        ran = run(folder, "mypy", "--strict", f"--cache-dir={CACHE}", *parts)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def assert_passes(folder: Path) -> str:
    """Fail unless the server in the folder passes its tests, the type checker and the linter. Return pytest output."""
    ran = run(folder, "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    assert (ran.returncode, "passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
    said = ran.stdout
    check_types(folder, "src", "tests")
    for command in (
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "check", "--no-cache", f"--config={ROOT / 'pyproject.toml'}", *THEIRS, "src"],
        ["ruff", "format", "--no-cache", "--check", "."],
    ):
        ran = run(folder, *command)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    return said
