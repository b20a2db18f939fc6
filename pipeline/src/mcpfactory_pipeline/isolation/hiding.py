"""Hide the environment and the memory of a process from other programs of the same user."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # prctl(2)


def hide_process() -> None:
    """Make `/proc/<pid>/environ`, `mem` and `fd` of this process unreadable for programs without rights over all processes.

    Holds until the process executes another program. Does nothing where the system is not Linux. A program that runs as root is
    not kept out.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
