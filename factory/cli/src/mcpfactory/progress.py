"""What a long command is at: one live line on stderr where a person looks on, plain lines elsewhere, nothing when it is quiet."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from mcpfactory import output

__all__ = ["counting", "progress"]

_PATIENCE: Final = 1.0  # seconds that need no word on a terminal
_LONG: Final = 3.0  # and none elsewhere, where words stay
_TICK: Final = 0.25
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield the function to call with what begins now. Short work is not reported."""
    if quiet:
        yield lambda _step: None
    elif output.read_by_person(sys.stderr):
        with _Live() as live:
            yield live.step
    else:
        began = time.monotonic()

        def step(text: str) -> None:
            if time.monotonic() - began >= _LONG:
                output.note(f"{text} …")

        yield step


@contextmanager
def counting() -> Iterator[Callable[[int, int], None]]:
    """Yield the function to call before each server with how many are read, and of how many: a word every few seconds."""
    with progress(quiet=False) as step:
        told = time.monotonic()

        def count(done: int, servers: int) -> None:
            nonlocal told
            if time.monotonic() - told >= _LONG:
                told = time.monotonic()
                step(
                    f"{done} of {servers} servers read; the first time in a clone, each history is folded from its beginning"
                )

        yield count


class _Live:
    """A line that says what goes on and for how long, until the work is done and the line is gone."""

    def __init__(self) -> None:
        self._text, self._began = "", time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> _Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()

    def step(self, text: str) -> None:
        """Show what begins now."""
        self._text = text

    def _tick(self) -> None:
        from mcpfactory_pipeline.base.text import printable, truncate

        while not self._done.wait(_TICK):
            seconds = time.monotonic() - self._began
            if self._text and seconds >= _PATIENCE:
                line = truncate(printable(f"{self._text} … {seconds:.0f} s"), shutil.get_terminal_size().columns - 1)
                sys.stderr.write(f"{_CLEAR}{line}")
                sys.stderr.flush()
