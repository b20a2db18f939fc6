"""What sends spans and durations where the environment says, for servers whose program has set up nothing itself."""

from __future__ import annotations

import os
from threading import Thread
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

__all__ = ["flush", "set_up"]

_PATIENCE: Final = 2.0  # seconds for what is left when the server ends


def set_up(name: str) -> None:
    """Send spans and durations by OTLP over HTTP, as the variables OTEL_… say, unless the program has set up something.

    Args:
        name: of the service, where OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have none.
    """
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": name})
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        spans = TracerProvider(resource=resource, shutdown_on_exit=False)  # `flush` is in time
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(spans)
    if os.environ.get("OTEL_METRICS_EXPORTER") != "none" and not isinstance(
        metrics.get_meter_provider(), MeterProvider
    ):
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        metrics.set_meter_provider(MeterProvider([reader], resource=resource, shutdown_on_exit=False))


def flush(patience: float = _PATIENCE) -> None:
    """Send what is left, for so many seconds: a collector that does not answer, or is not there, holds up no end."""
    sending = Thread(target=_flush, daemon=True)
    sending.start()
    sending.join(patience)


def _flush() -> None:
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        if isinstance(provider, TracerProvider | MeterProvider):
            provider.force_flush()
