"""The trace that a request belongs to, as `_meta` says it (basic, `_meta`): from OpenTelemetry's current context, or from another request.

OpenTelemetry is used where the program has loaded it, and never loaded otherwise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["TRACE_FIELDS", "current_trace", "passed_trace"]

TRACE_FIELDS: Final = ("traceparent", "tracestate", "baggage")
"""Members of `_meta`, written as the HTTP headers of the same names (W3C Trace Context, W3C Baggage)."""

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?")
_LIST: Final = re.compile(r"[\t -~]*")
_LONGEST: Final = {"traceparent": 256, "tracestate": 512, "baggage": 8192}  # characters, by the two specifications


def is_loaded() -> bool:
    """Whether the program has loaded OpenTelemetry, so that there can be a current span."""
    return "opentelemetry.context" in sys.modules


def current_trace(given: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return what a request from here carries: the current span and baggage of OpenTelemetry; {} without them.

    Args:
        given: what its `_meta` holds already; where that names a trace, the current span is left out.
    """
    if not is_loaded():
        return {}
    from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: PLC0415 - the program has loaded the library
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 - likewise

    found: dict[str, str] = {}
    if "traceparent" not in (given or {}):
        TraceContextTextMapPropagator().inject(found)
    W3CBaggagePropagator().inject(found)
    return found


def passed_trace(carrier: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace of a request that is made on behalf of another one: the other's, or the current span below it where there is one.

    Args:
        carrier: the other's `_meta` or HTTP headers. What is not well-formed is left out.
    """
    if not carrier:
        return current_trace()
    found = {name: carrier[name] for name in TRACE_FIELDS if _well_formed(name, carrier.get(name))}
    here = current_trace()
    if "traceparent" in here or "traceparent" not in found:  # a `tracestate` means nothing without its `traceparent`
        found.pop("traceparent", None)
        found.pop("tracestate", None)
    return found | here


def _well_formed(name: str, value: Any) -> bool:
    form = _PARENT if name == "traceparent" else _LIST
    return isinstance(value, str) and len(value) <= _LONGEST[name] and form.fullmatch(value) is not None
