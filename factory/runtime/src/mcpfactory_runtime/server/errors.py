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
    """Error with a message for the model: it becomes a tool result with `isError` and this message.

    Any other exception of a tool is logged on stderr. For such an exception, the client gets a generic message, because
    the text of the exception may contain secrets.
    """


class InputRequired(BaseException):
    """Exception that ends a handler to ask the client (per-request lifecycle); the handler is rerun with the answers.

    Attributes:
        requests: key → the request object, as `inputRequests` on the wire.
    """

    def __init__(self, requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests


def is_keyboard_interrupt(error: BaseException) -> bool:
    """Return True if an exception comes from Ctrl-C, which ends the process.

    Ctrl-C raises no exception if the event loop or a server handles the signal. A KeyboardInterrupt then counts as an
    error of the handler.
    """
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def exception_text(error: BaseException) -> str:
    """Return an exception's text, with a question mark for characters that JSON cannot hold.

    Return the exception's class name if the text is empty, or if `str()` fails.
    """
    try:
        text = str(error)
    except BaseException:
        log.exception("str() of a %s failed", type(error).__name__)
        text = ""
    return text.encode(errors="replace").decode() or type(error).__name__


def safe_join(root: str | PathLike[str], *parts: str) -> Path:
    """Return the path of `parts` below `root`, with symbolic links resolved; the file may be missing.

    Raises:
        ToolError: the path is not below `root`, or contains a NUL; the message is for the model.
    """
    base = Path(root).resolve()
    if not any("\0" in part for part in parts):
        found = base.joinpath(*parts).resolve()
        if found == base or base in found.parents:
            return found
    raise ToolError(f"{'/'.join(parts)!r} is outside the folder that this server serves")
