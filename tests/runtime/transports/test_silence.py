"""A call that sends nothing for a while: its response becomes an event stream with comments, so that no proxy cuts it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST, LEGACY, REVISIONS
from tests.runtime.transports.blocking_http_server import Gate, Web, calling, serving
from tests.runtime.transports.conftest import hello

PROGRAM = """
from mcpfactory_runtime.transports import shutdown
from mcpfactory_runtime.transports.http import stream
shutdown.DRAIN, stream.KEEP_ALIVE = 0, 0.05
from tests.runtime.transports.blocking_server import server
server.run()
"""


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, command=[sys.executable, "-c", PROGRAM]) as running:
        yield running


def call(web: Web, revision: str, tool: str, gate: Gate) -> dict[str, Any]:
    """A call of a tool that holds, as the keywords of a POST by a client that accepts plain JSON only."""
    session = None
    if revision in LEGACY:
        session = {"mcp-session-id": web.http.post("/mcp", json=hello(revision)).headers["mcp-session-id"]}
    asked = calling(tool, {"gate": gate.path}, session)
    return {**asked, "headers": {**asked["headers"], "accept": "application/json"}}


def answer_in(lines: Iterator[str]) -> Any:
    return json.loads(next(line for line in lines if line.startswith("data: {"))[6:])


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_silent_call_becomes_a_stream_with_comments(web: Web, gate: Gate, revision: str) -> None:
    with web.http.stream("POST", "/mcp", **call(web, revision, "hold", gate)) as silent:
        lines = silent.iter_lines()
        assert any(line.startswith(":") for line in lines)
        assert (silent.status_code, silent.headers["content-type"]) == (200, "text/event-stream")
        gate.wait()
        gate.open("kept")
        assert answer_in(lines)["result"]["content"][0]["text"] == "kept"


@pytest.mark.parametrize("revision", [max(LEGACY), LATEST.name])
def test_a_silent_call_that_the_end_cuts_off_gets_an_error(web: Web, gate: Gate, revision: str) -> None:
    with web.http.stream("POST", "/mcp", **call(web, revision, "hold", gate)) as silent:
        lines = silent.iter_lines()
        assert any(line.startswith(":") for line in lines)
        gate.wait()
        web.process.terminate()
        assert answer_in(lines)["error"]["code"] == INTERNAL_ERROR
    gate.open("late")
