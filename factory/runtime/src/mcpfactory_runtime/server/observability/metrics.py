"""Prometheus metrics of requests and sessions, according to OpenTelemetry's semantic conventions for MCP.

No other module imports prometheus_client, because loading prometheus_client takes 0.1 s.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from mcpfactory_runtime.server.observability.observed_request import BUCKETS, ObservedRequest, error_type_label

_LABELS: Final = ("mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "error_type", "mcp_protocol_version")


class Metrics:
    """Metrics about the requests of one server in this process.

    Names from clients become labels only if the server has registered these names, so that the number of series is
    bounded.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._durations = Histogram(
            "mcp_server_operation_duration_seconds",
            "MCP request duration as observed on the receiver from the time it was received until the result is sent.",
            _LABELS,
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._active = Gauge(
            "mcp_server_active_requests", "MCP requests in progress.", _LABELS[:1], registry=self.registry
        )
        self._sessions = Gauge("mcp_server_active_sessions", "MCP sessions over HTTP.", registry=self.registry)

    def begin(self, request: ObservedRequest) -> None:
        """Count a request in progress."""
        self._active.labels(request.method).inc()

    def end(self, request: ObservedRequest) -> None:
        """Record the duration and outcome of a request."""
        self._active.labels(request.method).dec()
        labels = (request.method, request.tool, request.prompt, error_type_label(request), request.revision)
        self._durations.labels(*labels).observe(request.seconds)

    def expose(self, accept: str, sessions: int) -> tuple[str, bytes]:
        """Return a content type that `accept` permits, and all series in this format. This method is thread-safe."""
        self._sessions.set(sessions)
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self.registry)
