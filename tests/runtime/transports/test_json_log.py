"""The log as JSON lines: what a server writes to stderr, and what it never does."""

from __future__ import annotations

import json
import logging
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.observability.observed_request import JsonFormatter, RequestLogger
from mcpfactory_runtime.upstream import Operation, SecurityScheme, Upstream
from tests import loopback_server
from tests.runtime.transports.blocking_http_server import calling, serving
from tests.runtime.transports.conftest import hello, request
from tests.runtime.transports.test_probes import Probed
from tests.runtime.transports.test_tracing import PARENT, TRACE, Api, Traced

pytestmark = pytest.mark.anyio

LOUD = """
import logging
from mcpfactory_runtime import Server
server = Server("loud")

@server.tool
def shout(word: str) -> str:
    logging.getLogger("mine").warning("heard %s\\nand more", word)
    return word

@server.tool
def fail() -> None:
    raise OSError("no database")

server.run()
"""


@pytest.fixture
def log() -> Any:
    """What is logged while a test runs, as JSON objects."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root, ours = logging.getLogger(), logging.getLogger("mcpfactory_runtime")
    level = ours.level
    root.addHandler(handler)
    ours.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    ours.setLevel(level)


async def test_a_process_writes_nothing_but_json_lines_one_for_each_request(tmp_path: Path) -> None:
    program = tmp_path / "loud.py"
    program.write_text(LOUD)
    with serving(tmp_path, "--log-format", "json", command=[sys.executable, str(program)]) as web:
        web.root = json.loads(web.told)["message"].split(" at ")[1].removesuffix("/mcp")
        web.call("shout", {"word": "hunter2"}, number=3)
        web.call("fail")
    lines = [json.loads(line) for line in web.told.splitlines()]
    assert [line["message"].split(" at ")[0] for line in lines] == [
        "loud: serving MCP",
        "heard hunter2\nand more",
        "tools/call shout",
        "tool fail failed",
        "tools/call fail",
    ]
    (_, heard, shouted, traceback, failed) = lines
    assert (heard["logger"], heard["level"], heard["request"]) == ("mine", "warning", "3")
    assert shouted.items() >= {"method": "tools/call", "tool": "shout", "request": "3", "outcome": "ok", "address": "127.0.0.1"}.items()  # fmt: skip
    assert "hunter2" not in json.dumps(shouted)  # no arguments, no results
    assert "no database" in traceback["exception"]
    assert failed["outcome"] == "tool_error"


async def test_on_stdio_the_log_goes_to_stderr_and_the_protocol_is_not_disturbed(tmp_path: Path) -> None:
    program, stderr = tmp_path / "loud.py", tmp_path / "stderr"
    program.write_text(LOUD)
    command = ["sh", "-c", f"exec {sys.executable} {program} --log-format json 2>{stderr}"]
    async with Client.connect_stdio(command) as client:
        assert (await client.call_tool("shout", {"word": "hi"}))["structuredContent"] == {"result": "hi"}
    lines = [json.loads(line) for line in stderr.read_text().splitlines()]
    assert "tools/call shout" in [line["message"] for line in lines]


async def test_lines_have_the_ids_of_the_spans(log: Any) -> None:
    traced = Traced()
    traced.server._observe(RequestLogger())

    @traced.server.tool
    def speak() -> None:
        logging.getLogger("mine").warning("within")

    message = calling("speak", {})
    async with Probed(traced.server.http_app()) as probed:
        await probed.http.post("/mcp", json=message["json"], headers={**message["headers"], "traceparent": PARENT})
    (span,) = traced.spans()
    within, line = [one for one in log() if one["message"] in ("within", "tools/call speak")]
    for one in (within, line):
        assert one["trace_id"] == TRACE == f"{span.get_span_context().trace_id:032x}"
        assert one["span_id"] == f"{span.get_span_context().span_id:016x}"


async def test_what_a_client_chose_is_cut_and_sessions_are_named_by_a_digest(log: Any) -> None:
    server = Server("logged")
    server._observe(RequestLogger())
    greeting = hello()
    greeting["params"]["clientInfo"]["name"] = "n" * 5000
    async with Probed(server.http_app()) as probed:
        session = (await probed.http.post("/mcp", json=greeting)).headers["mcp-session-id"]
        await probed.http.post("/mcp", json=request("ping", id="i" * 5000), headers={"mcp-session-id": session})
    (line,) = [one for one in log() if one["message"] == "ping"]
    assert (len(line["client"]), len(line["request"]), len(line["session"])) == (128, 128, 16)
    assert session not in json.dumps(log())


async def test_credentials_of_calls_are_taken_out_of_every_line(log: Any) -> None:
    key = 's3cr3t/"key'
    scheme = SecurityScheme("key", "apiKey", place="header", parameter="x-key", variables=("THE_KEY",))
    asked: list[tuple[str, dict[str, str], bytes]] = []
    with loopback_server.serving(Api, asked=asked) as url:
        environ = {"MCPFACTORY_ALLOW_PRIVATE": "1", "THE_KEY": key}
        async with Upstream(url, [scheme], environ=environ) as upstream:
            await upstream.send(Operation("GET", "/status/200", security=(("key",),)), {})
    assert key in asked[0][1].values()
    try:
        raise OSError(f"denied: {key}")
    except OSError:
        logging.getLogger("mine").exception("with %s", key)
    (line,) = [one for one in log() if one["logger"] == "mine"]
    assert line["message"] == "with [redacted]"
    assert "denied: [redacted]" in line["exception"]
