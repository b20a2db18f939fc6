"""OpenTelemetry spans and durations of requests, and setup from the environment.

The module is imported on demand, because loading OpenTelemetry takes 0.1 s.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Token
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcpfactory_runtime.server.observability.observed_request import (
    BUCKETS,
    MAX_VALUE_LENGTH,
    ObservedRequest,
    error_type_label,
)
from mcpfactory_runtime.tracing import CURRENT, CallTracer

Attributes = dict[str, str | int]

_SCOPE: Final = "mcpfactory_runtime"
_PROPAGATOR: Final = TraceContextTextMapPropagator()  # no baggage, because baggage could pass a client's data to APIs
_FIELDS: Final = ("traceparent", "tracestate")
_FAILED: Final = 400  # lowest HTTP status that counts as a failure of the API


class Telemetry:
    """Observer that records a span and the duration of each client request. API calls are child spans."""

    def __init__(
        self, tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._durations = metrics.get_meter(_SCOPE, meter_provider=meter_provider).create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="MCP request duration as observed on the receiver",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._calls = _Calls(self._tracer)

    def begin(self, request: ObservedRequest) -> None:
        """Begin a span, and make this span current."""
        parent, links = _parent(request)
        span = self._tracer.start_span(
            request.title,
            context=parent,
            kind=trace.SpanKind.SERVER,
            attributes=_attributes(request),
            links=links,
        )
        found = span.get_span_context()
        if found.is_valid:
            request.trace_id, request.span_id = f"{found.trace_id:032x}", f"{found.span_id:016x}"
        attached = contexts.attach(trace.set_span_in_context(span, parent))
        request.kept[self] = (span, attached, CURRENT.set(self._calls))

    def end(self, request: ObservedRequest) -> None:
        """End the span with the outcome of the request, and record the duration."""
        entry: tuple[trace.Span, Token[contexts.Context], Token[CallTracer | None]] = request.kept.pop(self)
        span, attached, current = entry
        CURRENT.reset(current)
        contexts.detach(attached)
        if request.failure:
            span.set_attribute("error.type", request.failure)
            span.set_status(trace.StatusCode.ERROR, request.message or None)
        if request.code is not None:
            span.set_attribute("rpc.response.status_code", str(request.code))
        span.end()
        labels = {**_target(request), "mcp.protocol.version": request.revision}
        if request.failure:
            labels["error.type"] = error_type_label(request)
        self._durations.record(request.seconds, labels, contexts.Context())


class _Calls:
    """Factory of spans for API calls. Spans omit path and query, which may contain private data."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def call(self, method: str, url: str, attempt: int) -> Iterator[_Call]:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        attributes: Attributes = {
            "http.request.method": method,
            "server.address": parts.hostname or "",
            "server.port": port,
        }
        if attempt:
            attributes["http.request.resend_count"] = attempt
        span = self._tracer.start_span(method, kind=trace.SpanKind.CLIENT, attributes=attributes)
        try:
            yield _Call(span)
        except BaseException as error:
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            span.end()


class _Call:
    __slots__ = ("_span", "headers")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, trace.set_span_in_context(span))
        self.headers: Mapping[str, str] = headers

    def answered(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= _FAILED:
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(trace.StatusCode.ERROR)


def _parent(request: ObservedRequest) -> tuple[contexts.Context, list[trace.Link]]:
    """Return the parent context and links of a request's span.

    If `_meta` contains a trace, this trace is the parent, and the HTTP request's trace becomes a link. Otherwise the
    HTTP request's trace is the parent.
    """
    meta = request.call.params.get("_meta")
    ambient = contexts.get_current()
    http = request.call.http
    if http is not None and not trace.get_current_span(ambient).get_span_context().is_valid:
        ambient = _extracted(http.headers, ambient)
    if not isinstance(meta, dict) or not isinstance(meta.get("traceparent"), str):
        return ambient, []
    around = trace.get_current_span(ambient).get_span_context()
    return _extracted(meta, ambient), [trace.Link(around)] if around.is_valid else []


def _extracted(carrier: Mapping[str, Any], context: contexts.Context) -> contexts.Context:
    given = {name: carrier[name] for name in _FIELDS if isinstance(carrier.get(name), str)}
    return _PROPAGATOR.extract(given, context)


def _target(request: ObservedRequest) -> Attributes:
    found: Attributes = {"mcp.method.name": request.method}
    if request.tool:
        found |= {"gen_ai.tool.name": request.tool, "gen_ai.operation.name": "execute_tool"}
    if request.prompt:
        found["gen_ai.prompt.name"] = request.prompt
    return found


def _attributes(request: ObservedRequest) -> Attributes:
    found = _target(request)
    found["mcp.protocol.version"] = request.revision
    found["jsonrpc.request.id"] = str(request.call.id)[:MAX_VALUE_LENGTH]
    http = request.call.http
    if http is None:
        found["network.transport"] = "pipe"
    else:
        found |= {"network.transport": "tcp", "network.protocol.name": "http", "client.address": http.address or ""}
    if request.session:
        found["mcp.session.id"] = request.session
    return found


_PATIENCE: Final = 2.0  # maximum seconds to send the remaining data at shutdown


def set_up_telemetry(name: str) -> None:
    """Export spans and durations by OTLP over HTTP, unless the program has set its own providers.

    OTEL_… variables configure the export.

    Args:
        name: default service name. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override the default.
    """
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": name})
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        # At shutdown, `flush_telemetry` sends the remaining data.
        spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(spans)
    if os.environ.get("OTEL_METRICS_EXPORTER") != "none" and not isinstance(
        metrics.get_meter_provider(), MeterProvider
    ):
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        metrics.set_meter_provider(MeterProvider([reader], resource=resource, shutdown_on_exit=False))


def flush_telemetry(patience: float = _PATIENCE) -> None:
    """Send the remaining data within at most `patience` seconds."""
    sending = Thread(target=_flush, daemon=True)
    sending.start()
    sending.join(patience)


def _flush() -> None:
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        if isinstance(provider, TracerProvider | MeterProvider):
            provider.force_flush()
