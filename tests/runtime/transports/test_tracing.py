"""Spans of requests and of the calls of APIs within them, as the SDK of OpenTelemetry collects them, over sockets."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry.baggage import set_baggage
from opentelemetry.context import attach, detach
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcpfactory_runtime import Context, McpError, Server, ToolError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.http_messages import TRACE_FIELDS
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import Operation, Upstream
from tests.loopback_server import LoopbackHandler, serving
from tests.runtime.transports.blocking_http_server import calling
from tests.runtime.transports.conftest import modern
from tests.runtime.transports.test_probes import Probed

pytestmark = pytest.mark.anyio
TRACE, OTHER = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319d"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
AROUND = f"00-{OTHER}-00f067aa0ba902b7-01"


class Api(LoopbackHandler):
    """An API on loopback that keeps what it was sent; it answers the path's number."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, dict[str, str], bytes]]

    def get(self) -> None:
        self.asked.append((self.path, dict(self.headers.items()), self.body()))
        status = int(self.path.rpartition("/")[2].partition("?")[0]) if "status" in self.path else 200
        self.answer(status, b"{}" if "status" in self.path else b"")

    post = get


class Traced:
    """A server with telemetry, and what it collected."""

    def __init__(self) -> None:
        self.kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.kept))
        self.reader = InMemoryMetricReader()
        self.server = Server("traced")
        self.server.add_telemetry(provider, MeterProvider([self.reader]))
        self.server.add_telemetry(provider)  # twice is once

        @self.server.tool
        def current() -> str:
            return f"{get_current_span().get_span_context().span_id:016x}"

        @self.server.tool
        async def fail() -> None:
            raise ToolError("no")

        @self.server.tool
        async def odd() -> None:
            raise McpError(7001, "odd words")

    def spans(self, kind: SpanKind = SpanKind.SERVER) -> list[ReadableSpan]:
        return [span for span in self.kept.get_finished_spans() if span.kind == kind]


def _ids(span: ReadableSpan) -> tuple[str, str]:
    assert span.parent is not None
    return f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}"


async def test_a_request_is_a_span_with_the_names_of_the_conventions_and_the_current_one_for_its_handler() -> None:
    traced = Traced()
    async with Probed(traced.server.http_app()) as probed:
        answer = await probed.http.post("/mcp", **calling("current", {}, number=7))
    (span,) = traced.spans()
    assert span.name == "tools/call current"
    assert span.parent is None
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "current",
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": LATEST.name,
        "jsonrpc.request.id": "7",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "client.address": "127.0.0.1",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert answer.json()["result"]["structuredContent"] == {"result": f"{span.get_span_context().span_id:016x}"}


async def test_failures_are_marked_by_the_conventions() -> None:
    traced = Traced()
    async with Probed(traced.server.http_app()) as probed:
        for tool in ("fail", "odd", "made-up"):
            await probed.http.post("/mcp", **calling(tool, {}))
    found = [
        (span.name, span.attributes["error.type"], span.attributes.get("rpc.response.status_code"), span.status.description)
        for span in traced.spans()
        if span.attributes
    ]  # fmt: skip
    assert found == [
        ("tools/call fail", "tool_error", None, None),
        ("tools/call odd", "7001", "7001", "odd words"),
        ("tools/call", "-32602", "-32602", "Unknown tool: 'made-up'"),
    ]
    assert {span.status.status_code for span in traced.spans()} == {StatusCode.ERROR}


@pytest.mark.parametrize(
    ("meta", "headers", "parent", "linked"),
    [
        ({"traceparent": PARENT}, {}, (TRACE, PARENT[36:52]), []),
        ({}, {"traceparent": AROUND}, (OTHER, AROUND[36:52]), []),
        ({"traceparent": PARENT}, {"traceparent": AROUND}, (TRACE, PARENT[36:52]), [OTHER]),
        ({"traceparent": 7}, {"traceparent": "nonsense"}, None, []),
        ({"traceparent": "00-" + "0" * 32 + "-b7ad6b7169203331-01"}, {}, None, []),
    ],
)
async def test_a_span_belongs_to_what_meta_says_else_to_the_http_request(
    meta: dict[str, Any], headers: dict[str, str], parent: Any, linked: list[str]
) -> None:
    traced = Traced()
    message = calling("current", {})
    message["json"] = modern("tools/call", {"name": "current", "arguments": {}}, **meta)
    async with Probed(traced.server.http_app()) as probed:
        await probed.http.post("/mcp", json=message["json"], headers={**message["headers"], **headers})
    (span,) = traced.spans()
    assert (None if span.parent is None else _ids(span)) == parent
    assert [f"{link.context.trace_id:032x}" for link in span.links] == linked


