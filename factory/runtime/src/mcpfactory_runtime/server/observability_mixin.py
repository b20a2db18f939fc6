"""Methods of `Server` for observability, routes and readiness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

from mcpfactory_runtime.server.routes import HttpRoute, HttpRoutes, ReadinessChecks

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
    from prometheus_client import CollectorRegistry

    from mcpfactory_runtime.server.interfaces import Function, MetricsInterface
    from mcpfactory_runtime.server.observability.observed_request import ObservedHandler, RequestObserver


class ObservabilityMixin:
    """Methods of `Server` for observability, routes and readiness (docs/how-to/observe.md)."""

    name: str
    _dispatcher: Any  # the type is `Dispatcher`, which this module must not import

    def __init__(self) -> None:
        self.readiness = ReadinessChecks()
        self.routes = HttpRoutes()
        self._telemetry: RequestObserver | None = None
        self._logged = False
        self._flush: Callable[[], None] | None = None
        self.metrics: MetricsInterface | None = None
        self._observed: ObservedHandler | None = None

    def ready_check(self, function: Function) -> Function:
        """Decorate a readiness check, which `/ready` runs over HTTP.

        The function takes no parameters. The check fails if the function raises an exception, returns False, or takes
        longer than five seconds. An `async def` function runs on the event loop, and a `def` function runs in a worker
        thread. Outcomes are cached for one second.

        Raises:
            TypeError: the function has parameters.
            ValueError: a check with this name already exists.
        """
        self.readiness.add(function)
        return function

    def route(
        self, path: str, *, methods: Iterable[str] = ("GET",), public: bool = False
    ) -> Callable[[Function], Function]:
        """Decorate a function that answers an HTTP path in addition to MCP (docs/reference/server-api.md, Routes).

        The function takes a `starlette.requests.Request`, and returns a Starlette `Response`, text, bytes, a JSON
        value, or None for status 204.

        Args:
            path: path in Starlette's syntax, such as `/hooks/{name}`.
            methods: accepted methods. GET includes HEAD.
            public: True also permits callers without authorization.

        Raises:
            TypeError: the path is missing.
            ValueError: the path or a method is invalid, reserved by the server, or taken.
        """
        if not isinstance(path, str):
            raise TypeError('a route needs a path\nhint: write @server.route("/hooks/{name}", methods=["POST"])')

        def register(function: Function) -> Function:
            self.routes.add(HttpRoute(path, frozenset(method.upper() for method in methods), function, public))
            return function

        return register

    def add_metrics(self, registry: CollectorRegistry | None = None) -> None:
        """Count requests, and serve Prometheus metrics at `/metrics` over HTTP. A repeated call has no effect.

        Args:
            registry: registry of prometheus_client. `REGISTRY` also serves the program's own series. None creates a
                separate registry.

        Raises:
            RuntimeError: prometheus_client is not installed.
            ValueError: the registry already has series with the same names.
        """
        if self.metrics is None:
            try:
                from mcpfactory_runtime.server.observability.metrics import Metrics  # noqa: PLC0415 - loads prometheus_client
            except ModuleNotFoundError as error:
                raise _missing(error, "metrics", "metrics") from None
            self.metrics = metrics = Metrics(registry)
            self._observe(metrics)

    def add_telemetry(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        """Record a span and the duration of each request. API calls are child spans. A repeated call has no effect.

        Args:
            tracer_provider: tracer provider of OpenTelemetry, or None for the program's provider.
            meter_provider: meter provider of OpenTelemetry, or None for the program's provider.

        Raises:
            RuntimeError: OpenTelemetry is not installed.
        """
        if self._telemetry is None:
            try:
                from mcpfactory_runtime.server.observability.spans import Telemetry  # noqa: PLC0415 - loads OpenTelemetry
            except ModuleNotFoundError as error:
                raise _missing(error, "traces", "otel") from None
            self._telemetry = Telemetry(tracer_provider, meter_provider)
            self._observe(self._telemetry)

    def export_telemetry(self) -> None:
        """Call `add_telemetry`, and export the data by OTLP, unless the program has set its own providers.

        OTEL_… variables configure the export.

        Raises:
            RuntimeError: OpenTelemetry, its SDK or its exporter is not installed.
        """
        try:
            from mcpfactory_runtime.server.observability.spans import flush_telemetry, set_up_telemetry  # noqa: PLC0415 - loads the SDK
        except ModuleNotFoundError as error:
            raise _missing(error, "traces", "otel") from None
        set_up_telemetry(self.name)
        self.add_telemetry()
        self._flush = flush_telemetry

    def add_json_log(self, stream: TextIO | None = None) -> None:
        """Log each request, and write all logs of this process as JSON lines. A repeated call has no effect.

        Args:
            stream: the output, or None for stderr.
        """
        if not self._logged:
            from mcpfactory_runtime.server.observability.observed_request import RequestLogger, install_json_logging  # noqa: PLC0415 - most servers log text

            self._logged = True
            install_json_logging(stream)
            self._observe(RequestLogger())

    async def _send_telemetry(self) -> None:
        if self._flush is not None:
            await asyncio.to_thread(self._flush)

    def _observe(self, observer: RequestObserver) -> None:
        if self._observed is None:
            from mcpfactory_runtime.server.observability.observed_request import ObservedHandler  # noqa: PLC0415 - most servers have no observer

            self._observed = ObservedHandler(self._dispatcher.handle, self._dispatcher.registry)
        self._observed.observers.append(observer)


def _missing(error: ModuleNotFoundError, what: str, extra: str) -> RuntimeError:
    return RuntimeError(f"{what} need {error.name}\nhint: pip install 'mcpfactory-runtime[{extra}]'")
