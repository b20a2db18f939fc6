"""The root of all errors that a person is shown: what is wrong and where, what to do about it, and how the process ends."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes of `mcpfactory`. Documented in docs/reference/exit-codes.md."""

    OK = 0  # done, and the answer is yes
    NO = 1  # done, and the answer is no: a stage failed, a check failed, a tool answered with an error
    USAGE = 2  # the command line was wrong
    NOT_FOUND = 3  # no workspace here, or no such server, template, stage, channel or tool
    BAD_INPUT = 4  # an API document, a configuration or arguments that cannot be used
    BROKEN = 5  # the machinery failed: a build tool, an unreadable state
    SERVER = 6  # a server cannot start or communicate, because of its code or a dependency
    NOT_SHOWN = 7  # nothing was found wrong, and what matters most could not be looked at
    BUG = 70  # a mistake of mcpfactory itself
    INTERRUPTED = 130  # Ctrl-C


class McpfactoryError(Exception):
    """A failure that a person can correct. `args[0]` says what and where, `hint` what to do.

    A class says with `exit_code` how a command ends that it stopped.
    """

    exit_code: ClassVar[Exit] = Exit.BROKEN

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
