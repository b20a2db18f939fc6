"""The client over HTTP: the official SDK's server, and small servers that answer as old ones do."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, ConnectionLostError, HttpError, ProtocolError, accept_defaults
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, McpError
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_03_26, R2025_06_18
from tests.runtime.client.peer import HELLO, NOTHING, Asked, Json, error, handshake, peer, reply, result
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def sdk_server() -> AsyncIterator[str]:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(Path(__file__).with_name("sdk_server.py")), str(port)]
    process = await asyncio.create_subprocess_exec(
        *command, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(TIMEOUT):
            while b"Uvicorn running" not in await process.stderr.readline():
                pass
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.communicate()


async def test_the_official_server_speaks_both_lifecycles_over_http() -> None:
    async with sdk_server() as url:
        for revision in ("", LATEST_LEGACY.name, R2025_06_18.name, R2025_03_26.name):
            async with Client.connect_http(url, revision=revision) as client:
                assert client.revision.name == (revision or LATEST.name)
                assert [tool["name"] for tool in await client.list_tools()] == ["add", "count"]
                assert (await client.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
                steps: list[Any] = []
                await client.call_tool("count", progress=steps.append)
                assert [step["progress"] for step in steps] == [1, 2]
                assert (await client.read_resource("memo://today"))[0]["text"] == "a fine day"
                with pytest.raises(McpError) as caught:
                    await client.request("no/such/method")
                assert caught.value.code == METHOD_NOT_FOUND
            assert all(entry.http for entry in client.transcript if entry.direction == "received")


async def test_modern_requests_carry_their_headers() -> None:
    schema = {"type": "object", "properties": {"where": {"type": "string", "x-mcp-header": "Region"}}}

    async def answer(asked: Asked, _send: Any) -> Any:
        match asked.json["method"]:
            case "server/discover":
                return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
            case "tools/list":
                return result(asked, {"tools": [{"name": "tö", "inputSchema": schema}]})
            case _ if "mcp-param-region" not in asked.headers:
                return error(asked, HEADER_MISMATCH, 400)
        return result(asked, {"content": [], "resultType": "complete"})

    async with peer(answer) as server, Client.connect_http(server.url, {"Authorization": "Bearer s3cret"}) as client:
        await client.call_tool("tö", {"where": "eu"})
        assert "s3cret" not in repr(list(client.transcript))
    last = server.asked[-1].headers
    assert last["mcp-protocol-version"] == LATEST.name
    assert last["mcp-method"] == "tools/call"
    assert last["mcp-name"] == "=?base64?dMO2?="
    assert last["mcp-param-region"] == "eu"
    assert last["authorization"] == "Bearer s3cret"
    assert [asked.json["method"] for asked in server.asked] == [
        "server/discover",
        "tools/call",
        "tools/list",
        "tools/call",
    ]


async def test_a_tool_with_an_invalid_header_annotation_is_left_out_unless_one_wants_to_see_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = [
        {"name": name, "inputSchema": {"properties": {"a": {"type": kind, "x-mcp-header": "A"}}}}
        for name, kind in (("good", "integer"), ("bad", "number"))
    ]

    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.method != "POST" or "id" not in asked.json:
            return NOTHING
        match asked.json["method"]:
            case "server/discover":
                return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
            case "initialize":
                return result(asked, {**HELLO, "protocolVersion": LATEST_LEGACY.name})
        return result(asked, {"tools": tools})

    async with peer(answer) as server:
        async with Client.connect_http(server.url) as client:
            assert [tool["name"] for tool in await client.list_tools()] == ["good"]
            assert "tool 'bad' is omitted: x-mcp-header 'A' is on a" in caplog.text
            assert await client.list_tools(keep_invalid=True) == tools
        async with Client.connect_http(server.url, mode="legacy") as client:
            assert await client.list_tools() == tools


def test_defaults_are_accepted_and_a_url_is_not_opened() -> None:
    schema = {"properties": {"name": {"default": "Ann"}, "age": {"type": "integer"}, "yes": {"default": False}}}
    accepted = {"action": "accept", "content": {"name": "Ann", "yes": False}}
    assert accept_defaults({"requestedSchema": schema}) == accepted
    assert accept_defaults({"mode": "url", "url": "https://example.com"}) == {"action": "decline"}


async def test_input_that_the_server_requires_is_given_until_the_result_is_complete() -> None:
    rounds: list[Json] = []

    async def answer(asked: Asked, _send: Any) -> Any:
        params = asked.json["params"]
        if asked.json["method"] == "server/discover":
            return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
        rounds.append(
            {name: params[name] for name in ("arguments", "inputResponses", "requestState") if name in params}
        )
        if len(rounds) == 1:
            wanted = {
                "who": {"method": "elicitation/create", "params": {"message": "who?"}},
                "where": {"method": "roots/list"},
            }
            return result(asked, {"resultType": "input_required", "inputRequests": wanted, "requestState": "s1"})
        if len(rounds) == 2:
            return result(asked, {"resultType": "input_required", "requestState": "s2"})
        if params["name"] == "greedy":
            return result(
                asked, {"resultType": "input_required", "inputRequests": {"x": {"method": "sampling/createMessage"}}}
            )
        return result(asked, {"resultType": "complete", "content": []})

    handlers: Json = {"elicitation": lambda _params: {"action": "decline"}, "roots": lambda: [{"uri": "file:///r"}]}
    async with peer(answer) as server, Client.connect_http(server.url, **handlers) as client:
        assert (await client.call_tool("t", {"a": 1}))["resultType"] == "complete"
        assert rounds == [
            {"arguments": {"a": 1}},
            {
                "arguments": {"a": 1},
                "inputResponses": {"who": {"action": "decline"}, "where": {"roots": [{"uri": "file:///r"}]}},
                "requestState": "s1",
            },
            {"arguments": {"a": 1}, "requestState": "s2"},
        ]
        with pytest.raises(
            ProtocolError, match="requests sampling/createMessage, a capability that this client did not declare"
        ):
            await client.call_tool("greedy")
    assert len({asked.json["id"] for asked in server.asked}) == len(server.asked)


async def test_a_server_that_names_its_versions_is_asked_again_with_one_of_them() -> None:
    async def answer(asked: Asked, _send: Any) -> Any:
        if len(server.asked) == 1:
            return error(asked, UNSUPPORTED_VERSION, 400, {"supported": [LATEST.name, "soon"], "requested": "x"})
        return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {"tools": {}}})

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        assert (client.revision, client.capabilities) == (LATEST, {"tools": {}})


@pytest.mark.parametrize(
    "bad",
    [
        {"result": {}},
        {"result": None},
        {"result": {"supportedVersions": [LATEST_LEGACY.name], "capabilities": {}}},
        {"result": {"supportedVersions": "all"}},
        (200, {"Content-Type": "text/event-stream"}, b""),
        (200, {"Content-Type": "application/json"}, b""),
        NOTHING,
    ],
)
async def test_initialize_follows_a_discovery_without_usable_versions(bad: Any) -> None:
    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.method != "POST":
            return 405, {}, b""
        if asked.json["method"] != "server/discover":
            return handshake(asked)
        return reply({"jsonrpc": "2.0", "id": asked.json["id"], **bad}) if isinstance(bad, dict) else bad

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        assert client.revision == LATEST_LEGACY


@pytest.mark.parametrize(
    ("bad", "failure", "match"),
    [
        ((500, {}, b"<h1>oops</h1>"), HttpError, "HTTP status 500: <h1>oops</h1>"),
        ((200, {"Content-Type": "application/json"}, b"{"), HttpError, "status 200"),
        (
            (200, {"Content-Type": "application/json"}, b'{"jsonrpc":"2.0","id":"z","result":{}}'),
            ProtocolError,
            "another id",
        ),
        ((200, {"Content-Type": "text/event-stream"}, b""), ConnectionLostError, "without a response"),
        (
            (302, {"Location": "http://169.254.169.254/"}, b""),
            HttpError,
            "a redirect to http://169.254.169.254/, which is another",
        ),
        ((303, {"Location": "/other"}, b""), HttpError, "status 303: a redirect to"),
    ],
)
async def test_an_answer_that_is_none_fails_the_request_at_once(bad: Any, failure: type[Exception], match: str) -> None:
    async def answer(asked: Asked, _send: Any) -> Any:
        if asked.json["method"] == "server/discover":
            return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
        return bad

    async with peer(answer) as server, Client.connect_http(server.url) as client:
        with pytest.raises(failure, match=match):
            await client.call_tool("t")


async def test_no_token_goes_to_another_origin() -> None:
    async def never(asked: Asked, _send: Any) -> Any:
        return NOTHING

    async with peer(never) as other:

        async def answer(asked: Asked, _send: Any) -> Any:
            return 307, {"Location": other.url}, b""

        async with peer(answer) as server:
            with pytest.raises(HttpError, match="which is another origin and not followed"):
                async with Client.connect_http(server.url, {"Authorization": "Bearer s3cret"}):
                    pass
        assert other.asked == []


async def test_nobody_there_is_told() -> None:
    for url, match in (
        ("http://127.0.0.1:9/mcp", r"no connection to 127\.0\.0\.1:9"),
        ("file:///x", "not an http or https URL"),
        ("http://[", "not an http or https URL"),
        ("http://127.0.0.1:99999/mcp", "not an http or https URL"),
    ):
        with pytest.raises(ConnectionLostError, match=match):
            async with Client.connect_http(url):
                pass


async def test_a_server_that_takes_no_notification_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpfactory_runtime.client.http._ACCEPT_TIMEOUT", 0.05)
    never = asyncio.Event()

    async def answer(asked: Asked, _send: Any) -> Any:
        match asked.json and asked.json["method"]:
            case "initialize":
                return result(asked, {**HELLO, "protocolVersion": LATEST_LEGACY.name})
            case "notifications/initialized":
                await never.wait()
            case "server/discover":
                return error(asked, METHOD_NOT_FOUND, 400)
        return 405, {}, b""

    async with peer(answer) as server:
        with pytest.raises(ConnectionLostError, match=r"did not accept a message within 0\.05 seconds"):
            async with Client.connect_http(server.url, timeout=TIMEOUT):
                pass
