"""Processes that a job leaves behind: they are adopted by the process that started it, and ended before anybody looks at what it found.

Where no level of isolation keeps server code apart, a process that outlives its job could change files of the job after they were
judged. On Linux an orphan becomes a child of its nearest ancestor that asked for it; elsewhere only sessions are ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

__all__ = ["adopt_orphans", "descendants", "end_descendants"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_PROC: Final = Path("/proc")
_ENDED: Final = (b"Z", b"X")
_PATIENCE: Final = 10.0  # seconds for processes that were killed to be gone
_PAUSE: Final = 0.01  # seconds between two looks


def adopt_orphans() -> bool:
    """Have orphans among the descendants of this process become its children; whether the system can do that."""
    if sys.platform != "linux":
        return False
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def end_descendants(spare: AbstractSet[int] = frozenset()) -> int:
    """End every process that descends from this one, but those to `spare`; return how many there were.

    Looks again until there is none: one that was just started by another that is being ended is found, too.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE
    while (found := descendants(os.getpid()) - spare) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        time.sleep(_PAUSE)
    return len(ended)


def descendants(leader: int) -> set[int]:
    """Return the processes that descend from one and have not ended; none where the system does not say."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(_PROC):  # noqa: PTH208 - read often
            with contextlib.suppress(OSError, ValueError):
                state, parent = (_PROC / str(int(name)) / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                if state not in _ENDED:
                    children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    todo = [leader]
    while todo:
        more = children.get(todo.pop(), ())
        found.update(more)
        todo += more
    return found
