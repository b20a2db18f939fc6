"""Calls of APIs as parts of a trace, for code that knows no tracing library: it is loaded only where somebody traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, Protocol


class TracedCall(Protocol):
    """One request to an API.

    Attributes:
        headers: what tells the API which trace it is in.
    """

    headers: Mapping[str, str]

    def answered(self, status: int) -> None:
        """Note the status of the answer."""


class CallTracer(Protocol):
    """Makes requests to APIs parts of the trace of the request that is being answered."""

    def call(self, method: str, url: str, attempt: int) -> AbstractContextManager[TracedCall]:
        """Surround one request; `attempt` is 0 for the first."""


CURRENT: Final[ContextVar[CallTracer | None]] = ContextVar("mcpfactory_tracer", default=None)


class _Untraced:
    headers: Mapping[str, str] = {}

    def answered(self, status: int) -> None:
        pass


_UNTRACED: Final = _Untraced()


@contextmanager
def traced(method: str, url: str, attempt: int = 0) -> Iterator[TracedCall]:
    """Trace one request to an API; does nothing if tracing is off."""
    tracer = CURRENT.get()
    if tracer is None:
        yield _UNTRACED
    else:
        with tracer.call(method, url, attempt) as call:
            yield call
