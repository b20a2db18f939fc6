"""Run a program with file access limited to a list (Linux Landlock) and without Unix sockets (seccomp).

python -I -S landlock.py RULES -- PROGRAM [ARGUMENT]…

RULES is a JSON file: `read` and `write` are lists of paths; each path includes everything below it. If `network` is
false, the program cannot open sockets. The file is run by path before every start of a server, so it imports few
modules of the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import sys
from typing import Final

# Minimum ABI version of Landlock. In older versions, a process can truncate files without permission.
OLDEST: Final = 3
# ABI version from which `_SCOPES` are available.
SCOPED: Final = 6
# Numbers of system calls. The numbers are equal on all architectures for which Python has wheels.
_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_NO_NEW_PRIVILEGES: Final = 38  # option of prctl(2)
_DROP_CAPABILITY: Final = 24  # option of prctl(2)
_CAPABILITIES: Final = 64  # upper bound of the capability numbers
# Arguments of capset(2) that drop all capabilities of this process.
_NO_CAPABILITIES: Final = (struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", *[0] * 6))
_READ: Final = 0b1101  # permissions to execute a file, to read a file and to read a folder
_FILE: Final = 0b100_0000_0000_0111  # permissions that exist for files, but not for folders
_ALL: Final = (1 << 15) - 1  # all permissions for files in ABI version 3
_SCOPES: Final = 0b11  # refuses abstract sockets, and signals to processes outside of the sandbox; needs ABI version 6
_SECCOMP: Final = 22  # option of prctl(2)
_FILTER: Final = 2  # mode of PR_SET_SECCOMP
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}  # architecture → number of the system call socket(2)
_PAIR: Final = {"x86_64": 53, "aarch64": 199}  # architecture → number of the system call socketpair(2)
# Architecture → number that seccomp(2) uses for the architecture.
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_UNIX: Final = 1  # AF_UNIX of socket(2)
_STREAM: Final = 1  # SOCK_STREAM of socket(2)
_TYPES: Final = 0xF  # mask that removes the flags from a socket type
# Number of io_uring_setup(2), which is blocked, because filters do not see sockets that io_uring opens.
_IO_URING: Final = 425
_SET_LIMITS: Final = {"x86_64": 302, "aarch64": 261}  # architecture → number of the system call prlimit(2)
_X32: Final = 0x4000_0000  # bit in the system call numbers of the x32 ABI
# Architecture → system calls that change something outside of files that the process opened, and that Landlock allows.
# They change modes, owners, times and attributes of files, keys, priorities, and memory and queues of other processes.
_SIDE_EFFECTS: Final = {
    "x86_64": (
        90, 91, 92, 93, 94, 132, 235, 260, 261, 268, 280, 452,  # chmod, chown, utime
        188, 189, 190, 197, 198, 199, 463, 466,  # setxattr, removexattr
        29, 30, 31, 64, 65, 66, 68, 69, 71, 220, 240, 241,  # System V IPC, message queues
        141, 142, 144, 203, 248, 249, 250, 251, 314,  # priorities, keys
    ),
    "aarch64": (
        52, 53, 54, 55, 88, 452, 5, 6, 7, 14, 15, 16, 463, 466,
        180, 181, 186, 187, 189, 190, 191, 192, 193, 194, 195, 196, 30, 118, 119, 122, 140, 217, 218, 219, 274,
    ),
}  # fmt: skip
# BPF instructions: operation, rows to skip if true, rows to skip if false, operand (linux/bpf_common.h).
_LOAD: Final = 0x20  # operation that loads a field of struct seccomp_data; the operand is the field's offset
_MASK: Final = 0x54
_EQUAL: Final = 0x15
_HAS_BITS: Final = 0x45
_ANSWER: Final = 0x06
_ALLOW: Final = 0x7FFF_0000
_REFUSE: Final = 0x0005_0000 | errno.EACCES
_FAILED: Final = 126  # exit code that shells use if a program cannot be started


def landlock_version() -> int:
    """Return the system's Landlock ABI version; 0 if Landlock is missing or disabled."""
    if sys.platform != "linux":
        return 0
    try:
        return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), 1)))
    except (OSError, AttributeError):
        return 0


