"""Streamable HTTP of the per-request lifecycle, and what it refuses from everybody, without a socket."""

from __future__ import annotations

import asyncio
import inspect
import json
from urllib.parse import urlsplit

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.connection import META_LOG_LEVEL
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST
from mcpfactory_runtime.revisions import LATEST, R2025_11_25
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, Reply, dressed, notification, request, web
from tests.runtime.wire.slow import slow

pytestmark = pytest.mark.anyio


@requirement(
    "http-modern.related",
    "http-modern.stream-ends",
    "http-modern.no-buffering",
    "http-modern.no-resume",
    "logging.own-stream",
)
async def test_a_modern_stream_carries_its_request_only_and_cannot_be_resumed() -> None:
    async with web(sample) as http:
        meta = {"progressToken": "p", META_LOG_LEVEL: "debug"}
        speaking, silent = await asyncio.gather(
            http.ask(LATEST, "tools/call", {"name": "speak"}, meta, last_event_id="1-1"),
            http.ask(LATEST, "tools/call", {"name": "speak"}),
        )
        assert speaking.headers["x-accel-buffering"] == "no"
        events = await speaking.events()
        assert all("id" not in event for event in events)
        assert [json.loads(event["data"]).get("method", "result") for event in events] == [
            *["notifications/message"] * 4,
            *["notifications/progress"] * 3,
            "result",
        ]
        assert len(await silent.messages()) == 1


@requirement("http-modern.disconnect", "cancel.stop")
async def test_a_modern_client_that_leaves_has_cancelled() -> None:
    server, _, log = slow()
    async with web(server) as http:
        reply = await http.ask(LATEST, "tools/call", {"name": "work"}, {"progressToken": "t"})
        await reply.event()
        await reply.leave()
        assert log == ["begun", "cancelled"]


@requirement("http-modern.no-sessions", "http-modern.get-delete", "http-modern.notification", "http-modern.single")
async def test_the_newest_lifecycle_has_no_sessions_and_takes_one_message_a_post() -> None:
    async with web(sample) as http:
        session = await http.begin(R2025_11_25)
        reply = await http.ask(LATEST, "tools/list", None, None, mcp_session_id=session)
        assert (reply.status, "mcp-session-id" in reply.headers) == (200, False)
        for method in ("GET", "DELETE"):
            reply = await http.send(method, mcp_protocol_version=LATEST.name, mcp_session_id=session)
            assert (reply.status, "POST" in reply.headers["allow"]) == (405, True)
        reply = await http.post(notification("notifications/x"), mcp_protocol_version=LATEST.name)
        assert (reply.status, await reply.body()) == (202, b"")
        whole = dressed(LATEST, request("tools/list"))
        for wrong in ([whole], {"jsonrpc": "2.0", "id": 1, "result": {}}):
            reply = await http.post(wrong, mcp_protocol_version=LATEST.name, mcp_method="tools/list")
            assert (reply.status, (await reply.json())["error"]["code"]) == (400, INVALID_REQUEST)


@requirement("http-modern.no-requests", "input-required.instead")
async def test_no_request_travels_on_a_modern_stream() -> None:
    async with web(sample) as http:
        message = dressed(LATEST, request("tools/call", {"name": "greet"}), {"elicitation": {}})
        reply = await http.post(message, mcp_protocol_version=LATEST.name, mcp_method="tools/call", mcp_name="greet")
        messages = await reply.messages()
        assert [message.get("method") for message in messages] == [None]
        assert messages[0]["result"]["resultType"] == "input_required"


@requirement("meta.undeclared-capability-status", "meta.required-keys-status", "http-modern.error-id")
async def test_refusals_have_their_status_and_the_requests_id() -> None:
    async with web(sample) as http:
        reply = await http.ask(LATEST, "tools/call", {"name": "greet"})
        answer = await reply.json()
        assert (reply.status, answer["id"], answer["error"]["code"]) == (400, 1, -32021)
        assert answer["error"]["data"]["requiredCapabilities"]
        meta: Json
        for meta in ({}, {"_meta": {}}):
            reply = await http.post(
                request("tools/list", meta), mcp_protocol_version=LATEST.name, mcp_method="tools/list"
            )
            answer = await reply.json()
            assert (reply.status, answer["id"], answer["error"]["code"]) == (400, 1, -32602)


@requirement("origin.validated", "origin.status", "origin.first", "origin.host")
async def test_pages_of_other_sites_and_other_hosts_are_refused_whatever_they_send() -> None:
    async with web(sample) as http:
        for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}, {"origin": "null"}):
            for method, body in (("POST", b"{"), ("POST", request("ping")), ("GET", None), ("PUT", None)):
                reply: Reply = await http.send(method, body, **headers)
                assert reply.status == 403
        assert (await http.post(request("ping"), origin="http://localhost:3000")).status == 400


@requirement("origin.loopback")
def test_a_server_listens_on_this_machine_only_unless_told_otherwise(sample_url: str) -> None:  # noqa: F811 - the fixture
    assert urlsplit(sample_url).hostname == "127.0.0.1"
    assert inspect.signature(Server.run_http).parameters["host"].default == "127.0.0.1"
