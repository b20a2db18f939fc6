"""Figures for Prometheus: what a scrape reads, over sockets, by the parser of prometheus_client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mcpfactory_runtime import McpError, Server, ToolError
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.server.observability.observed_request import BUCKETS
from tests.runtime.transports.blocking_http_server import calling
from tests.runtime.transports.conftest import hello
from tests.runtime.transports.test_probes import ISSUER, RESOURCE, Probed, _opened

pytestmark = pytest.mark.anyio
DURATION = "mcp_server_operation_duration_seconds"
LABELS = ("mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "error_type")


def _server(**tools: Any) -> Server:
    server = Server("counted")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail() -> None:
        raise ToolError("no")

    @server.tool
    async def odd(code: int) -> None:
        raise McpError(code, "odd")

    @server.prompt
    def greet() -> str:
        return "hello"

    server.add_metrics()
    return server


async def _scrape(probed: Probed, **headers: str) -> dict[tuple[str, ...], float]:
    """The series of one scrape: name and labels → value."""
    answer = await probed.http.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, *(sample.labels.get(label, "") for label in LABELS)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.labels.get("le", "+Inf") == "+Inf"
    }


def _counts(series: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {labels: value for (name, *labels_), value in series.items() if name == f"{DURATION}_count" for labels in [tuple(labels_)]}  # fmt: skip


async def test_requests_are_counted_by_method_target_and_failure() -> None:
    async with Probed(_server().http_app()) as probed:
        async with Client.connect_http(f"{probed.url}/mcp") as client:
            for number in range(3):
                await client.call_tool("add", {"a": number, "b": 1})
            assert (await client.call_tool("fail", {}))["isError"]
            for name, arguments in (("nobody", {}), ("odd", {"code": -32602}), ("odd", {"code": 7001})):
                with pytest.raises(McpError):
                    await client.call_tool(name, arguments)
            await client.get_prompt("greet")
            with pytest.raises(McpError):
                await client.get_prompt("nobody")
        counted = _counts(await _scrape(probed))
    called = {labels[1:]: value for labels, value in counted.items() if labels[0] == "tools/call"}
    assert called == {
        ("add", "", ""): 3,
        ("fail", "", "tool_error"): 1,
        ("", "", "-32602"): 1,  # a name that a client made up is no label
        ("odd", "", "-32602"): 1,
        ("odd", "", "_OTHER"): 1,
    }
    assert counted["prompts/get", "", "greet", ""] == 1
    assert counted["prompts/get", "", "", "-32602"] == 1


async def test_series_have_the_names_and_buckets_of_the_conventions_and_durations_add_up() -> None:
    async with Probed(_server().http_app()) as probed:
        await probed.http.post("/mcp", **calling("add", {"a": 1, "b": 2}))
        answer = await probed.http.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        answer = await probed.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    (family,) = [one for one in text_string_to_metric_families(answer.text) if one.name == DURATION]
    edges = [sample.labels["le"] for sample in family.samples if "le" in sample.labels]
    assert [float(edge) for edge in edges] == [*BUCKETS, float("inf")]
    assert {sample.labels["mcp_protocol_version"] for sample in family.samples} == {LATEST.name}
    (total,) = [sample.value for sample in family.samples if sample.name == f"{DURATION}_sum"]
    assert 0 < total < 60


async def test_sessions_and_requests_under_way_are_shown_and_what_is_cancelled_ends() -> None:
    server = _server()
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with Probed(server.http_app()) as probed:
        session = {"mcp-session-id": (await probed.http.post("/mcp", json=hello())).headers["mcp-session-id"]}
        asked = asyncio.create_task(probed.http.post("/mcp", **calling("wait", {}, session, 5)))
        await begun.wait()
        series = await _scrape(probed)
        assert series["mcp_server_active_sessions", "", "", "", ""] == 1
        assert series["mcp_server_active_requests", "tools/call", "", "", ""] == 1
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        await probed.http.post("/mcp", json=note, headers=session)
        await cancelled.wait()
        await asked
        await probed.http.delete("/mcp", headers=session)
        series = await _scrape(probed)
    assert series["mcp_server_active_sessions", "", "", "", ""] == 0
    assert series["mcp_server_active_requests", "tools/call", "", "", ""] == 0
    assert series[f"{DURATION}_count", "tools/call", "wait", "", "cancelled"] == 1


async def test_nothing_is_served_unless_it_is_asked_for() -> None:
    async with Probed(Server("plain").http_app()) as probed:
        assert (await probed.http.get("/metrics")).status_code == 404


async def test_figures_are_for_whoever_may_call() -> None:
    auth = Authorization(issuer=ISSUER, resource=RESOURCE, verify=_opened, required_scopes=("read",))
    async with Probed(_server().http_app(auth=auth)) as probed:
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer bad"}, 401),
            ({"authorization": "Bearer good"}, 403),
        ):
            answer = await probed.http.get("/metrics", headers=headers)
            assert (answer.status_code, DURATION in answer.text) == (status, False)
        assert (await probed.http.get("/metrics", headers={"host": "evil.example"})).status_code in (403, 421)
    auth = Authorization(issuer=ISSUER, resource=RESOURCE, verify=_opened)
    async with Probed(_server().http_app(auth=auth)) as probed:
        assert DURATION in (await probed.http.get("/metrics", headers={"authorization": "Bearer good"})).text


PLAIN = """
import sys
from mcpfactory_runtime import Server
server = Server("plain")
{before}
sys.argv = ["plain", *{arguments}]
server.run()
"""


@pytest.mark.parametrize(
    ("before", "arguments", "said"),
    [
        ("", ["--metrics"], "hint: use --http --metrics"),
        (
            "sys.modules['prometheus_client'] = None",
            ["--http", "--metrics"],
            "hint: pip install 'mcpfactory-runtime[metrics]'",
        ),
    ],
)
def test_where_figures_cannot_be_served_the_command_line_says_what_to_do(
    before: str, arguments: list[str], said: str
) -> None:
    program = PLAIN.format(before=before, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("hint:") == 1
