"""Exit codes, and which error of which part ends in which. Documented in docs/reference/exit-codes.md."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Exit", "exit_of"]


class Exit(IntEnum):
    """What the exit code of `mcpfactory` says."""

    OK = 0  # done, and the answer is yes
    NO = 1  # done, and the answer is no: a stage failed, a check failed, a tool answered with an error
    USAGE = 2  # the command line was wrong
    NOT_FOUND = 3  # no workspace here, or no such server, template, stage, channel or tool
    BAD_INPUT = 4  # an API document, a configuration or arguments that cannot be used
    BROKEN = 5  # the machinery failed: a build tool, an unreadable state
    SERVER = 6  # a server's own code, or what it depends on, keeps it from starting or speaking
    BUG = 70  # a mistake of mcpfactory itself
    INTERRUPTED = 130  # Ctrl-C


# Errors meant for a person carry `hint`; the class says which code they end in. Keyed by name because importing the
# classes would load the parts that they come from.
_BY_NAME = {
    "WorkspaceError": Exit.NOT_FOUND,
    "NotFoundError": Exit.NOT_FOUND,
    "CreateError": Exit.BAD_INPUT,
    "ConfigError": Exit.BAD_INPUT,
    "ClientError": Exit.BAD_INPUT,
    "DocumentError": Exit.BAD_INPUT,
    "ScaffoldError": Exit.BAD_INPUT,
    "TreeError": Exit.BAD_INPUT,
    "PromotionError": Exit.NO,
    "PublishError": Exit.NO,
    "ReleaseError": Exit.NO,
    "ServerError": Exit.SERVER,
    "TargetError": Exit.BROKEN,
    "StateError": Exit.BROKEN,
    "StageError": Exit.BROKEN,
}


def exit_of(error: BaseException) -> Exit | None:
    """The code that an error meant for a person ends in; None when the error is a bug."""
    for cls in type(error).__mro__:
        if cls.__name__ in _BY_NAME:
            return _BY_NAME[cls.__name__]
    return Exit.BROKEN if hasattr(error, "hint") else None
