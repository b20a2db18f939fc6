"""Base class of errors with a hint, exit codes of commands, and reasons of failed connections."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes of `mcpfactory` (docs/reference/exit-codes.md)."""

    OK = 0  # success
    NEGATIVE = 1  # negative result: a stage failed, a check failed, a tool returned an error
    USAGE = 2  # invalid command line
    NOT_FOUND = 3  # no workspace in this folder, or an unknown server, template, stage, channel or tool
    BAD_INPUT = 4  # an unusable API document, configuration or argument
    SYSTEM_ERROR = 5  # another failure on this machine, for example of a build tool, a file or a service
    SERVER_ERROR = 6  # a server cannot start or communicate, because of its code or a dependency
    INCOMPLETE = 7  # no check failed, but an essential check could not run
    STALE = 8  # the generated files differ from the document or the configuration
    INTERNAL_ERROR = 70  # a bug in mcpfactory
    INTERRUPTED = 130  # Ctrl-C


class McpfactoryError(Exception):
    """Error that the user can correct. `args[0]` is the message, and `hint` is the remedy."""

    exit_code: ClassVar[Exit] = Exit.SYSTEM_ERROR

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def find_os_error(error: BaseException) -> OSError | None:
    """Return the OSError that caused an error, or None."""
    import ssl  # noqa: PLC0415 - a slow import

    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, ssl.SSLError) or (isinstance(inner, OSError) and inner.errno):
            return inner
        inner = inner.__cause__ or inner.__context__
    return None


def connection_error_reason(error: BaseException) -> str:
    """Return the reason of a failed connection: the system's message, the error's message, or its class name."""
    import socket  # noqa: PLC0415 - only when a connection failed
    import ssl  # noqa: PLC0415 - as above

    system = find_os_error(error)
    if isinstance(system, socket.gaierror):
        return "the name is unknown"
    if isinstance(system, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {system.verify_message}"
    if isinstance(system, ssl.SSLError):
        return "the TLS handshake failed"
    if system is not None and system.errno:
        return os.strerror(system.errno).lower()
    return str(error) or type(error).__name__
