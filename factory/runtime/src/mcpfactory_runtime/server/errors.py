"""Errors that handlers raise, and safe paths below a folder."""

from __future__ import annotations

import logging
import signal
import threading
from os import PathLike
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


class ToolError(Exception):
    """Error with a message for the model.

    The client gets a tool result with `isError` and the message. Other exceptions of a tool are logged on stderr. For
    other exceptions, the client gets a generic message, because the exception's text may contain secrets.
    """


class InputRequired(BaseException):
    """Exception that ends a handler in order to ask the client.

    In the per-request lifecycle, the handler is rerun with the client's answers.

    Attributes:
        requests: request objects by key, as in `inputRequests`.
    """

    def __init__(self, requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests


def is_keyboard_interrupt(error: BaseException) -> bool:
    """Return True if an exception comes from Ctrl-C and must end the process.

    If the event loop or a server handles Ctrl-C, a KeyboardInterrupt comes from the handler and counts as an error.
    """
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def exception_text(error: BaseException) -> str:
    """Return an exception's text. Replace characters that JSON cannot contain with question marks.

    Return the exception's class name if the text is empty, or if `str()` fails.
    """
    try:
        text = str(error)
    except BaseException:
        log.exception("str() of a %s failed", type(error).__name__)
        text = ""
    return text.encode(errors="replace").decode() or type(error).__name__


def safe_join(root: str | PathLike[str], *parts: str) -> Path:
    """Return the path of `parts` below `root`, with symbolic links resolved.

    The file need not exist.

    Raises:
        ToolError: the path is not below `root`, or contains a NUL character.
    """
    base = Path(root).resolve()
    if not any("\0" in part for part in parts):
        found = base.joinpath(*parts).resolve()
        if found == base or base in found.parents:
            return found
    raise ToolError(f"{'/'.join(parts)!r} is outside the folder that this server serves")
