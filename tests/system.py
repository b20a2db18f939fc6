"""Processes, ports, files and Git of the machine, for tests."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return True if the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def ended_process() -> int:
    """Return the ID of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def free_port() -> int:
    """Return a loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Return each file below a folder by its path there."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def git(folder: Path, *words: str, text: str | None = None) -> str:
    """Run git as a test person with `text` on stdin; return its stripped stdout."""
    person = ("-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *person, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, input=text).stdout.strip()
