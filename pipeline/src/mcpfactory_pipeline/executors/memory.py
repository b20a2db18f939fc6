"""How much memory processes use, and how much a machine has left. Known on Linux, where `/proc` says so; elsewhere not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["memory_available", "memory_used"]

_PROC: Final = Path("/proc")


def memory_used(leader: int) -> int:
    """Bytes of resident memory of a process, its session and all that descends from it; 0 where the system does not say."""
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    resident: dict[int, int] = {}
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - looked at several times a second for each job
    except OSError:
        return 0
    for name in names:
        if name.isdigit():
            try:
                fields = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            pid = int(name)
            parents[pid], sessions[pid], resident[pid] = int(fields[1]), int(fields[3]), int(fields[21])
    ours = {pid for pid, session in sessions.items() if session == leader} | {leader}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        ours |= more
        grown = bool(more)
    return sum(resident.get(pid, 0) for pid in ours) * os.sysconf("SC_PAGE_SIZE")


def memory_available() -> int | None:
    """Bytes that new processes may take without swapping; None where the system does not say."""
    try:
        lines = (_PROC / "meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
