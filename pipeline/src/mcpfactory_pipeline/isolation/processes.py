"""Hide a process from other processes of the user, and end the orphans of a job.

Without isolation, an orphan of a job could change the job's files after they were checked. The process that started a
job therefore adopts the job's orphans, and ends them before it reads the results. On Linux, an orphan becomes a child
of the nearest ancestor that has requested to adopt orphans. On systems other than Linux, only processes in the job's
session are ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1  # option of prctl(2)
_PR_SET_DUMPABLE: Final = 4  # option of prctl(2)
_PR_SET_CHILD_SUBREAPER: Final = 36  # option of prctl(2)
_PROC: Final = Path("/proc")
_ENDED: Final = (b"Z", b"X")
_PATIENCE: Final = 10.0  # maximum seconds to wait until killed processes have ended
_PAUSE: Final = 0.01  # seconds between two searches for processes
_LOOKS: Final = 3  # number of consecutive searches that must find no process


def hide_process() -> None:
    """Hide `/proc/<pid>/environ`, `mem` and `fd` of this process from the user's other programs.

    The protection lasts until the process executes another program. The function does nothing on systems other than
    Linux.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Let this process adopt its orphaned descendants; return True on success."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Let the system kill this process when its parent ends; return True on success."""
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
    return False


def end_descendants(spare: AbstractSet[int] = frozenset()) -> int:
    """End every descendant of this process except those in `spare`; return the number of ended processes.

    Scans repeat until several scans find nothing. A process that forks and exits may be gone before a scan reads its
    ID. A signal to the group of an ended process still reaches the process's children. A child that leaves its group
    becomes a child of this process, and a later scan ends the child.
    """
    ended: set[int] = set()
    seen: set[int] = set()
    # Descendants that existed before the first signal. Each descendant is reaped by its own parent.
    started: set[int] | None = None
    quiet, deadline = 0, time.monotonic() + _PATIENCE
    while quiet < _LOOKS and time.monotonic() < deadline:
        processes = _processes()
        below = _below(processes, os.getpid()) - spare
        spared = {os.getpgrp(), *(processes[pid].group for pid in spare if pid in processes)}
        new = {pid for pid in below if not (processes[pid].ended and pid in seen)}
        seen |= below
        quiet = 0 if new else quiet + 1
        started = {pid for pid in below if not processes[pid].ended} if started is None else started
        for group in {processes[pid].group for pid in new} - spared:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for pid in new:
            if not processes[pid].ended:
                ended.add(pid)
                _kill(pid)
        ended |= _end_adopted(spare | started, deadline)
        time.sleep(_PAUSE)
    return len(ended)


def _end_adopted(spare: AbstractSet[int], deadline: float) -> set[int]:
    """End and reap new children of this process, except `spare`; return the children that were killed."""
    met: set[int] = set()
    while (children := _children() - spare) and time.monotonic() < deadline:
        for pid in children:
            _kill(pid)
            with contextlib.suppress(ChildProcessError):
                found, status = os.waitpid(pid, os.WNOHANG)
                if found and os.WIFSIGNALED(status):
                    met.add(pid)
    return met


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _children() -> set[int]:
    """Return the IDs of this process's children, including ended children; empty if unknown."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in (_PROC / "self/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (task / "children").read_bytes().split()))
    return found


def descendants(leader: int) -> set[int]:
    """Return the IDs of a process's running descendants; empty if the system does not report processes."""
    processes = _processes()
    return {pid for pid in _below(processes, leader) if not processes[pid].ended}


def kill_known_processes(known: AbstractSet[int]) -> None:
    """Kill the listed processes that still descend from this process.

    The check is necessary, because the system may reuse the IDs of ended processes.
    """
    for pid in known & descendants(os.getpid()) if known else ():
        _kill(pid)


class _Process(NamedTuple):
    parent: int
    group: int
    ended: bool


def _processes() -> dict[int, _Process]:
    """Return the processes of this machine by ID; empty if the system does not report processes."""
    found: dict[int, _Process] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(_PROC):  # noqa: PTH208 - pathlib is slower
            with contextlib.suppress(OSError, ValueError):
                with open(f"{_PROC}/{int(name)}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - pathlib is slower
                    state, parent, group = file.read().rpartition(b")")[2].split()[:3]
                found[int(name)] = _Process(int(parent), int(group), state in _ENDED)
    return found


def _below(processes: Mapping[int, _Process], leader: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    todo = [leader]
    while todo:
        more = children.get(todo.pop(), ())
        found.update(more)
        todo += more
    return found
