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
    """A failure that the model should read: becomes a tool result with `isError` and this message.

    Any other exception of a tool is logged on stderr and reaches the peer as a generic sentence only, since its text
    may hold secrets.
    """


class InputRequired(BaseException):
    """Ends a handler of the per-request lifecycle that asks the client: it is run again once the answers are there.

    Attributes:
        requests: key → the request object, as `inputRequests` on the wire.
    """

    def __init__(self, requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests


def interrupts(error: BaseException) -> bool:
    """Return True if an exception is a person's Ctrl-C, not the handler's own: it ends the process.

    If the event loop or a server handles the signal, it never arrives as an exception, so a handler's
    KeyboardInterrupt is a failure of the handler.
    """
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def words_of(error: BaseException) -> str:
    """Return an exception's text, with a question mark for characters that JSON cannot hold.

    Returns the name of its class if it has no text, or its text cannot be created.
    """
    try:
        text = str(error)
    except BaseException:
        log.exception("the text of a %s cannot be made", type(error).__name__)
        text = ""
    return text.encode(errors="replace").decode() or type(error).__name__


def safe_join(root: str | PathLike[str], *parts: str) -> Path:
    """Return the path of `parts` below `root`, with symbolic links resolved; what it names need not exist.

    Raises:
        ToolError: it is not below `root`, or holds a NUL. The model reads it.
    """
    base = Path(root).resolve()
    if not any("\0" in part for part in parts):
        found = base.joinpath(*parts).resolve()
        if found == base or base in found.parents:
            return found
    raise ToolError(f"{'/'.join(parts)!r} is outside the folder that this server serves")