def restrict_this_process(read: list[str], write: list[str], *, network: bool) -> None:
    """Limit this process and its future children to the given paths, and drop root's capabilities.

    Missing paths are ignored.
    """
    libc, version = _libc(), landlock_version()
    attributes = struct.pack("=QQQ", _ALL, 0, _SCOPES if version >= SCOPED else 0)[: 24 if version >= SCOPED else 8]
    ruleset = _checked(libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
    for path, rights in [*((path, _READ) for path in read), *((path, _ALL) for path in write)]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = rights if os.path.isdir(path) else rights & _FILE  # noqa: PTH112 - no pathlib yet
        rule = struct.pack("=Qi", allowed, place)
        _checked(libc.syscall(_ADD, ruleset, 1, rule, 0))
        os.close(place)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    # Drop all capabilities, because capabilities bypass Landlock.
    for capability in range(_CAPABILITIES):
        libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    _checked(libc.capset(*_NO_CAPABILITIES))
    _checked(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)
    if program := seccomp_program(os.uname().machine, network=network):
        code = ctypes.create_string_buffer(program, len(program))
        _checked(
            libc.prctl(_SECCOMP, _FILTER, struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)), 0, 0)
        )


def seccomp_program(machine: str, *, network: bool) -> bytes:
    """Return a machine's seccomp filter in the format of seccomp(2); empty if the machine is unknown.

    The filter refuses Unix sockets, because Landlock does not cover them, and docker's socket gives root permissions.
    Without `network`, it also refuses all other sockets and `_SIDE_EFFECTS`.
    Stream socket pairs are allowed, because asyncio needs them. Other socket pairs are refused, because they could send
    to any path. The filter also refuses io_uring, changes to limits of other processes, and system calls of other
    architectures.
    """
    if machine not in _SOCKET or sys.maxsize < 1 << 32:  # the numbers are those of 64-bit processes
        return b""
    refused = (_IO_URING, *(() if network else _SIDE_EFFECTS[machine]))
    more = len(refused) - 1
    rows = (
        (_LOAD, 0, 0, 4),  # load the architecture
        (_EQUAL, 0, 14 + more, _ARCHITECTURES[machine]),
        (_LOAD, 0, 0, 0),  # load the number of the system call
        (_HAS_BITS, 12 + more, 0, _X32),
        *((_EQUAL, 11 + more - at, 0, number) for at, number in enumerate(refused)),
        (_EQUAL, 3, 0, _SET_LIMITS[machine]),
        (_EQUAL, 4, 0, _SOCKET[machine]),
        (_EQUAL, 5, 0, _PAIR[machine]),
        (_ANSWER, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # load the first argument of prlimit, a process ID; 0 is the calling process
        (_EQUAL, 6, 5, 0),
        (_LOAD, 0, 0, 16),  # load the first argument of socket, the address family
        (_EQUAL, 3, 4 if network else 3, _UNIX),
        (_LOAD, 0, 0, 24),  # load the second argument of socketpair, the socket type
        (_MASK, 0, 0, _TYPES),
        (_EQUAL, 1, 0, _STREAM),
        (_ANSWER, 0, 0, _REFUSE),
        (_ANSWER, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main() -> None:
    """Restrict this process, then replace it with the program."""
    rules, _, program, *arguments = sys.argv[1:]
    try:
        with open(rules, encoding="utf-8") as stream:  # noqa: PTH123 - pathlib is not imported before the server's code
            listed = json.load(stream)
        restrict_this_process(listed["read"], listed["write"], network=listed["network"])
        os.execvp(program, [program, *arguments])  # noqa: S606 - replaces this process by the confined program
    except OSError as error:
        sys.stderr.write(f"error: {program} cannot be started in the sandbox: {error}\n")
        sys.exit(_FAILED)


if __name__ == "__main__":
    main()
