"""Run a program with file access limited to a list (Linux Landlock) and without Unix sockets (seccomp).

python -I -S confine.py RULES -- PROGRAM [ARGUMENT]…

RULES is JSON: `read` and `write` are lists of paths, each including its descendants. It is run by path before every
start of a server: it uses only the standard library, and as little of it as possible.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import sys
from typing import Final

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
_SECCOMP: Final = 22  # prctl(2)
_FILTER: Final = 2  # the same
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}  # socket(2), where its number is known
_PAIR: Final = {"x86_64": 53, "aarch64": 199}  # socketpair(2)
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as seccomp(2) calls them
_UNIX: Final = 1  # of socket(2)
_STREAM: Final = 1  # the same
_TYPES: Final = 0xF  # bits of a socket's type without its flags
_IO_URING: Final = 425  # opens sockets past every filter of system calls
_SET_LIMITS: Final = {"x86_64": 302, "aarch64": 261}  # prlimit(2)
_X32: Final = 0x4000_0000  # this bit selects the same calls by other numbers
# Rows of a filter: an operation, how many rows to skip when it holds and when it does not, and its operand (linux/bpf_common.h).
_LOAD: Final = 0x20  # a word of the call, by its offset in struct seccomp_data
_MASK: Final = 0x54
_EQUAL: Final = 0x15
_HAS_BITS: Final = 0x45
_ANSWER: Final = 0x06
_ALLOW: Final = 0x7FFF_0000
_REFUSE: Final = 0x0005_0000 | errno.EACCES
_FAILED: Final = 126  # as shells say that a program cannot be started


def landlock_version() -> int:
    """Return the system's Landlock ABI version; 0 if Landlock is missing or disabled."""
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
    if sys.maxsize > 1 << 32 and (program := seccomp_program(os.uname().machine)):  # numbers are those of 64 bits
        code = ctypes.create_string_buffer(program, len(program))
        _checked(
            libc.prctl(_SECCOMP, _FILTER, struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)), 0, 0)
        )


def seccomp_program(machine: str) -> bytes:
    """Return the seccomp filter for a machine (`os.uname`), in seccomp(2) format; empty for unknown call numbers.

    It refuses (EACCES) Unix sockets, which Landlock does not cover: access to docker's socket gives root permissions.
    Stream socket pairs are allowed, because asyncio needs them; a pair of another type can send to any path. It also
    refuses io_uring, limits of another process, and calls of another architecture.
    """
    if machine not in _SOCKET:
        return b""
    rows = (
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUAL, 0, 14, _ARCHITECTURES[machine]),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_HAS_BITS, 12, 0, _X32),
        (_EQUAL, 11, 0, _IO_URING),
        (_EQUAL, 3, 0, _SET_LIMITS[machine]),
        (_EQUAL, 4, 0, _SOCKET[machine]),
        (_EQUAL, 5, 0, _PAIR[machine]),
        (_ANSWER, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # of prlimit the process: 0 is the caller
        (_EQUAL, 6, 5, 0),
        (_LOAD, 0, 0, 16),  # of socket the family
        (_EQUAL, 3, 4, _UNIX),
        (_LOAD, 0, 0, 24),  # of socketpair the type
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
