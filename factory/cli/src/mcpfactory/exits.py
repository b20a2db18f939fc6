"""Exit codes, and which error ends in which. Documented in docs/reference/exit-codes.md."""

from __future__ import annotations

import errno
from typing import Final

from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = ["Exit", "exit_of", "of_machine"]

# What the machine says no to, wherever it happens: none of it is a mistake of mcpfactory.
_MACHINE: Final = {
    errno.EACCES: "make it readable and writable for you, or choose another place",
    errno.EPERM: "make it readable and writable for you, or choose another place",
    errno.EROFS: "choose a place that can be written",
    errno.ENOSPC: "free space, and run it again",
    errno.EDQUOT: "free space, and run it again",
    errno.EEXIST: "name a new place, or move what is there away",
    errno.ENOTDIR: "a file is where a folder is needed: name another place",
    errno.EISDIR: "a folder is where a file is needed: name another place",
    errno.ENOTEMPTY: "name a new place, or move what is there away",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "a link leads to itself: remove it",
    errno.EMFILE: "let a process open more files: ulimit -n 4096",
}


def exit_of(error: BaseException) -> Exit | None:
    """Return the exit code of an error with words for a person; None when the error is a bug."""
    return error.exit_code if isinstance(error, McpfactoryError) else None


def of_machine(error: BaseException) -> McpfactoryError | None:
    """Return the same as an error for a person, where the machine refused a file; None for any other."""
    if not isinstance(error, OSError) or error.filename is None or error.errno not in _MACHINE:
        return None
    names = " → ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    return McpfactoryError(f"{names}: {error.strerror}", _MACHINE[error.errno])
