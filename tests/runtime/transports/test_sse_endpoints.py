"""HTTP with SSE, the transport of the oldest revision, beside the endpoint of the others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import LEGACY, R2024_11_05
from tests.runtime.interaction import sample
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.requirements import requirement
from tests.runtime.transports.blocking_http_server import serving
from tests.runtime.transports.conftest import hello, request
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture
def root(sample_url: str) -> str:  # noqa: F811 - the fixture
    return sample_url.removesuffix("/mcp")


class Reader:
    """The events of an open stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def next(self) -> tuple[str, str]:
        """Type and data of the next event."""
        kind, data = "message", ""
        for line in self._lines:
            name, _, value = line.partition(":")
            if name == "event":
                kind = value.strip()
            elif name == "data":
                data = value.strip()
            elif not line and data:
                return kind, data
        raise EOFError

    def message(self) -> Any:
        return json.loads(self.next()[1])


@pytest.fixture
def http(root: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=root, timeout=TIMEOUT, trust_env=False, verify=False) as client:
        yield client


@requirement("http-sse.endpoints", "http-sse.endpoint-event", "http-sse.messages")
def test_the_first_event_names_the_address_and_answers_come_on_the_stream(http: httpx.Client) -> None:
    with http.stream("GET", "/sse") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        reader = Reader(stream)
        kind, address = reader.next()
        assert kind == "endpoint"
        assert address.startswith("/messages?session_id=")
        for message in (hello(R2024_11_05.name), request("tools/call", ADD, 7)):
            answer = http.post(address, json=message)
            assert (answer.status_code, answer.content) == (202, b"")
        assert reader.message()["result"]["protocolVersion"] == R2024_11_05.name
        result = reader.message()
        assert (result["id"], result["result"]["content"][0]["text"]) == (7, "3")
        assert "structuredContent" not in result["result"]
        assert http.post(address, json=request("nothing", id=8)).status_code == 202
        assert reader.message()["error"]["code"] == -32601


def test_only_a_result_that_follows_progress_waits(tmp_path: Path) -> None:
    program = f"""
from {sample.__name__} import server
from mcpfactory_runtime.transports.http.sessions import SseSession
assert SseSession.progress_gap > 0
SseSession.progress_gap = 3600
server.run()
"""
    with serving(tmp_path, command=[sys.executable, "-c", program]) as web, web.http.stream("GET", "/sse") as stream:
        reader = Reader(stream)
        address = reader.next()[1]
        web.http.post(address, json=hello(R2024_11_05.name))
        assert reader.message()["id"] == 0
        web.http.post(address, json=request("tools/call", {"name": "speak", "_meta": {"progressToken": "t"}}, 7))
        while reader.message().get("params", {}).get("progress") != 3:
            pass
        web.http.post(address, json=request("tools/call", ADD, 8))
        assert reader.message()["id"] == 8


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/sse", b"{}", 405),
        ("GET", "/messages", b"", 405),
        ("POST", "/messages", b"{}", 404),
        ("POST", "/messages?session_id=guessed", b"{}", 404),
        ("DELETE", "/sse", b"", 405),
    ],
)
def test_what_is_not_meant_is_refused(http: httpx.Client, method: str, path: str, content: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    assert http.request(method, path, content=content, headers=headers).status_code == status


@requirement("http-sse.origin")
def test_pages_of_other_sites_are_refused_at_both_addresses(http: httpx.Client) -> None:
    evil = {"origin": "http://evil.example"}
    assert http.get("/sse", headers=evil).status_code == 403
    assert http.post("/messages?session_id=x", json={}, headers=evil).status_code == 403
    assert http.get("/sse", headers={"host": "evil.example"}).status_code == 403


def test_a_session_ends_with_its_stream(http: httpx.Client) -> None:
    with http.stream("GET", "/sse") as stream:
        address = Reader(stream).next()[1]
    for _ in range(10_000):  # the server sees the end of the connection a moment later
        status = http.post(address, json=request("ping")).status_code
        if status == 404:
            break
    assert status == 404


@requirement("http-sse.endpoints", "http-sse.messages")
async def test_the_official_client_of_this_transport_lists_and_calls(root: str) -> None:
    async with sse_client(f"{root}/sse", timeout=TIMEOUT) as streams, ClientSession(*streams) as session:
        opened = await session.initialize()
        assert opened.server_info.name == "sample"
        assert opened.protocol_version in LEGACY
        assert "add" in [tool.name for tool in (await session.list_tools()).tools]
        steps: list[float] = []

        async def step(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        result = await session.call_tool("speak", progress_callback=step)
        assert not result.is_error
        assert steps == [1, 2, 3]


@requirement("http-sse.beside")
@pytest.mark.parametrize("revision", ["", R2024_11_05.name])
async def test_our_client_finds_its_way_to_this_transport(root: str, revision: str) -> None:
    async with Client.connect_http(f"{root}/sse", revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2}))["content"][0]["text"] == "3"
