"""`inline` tools: `def` handlers that run on the event loop, and the watchdog that names those that hold it.

The hop into a thread and back costs more than everything else that a call costs. Whoever knows that a handler only
computes, and soon ends, may promise so; nothing else runs while it does.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

__all__ = ["HELD", "run_inline"]

HELD: Final = 0.1  # seconds after which a handler is named
_LOOK: Final = HELD / 2  # seconds between two looks of the watchdog
_IDLE: Final = 20  # looks without an inline call after which it rests

log = logging.getLogger("mcpfactory_runtime")


def run_inline(name: str, handler: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a handler here and now, watched.

    Args:
        name: of the tool, for the warning.
        handler: a `def` function.
        arguments: its arguments.
    """
    thread = threading.get_ident()
    _watchdog.running[thread] = (name, monotonic())
    if _watchdog.resting:
        _watchdog.start()
    try:
        return handler(**arguments)
    finally:
        _watchdog.running.pop(thread, None)


class _Watchdog:
    """A thread that looks at what runs on event loops, as long as something does."""

    def __init__(self) -> None:
        self.forget()
        self._named: set[str] = set()

    def forget(self) -> None:
        """Begin anew: nothing runs, nobody looks. A forked process has none of its parent's threads."""
        self.running: dict[int, tuple[str, float]] = {}
        """What runs now: thread → (tool, when it began)."""
        self.resting = True
        self._lock = threading.Lock()

    def start(self) -> None:
        """Look again, in a thread."""
        with self._lock:
            if self.resting:
                self.resting = False
                threading.Thread(target=self._look, name="inline-watchdog", daemon=True).start()

    def _look(self) -> None:
        last, quiet = 0.0, 0
        pause = threading.Event()
        while quiet < _IDLE:
            pause.wait(_LOOK)
            begun = max((since for _, since in list(self.running.values())), default=last)
            quiet = 0 if begun > last or self.running else quiet + 1
            last = begun
            for thread, (name, since) in list(self.running.items()):
                if monotonic() - since > HELD and name not in self._named:
                    self._named.add(name)
                    log.warning(
                        "the tool %s holds the event loop, now at %s; nothing else runs meanwhile"
                        "\nhint: leave out inline=True, and it runs in a thread",
                        name,
                        _place(thread),
                    )
        self.resting = True


def _place(thread: int) -> str:
    """Return where the handler is that runs in a thread: its file and line."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, underscore and all
    while frame is not None:
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename == __file__:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = caller
    return "its end"


_watchdog = _Watchdog()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_watchdog.forget)
