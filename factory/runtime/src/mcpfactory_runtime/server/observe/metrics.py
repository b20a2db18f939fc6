"""Requests and sessions in the text format of Prometheus, by the semantic conventions of OpenTelemetry for MCP.

The home of prometheus_client, which takes a tenth of a second to load.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from mcpfactory_runtime.protocol.errors import CODES
from mcpfactory_runtime.server.observe.request import ObservedRequest

__all__ = ["BUCKETS", "Metrics"]

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # of the conventions
_LABELS: Final = ("mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "error_type", "mcp_protocol_version")
_CODES: Final = frozenset(str(code) for code in CODES)


class Metrics:
    """Counts the requests of one server in this process.

    What a client chooses becomes a label only where the server has registered it: the number of series is bounded.

    Args:
        registry: where the series go; None makes one of their own.

    Raises:
        ValueError: the registry has such series already.
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
            "mcp_server_active_requests", "MCP requests under way.", _LABELS[:1], registry=self.registry
        )
        self._sessions = Gauge("mcp_server_active_sessions", "MCP sessions over HTTP.", registry=self.registry)

    def begin(self, operation: ObservedRequest) -> None:
        """Count an operation as under way."""
        self._active.labels(operation.method).inc()

    def end(self, operation: ObservedRequest) -> None:
        """Count it as done."""
        self._active.labels(operation.method).dec()
        failure = operation.failure
        if (
            operation.code is not None and failure not in _CODES
        ):  # a code of the author's own, or of whom a handler asked
            failure = "_OTHER"
        labels = (operation.method, operation.tool, operation.prompt, failure, operation.revision)
        self._durations.labels(*labels).observe(operation.seconds)

    def expose(self, accept: str, sessions: int) -> tuple[str, bytes]:
        """Return a content type that is accepted, and all series in that form. From any thread."""
        self._sessions.set(sessions)
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self.registry)
