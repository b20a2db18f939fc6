"""How long the reading of a page may take: what reads asks, as often as there is something to read, whether it may go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import Final

__all__ = ["TooMuchError", "at_most", "go_on"]

_END: Final[ContextVar[float]] = ContextVar("_END", default=inf)


class TooMuchError(ValueError):
    """The reading takes longer than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let what is read inside take so long."""
    token = _END.set(monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def go_on() -> None:
    """Return while there is time.

    Raises:
        TooMuchError: there is none left.
    """
    if monotonic() > _END.get():
        raise TooMuchError