@pytest.mark.parametrize("revision", [LATEST.name, LATEST_LEGACY.name])
async def test_our_client_says_which_span_and_baggage_it_calls_within(revision: str) -> None:
    traced = Traced()

    @traced.server.tool
    async def meta(ctx: Context) -> dict[str, Any]:
        return {name: ctx.meta[name] for name in TRACE_FIELDS if name in ctx.meta}

    provider = TracerProvider()
    async with connect(traced.server, revision) as client:
        plain = await client.call_tool("meta")
        around = TraceContextTextMapPropagator().extract({"traceparent": AROUND, "tracestate": "vendor=1"})
        token = attach(set_baggage("tenant", "blue", around))
        with provider.get_tracer("caller").start_as_current_span("outside") as outside:
            sent = await client.call_tool("meta")
            told = await client.call("tools/call", {"name": "meta", "arguments": {}, "_meta": {"traceparent": PARENT}})
        detach(token)
    context = outside.get_span_context()
    parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    assert plain["structuredContent"] == {}
    assert sent["structuredContent"] == {"traceparent": parent, "tracestate": "vendor=1", "baggage": "tenant=blue"}
    assert told["structuredContent"] == {"traceparent": PARENT, "baggage": "tenant=blue"}
    found = [span for span in traced.spans() if span.name == "tools/call meta"]
    assert [span.parent and _ids(span)[1] for span in found] == [None, parent[36:52], PARENT[36:52]]


async def test_calls_of_apis_are_children_and_carry_the_trace_and_nothing_of_their_address() -> None:
    traced = Traced()
    asked: list[Any] = []
    with serving(Api, asked=asked) as url:
        port = urlsplit(url).port
        upstream = Upstream(url, environ={"MCPFACTORY_ALLOW_PRIVATE": "1"}, retry_wait=0)

        @traced.server.tool
        async def look(status: int) -> str:
            return str(await upstream.send(Operation("GET", f"/status/secret-path/{status}"), {}))

        async with Probed(traced.server.http_app()) as probed:
            for status in (200, 404, 503):
                await probed.http.post("/mcp", **calling("look", {"status": status}))
        await upstream.aclose()
    parents, children = traced.spans(), traced.spans(SpanKind.CLIENT)
    assert [span.name for span in children] == ["GET"] * 5
    assert [_ids(span)[1] for span in children] == [
        f"{parents[number].get_span_context().span_id:016x}" for number in (0, 1, 2, 2, 2)
    ]
    assert [dict(span.attributes or {}) for span in children][1::3] == [
        {
            "http.request.method": "GET",
            "server.address": "127.0.0.1",
            "server.port": port,
            "http.response.status_code": 404,
            "error.type": "404",
        },
        {
            "http.request.method": "GET",
            "http.request.resend_count": 2,
            "server.address": "127.0.0.1",
            "server.port": port,
            "http.response.status_code": 503,
            "error.type": "503",
        },
    ]
    sent = [headers["traceparent"].rpartition("-")[0] for _, headers, _ in asked]
    contexts = [span.get_span_context() for span in children]
    assert sent == [f"00-{context.trace_id:032x}-{context.span_id:016x}" for context in contexts]


PROGRAM = """
import sys
from mcpfactory_runtime import Server
server = Server("programmed")

@server.tool
async def add(a: int, b: int) -> int:
    return a + b

{before}
server.run({arguments})
"""


async def test_the_command_line_sends_spans_by_otlp_before_the_server_ends() -> None:
    asked: list[Any] = []
    with serving(Api, asked=asked) as url:
        program = PROGRAM.format(before="", arguments=["--otel"])
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        async with Client.connect_stdio([sys.executable, "-c", program], env=environ) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
    bodies = [body for path, _, body in asked if path == "/v1/traces"]
    sent = [ExportTraceServiceRequest.FromString(body).resource_spans[0] for body in bodies]
    assert "tools/call add" in [span.name for one in sent for span in one.scope_spans[0].spans]
    assert {("service.name", "programmed")} <= {
        (pair.key, pair.value.string_value) for pair in sent[0].resource.attributes
    }
