"""Tracing of API calls, which loads the tracing library only if tracing is on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, Protocol


class TracedCall(Protocol):
    """One request to an API, with `headers` that propagate the trace."""

    headers: Mapping[str, str]

    def answered(self, status: int) -> None:
        """Record the status of the response."""


class CallTracer(Protocol):
    """Tracer that adds API requests to the trace of the current request."""

    def call(self, method: str, url: str, attempt: int) -> AbstractContextManager[TracedCall]:
        """Return a context manager for one request."""


CURRENT: Final[ContextVar[CallTracer | None]] = ContextVar("mcpfactory_tracer", default=None)


class _Untraced:
    headers: Mapping[str, str] = {}

    def answered(self, status: int) -> None:
        pass


_UNTRACED: Final = _Untraced()


@contextmanager
def trace_api_call(method: str, url: str, attempt: int = 0) -> Iterator[TracedCall]:
    """Trace one request to an API, if tracing is on."""
    tracer = CURRENT.get()
    if tracer is None:
        yield _UNTRACED
    else:
        with tracer.call(method, url, attempt) as call:
            yield call
