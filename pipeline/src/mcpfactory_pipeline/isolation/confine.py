"""Runs a program that may read and write only what a file lists, by Linux's Landlock.

python -I -S confine.py RULES -- PROGRAM [ARGUMENT]…

RULES is JSON: `read` and `write` are lists of paths, each with all below it. Run by path, for it stands before every start of
a server: standard library only, and as little of it as can be.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from typing import Final

__all__ = ["OLDEST", "landlock_version"]

OLDEST: Final = 3  # of Landlock's interface: before it, files outside could be cut to nothing
# System calls, of equal number on every architecture that Python's wheels are made for.
_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_NO_NEW_PRIVILEGES: Final = 38  # prctl(2)
_DROP_CAPABILITY: Final = 24  # the same
_CAPABILITIES: Final = 64  # more than there are
_NO_CAPABILITIES: Final = (
    struct.pack("=Ii", 0x20080522, 0),
    struct.pack("=6I", *[0] * 6),
)  # capset(2), of this process
_READ: Final = 0b1101  # execute, read a file, read a folder
_FILE: Final = 0b100_0000_0000_0111  # of all rights those that a single file can have
_ALL: Final = (1 << 15) - 1  # every right over files that version 3 knows
_SCOPES: Final = 0b11  # abstract sockets and signals, which reach no process outside; from version 6 on
_FAILED: Final = 126  # as shells say that a program cannot be started


def landlock_version() -> int:
    """Return the version of Landlock's interface that the system has; 0 where it has none, or has it switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), 1)))
    except (OSError, AttributeError):
        return 0


def restrict(read: list[str], write: list[str]) -> None:
    """Take from this process, and from all that it starts, root's capabilities and every right over files but those listed.

    Paths that are not there are left out.

    Raises:
        OSError: when the system refuses.
    """
    libc, version = _libc(), landlock_version()
    attributes = struct.pack("=QQQ", _ALL, 0, _SCOPES if version >= 6 else 0)[: 24 if version >= 6 else 8]
    ruleset = _checked(libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
    for path, rights in [*((path, _READ) for path in read), *((path, _ALL) for path in write)]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = rights if os.path.isdir(path) else rights & _FILE  # noqa: PTH112 - no pathlib before the server's own start
        rule = struct.pack("=Qi", allowed, place)
        _checked(libc.syscall(_ADD, ruleset, 1, rule, 0))
        os.close(place)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    # Root's capabilities lead around Landlock: CAP_PERFMON reads the variables of any process.
    for capability in range(_CAPABILITIES):
        libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    _checked(libc.capset(*_NO_CAPABILITIES))
    _checked(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main() -> None:
    """Restrict this process, and become the program."""
    rules, _, program, *arguments = sys.argv[1:]
    try:
        with open(rules, encoding="utf-8") as stream:  # noqa: PTH123 - as above
            listed = json.load(stream)
        restrict(listed["read"], listed["write"])
        os.execvp(program, [program, *arguments])  # noqa: S606 - what it is for
    except OSError as error:
        sys.stderr.write(f"error: {program} cannot be started apart from the workspace: {error}\n")
        sys.exit(_FAILED)


if __name__ == "__main__":
    main()
