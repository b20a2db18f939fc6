"""Time limit for parsing a page. Parsers call `go_on` frequently."""

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
    """Raised when parsing exceeds its time limit."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Limit the time of the parsers that run in the block."""
    token = _END.set(monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def go_on() -> None:
    """Check the time limit.

    Raises:
        TooMuchError: the limit is exceeded.
    """
    if monotonic() > _END.get():
        raise TooMuchError
