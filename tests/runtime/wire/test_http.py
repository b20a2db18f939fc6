"""Streamable HTTP of each revision, request by request, without a socket."""

from __future__ import annotations

import asyncio
import inspect
import json
from base64 import b64encode
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
from pydantic import Field

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, INVALID_REQUEST, UNSUPPORTED_VERSION
from mcpfactory_runtime.protocol.peer import META_LOG_LEVEL
from mcpfactory_runtime.revisions import LATEST, LEGACY, R2025_03_26, R2025_06_18, R2025_11_25, Revision
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement

from .speech import Json, Reply, dressed, notification, request, web

pytestmark = pytest.mark.anyio

STREAMED = [revision for revision in LEGACY.values() if revision.name >= R2025_03_26.name]
sessions = pytest.mark.parametrize("revision", STREAMED, ids=str)
ADD: Json = {"name": "add", "arguments": {"a": 1}}


def slow() -> tuple[Server, asyncio.Event, list[str]]:
    """A server with a tool that begins, then waits for the event; what happened is in the list."""
    server, go, log = Server("slow"), asyncio.Event(), list[str]()

    @server.tool
    async def work(ctx: Context) -> str:
        """Work."""
        log.append("begun")
        await ctx.report_progress(1)
        try:
            await go.wait()
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        await ctx.report_progress(2)
        log.append("done")
        return "done"

    @server.tool
    async def later(ctx: Context) -> str:
        """Let the client come back for the result."""
        ctx.close_stream(retry=7)
        await go.wait()
        return "later"

    @server.tool
    async def mirrored(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
        size: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Size"})] = 0,
    ) -> str:
        """Be mirrored."""
        return f"{region} {size}"

    return server, go, log


def working(token: Any = "t") -> Json:
    return request("tools/call", {"name": "work", "arguments": {}, "_meta": {"progressToken": token}})


# -- sessions ------------------------------------------------------------------------------------------------------------------


@requirement(
    "session.begun", "session.ascii", "session.unguessable", "session.delete", "session.ended", "session.missing"
)
@sessions
async def test_sessions_are_begun_used_and_ended(revision: Revision) -> None:
    async with web(sample) as http:
        names = {await http.begin(revision) for _ in range(20)}
        assert len(names) == 20
        assert all(len(name) >= 22 and all(0x21 <= ord(letter) <= 0x7E for letter in name) for name in names)
        failed = await http.post(request("initialize", {}))
        assert "mcp-session-id" not in failed.headers
        assert (await http.post(request("ping"))).status == 400
        name = names.pop()
        assert (await http.post(request("ping"), mcp_session_id=name)).status == 200
        assert (await http.send("DELETE", mcp_session_id=name)).status == 200
        for gone in (name, "never", names.pop()[:-1]):
            assert (await http.post(request("ping"), mcp_session_id=gone)).status == 404
            assert (await http.get(mcp_session_id=gone)).status == 404
        assert (await http.post(request("ping"), mcp_session_id=names.pop())).status == 200


@requirement("version-header.unsupported")
@pytest.mark.parametrize("revision", [R2025_06_18, R2025_11_25], ids=str)
async def test_a_version_header_that_nobody_knows_is_refused(revision: Revision) -> None:
    async with web(sample) as http:
        session = await http.begin(revision)
        for wrong in ("1999-01-01", "x", ""):
            reply = await http.post(request("ping"), mcp_session_id=session, mcp_protocol_version=wrong)
            assert reply.status == 400
        reply = await http.post(request("ping"), mcp_session_id=session, mcp_protocol_version=revision.name)
        assert reply.status == 200


@requirement("version-header.unsupported", "http-modern.version-unsupported", "version.unsupported-status")
async def test_a_version_that_nobody_serves_is_refused_with_what_would_be() -> None:
    async with web(sample) as http:
        message = json.loads(json.dumps(dressed(LATEST, request("tools/list"))).replace(LATEST.name, "2099-01-01"))
        reply = await http.post(message, mcp_protocol_version="2099-01-01", mcp_method="tools/list")
        error = (await reply.json())["error"]
        assert (reply.status, error["code"]) == (400, UNSUPPORTED_VERSION)
        assert LATEST.name in error["data"]["supported"]


@requirement("version-header.missing", "version-header.mismatch")
@pytest.mark.parametrize("revision", [R2025_06_18, R2025_11_25], ids=str)
async def test_the_version_of_a_session_is_the_negotiated_one(revision: Revision) -> None:
    async with web(sample) as http:
        session = await http.begin(revision)
        reply = await http.post(request("tools/call", ADD), mcp_session_id=session)
        assert (await reply.json())["result"]["structuredContent"] == {"result": 3}
        for other in LEGACY.values():
            if other is not revision:
                reply = await http.post(request("ping"), mcp_session_id=session, mcp_protocol_version=other.name)
                assert reply.status == 400


# -- posts ---------------------------------------------------------------------------------------------------------------------


@requirement("http.one-endpoint", "http.accepted", "http.request", "http.not-accepted")
@sessions
async def test_posts_are_answered_accepted_or_refused(revision: Revision) -> None:
    async with web(sample) as http:
        session = await http.begin(revision)
        for message in (notification("notifications/roots/list_changed"), {"jsonrpc": "2.0", "id": 9, "result": {}}):
            reply = await http.post(message, mcp_session_id=session)
            assert (reply.status, await reply.body()) == (202, b"")
        reply = await http.post(request("tools/call", ADD, 5), mcp_session_id=session)
        assert (reply.status, (await reply.json())["id"]) == (200, 5)
        wrong: Any
        for wrong in (b"{", b"", b"5", b"null", {"jsonrpc": "1.0", "method": "ping"}, {}):
            reply = await http.post(wrong, mcp_session_id=session)
            assert 400 <= reply.status < 500


@requirement("http.single", "batch.refused")
@pytest.mark.parametrize("revision", [R2025_06_18, R2025_11_25], ids=str)
async def test_one_message_a_post_where_there_are_no_batches(revision: Revision) -> None:
    async with web(sample) as http:
        session = await http.begin(revision)
        reply = await http.post([request("ping")], mcp_session_id=session)
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, INVALID_REQUEST)


@requirement("batch.http-202", "batch.accept", "batch.one-answer")
async def test_batches_are_answered_in_one_array_or_accepted() -> None:
    async with web(sample) as http:
        session = await http.begin(R2025_03_26)
        news = notification("notifications/roots/list_changed")
        reply = await http.post([news, {"jsonrpc": "2.0", "id": 9, "result": {}}], mcp_session_id=session)
        assert (reply.status, await reply.body()) == (202, b"")
        reply = await http.post([request("ping", id=1), news, request("ping", id=2)], mcp_session_id=session)
        assert sorted(answer["id"] for answer in await reply.json()) == [1, 2]


@requirement(
    "http.stream-has-response", "http.stream-ends", "http.stream-related", "resume.ids", "resume.ids-name-stream"
)
@sessions
async def test_a_stream_carries_what_belongs_to_its_request_and_ends_with_the_response(revision: Revision) -> None:
    server, go, _ = slow()
    async with web(server) as http:
        session = await http.begin(revision)
        first = await http.post(working("one"), mcp_session_id=session)
        second = await http.post({**working("two"), "id": 2}, mcp_session_id=session)
        assert first.headers["content-type"] == "text/event-stream"
        go.set()
        ids = set()
        for reply, name, number in ((first, "one", 1), (second, "two", 2)):
            events = await reply.events()
            ids |= {event["id"] for event in events}
            assert len({event["id"].rpartition("-")[0] for event in events}) == 1
            *before, last = [json.loads(event["data"]) for event in events if event["data"]]
            assert [message["params"]["progressToken"] for message in before] == [name, name]
            assert last["id"] == number
        assert len(ids) == 6 + 2 * revision.priming


@requirement("http.disconnect", "resume.replay", "resume.own-stream")
@sessions
async def test_who_comes_back_gets_the_rest_of_that_stream_and_nothing_else(revision: Revision) -> None:
    server, go, log = slow()
    async with web(server) as http:
        session = await http.begin(revision)
        reply = await http.post(working("one"), mcp_session_id=session)
        event = await reply.event()
        if not event["data"]:
            event = await reply.event()
        other = await http.post({**working("two"), "id": 2}, mcp_session_id=session)
        await reply.leave()
        go.set()
        await other.events()
        assert log == ["begun", "begun", "done", "done"]
        again = await http.get(mcp_session_id=session, last_event_id=event["id"])
        messages = await again.messages()
        assert [message.get("id", message.get("params", {}).get("progressToken")) for message in messages] == ["one", 1]


@requirement("polling.primed", "polling.early-end", "polling.retry")
async def test_a_stream_may_end_early_once_the_client_can_come_back() -> None:
    server, go, _ = slow()
    async with web(server) as http:
        session = await http.begin(R2025_11_25)
        reply = await http.post(request("tools/call", {"name": "later"}), mcp_session_id=session)
        events = await reply.events()
        assert (events[0]["data"], "id" in events[0]) == ("", True)
        assert events[-1] == {"retry": "7"}
        go.set()
        again = await http.get(mcp_session_id=session, last_event_id=events[0]["id"])
        assert (await again.messages())[0]["result"]["content"][0]["text"] == "later"


@requirement("polling.not-before", "http.no-early-end")
@pytest.mark.parametrize("revision", [R2025_03_26, R2025_06_18], ids=str)
async def test_no_stream_ends_early_or_is_primed_where_clients_do_not_expect_it(revision: Revision) -> None:
    server, go, _ = slow()
    async with web(server) as http:
        session = await http.begin(revision)
        posting = asyncio.ensure_future(
            http.post(request("tools/call", {"name": "later"}), mcp_session_id=session, accept="text/event-stream")
        )
        go.set()
        events = await (await posting).events()
        assert [json.loads(event["data"])["id"] for event in events] == [1]


# -- the stream of the session ---------------------------------------------------------------------------------------------------


@requirement("http-get.stream", "http-get.unrelated", "http-get.no-responses", "http-get.one-stream")
@sessions
async def test_the_sessions_stream_carries_what_belongs_to_no_request_and_each_message_once(revision: Revision) -> None:
    async with web(sample) as http:
        session = await http.begin(revision)
        first = await http.get(mcp_session_id=session)
        assert (first.status, first.headers["content-type"]) == (200, "text/event-stream")
        second = await http.get(mcp_session_id=session)
        for number in (1, 2):
            call = request("tools/call", {"name": "grow"}, number)
            assert (await (await http.post(call, mcp_session_id=session)).json())["id"] == number
        assert (await http.send("DELETE", mcp_session_id=session)).status == 200
        heard = [message for reply in (first, second) for message in await reply.messages()]
        assert len(heard) == 12  # two calls, each of which adds and removes three things
        assert all(message["method"].endswith("/list_changed") for message in heard)


# -- the per-request lifecycle -------------------------------------------------------------------------------------------------


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


def encoded(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


# what is mirrored: (arguments, headers, whether the call is served)
MIRRORED: list[tuple[Json, dict[str, str], bool]] = [
    ({"region": "eu"}, {"mcp_param_region": "eu"}, True),
    ({"region": "ü"}, {"mcp_param_region": encoded("ü")}, True),
    ({"size": 5}, {"mcp_param_size": "5.0"}, True),
    ({}, {}, True),
    ({}, {"mcp_param_other": "x", "mcp_param_colour": "red"}, True),
    ({"region": "eu"}, {}, False),
    ({"region": "eu"}, {"mcp_param_region": "us"}, False),
    ({"region": "ü"}, {"mcp_param_region": "=?base64?w7w?="}, False),
    ({"size": 5}, {"mcp_param_size": "6"}, False),
]


@requirement(
    "param-header.missing",
    "param-header.mismatch",
    "param-header.invalid",
    "param-header.absent",
    "param-header.status",
    "param-header.decoded",
    "param-header.numeric",
    "param-header.unknown",
)
@pytest.mark.parametrize(("arguments", "headers", "good"), MIRRORED)
async def test_mirrored_arguments_must_be_what_their_headers_say(
    arguments: Json, headers: dict[str, str], good: bool
) -> None:
    async with web(slow()[0]) as http:
        reply = await http.ask(LATEST, "tools/call", {"name": "mirrored", "arguments": arguments}, None, **headers)
        answer = await reply.json()
        assert (reply.status, answer.get("error", {}).get("code")) == ((200, None) if good else (400, HEADER_MISMATCH))


@requirement("param-header.definition")
def test_a_tool_with_an_invalid_annotation_is_refused() -> None:
    async def take(price: Annotated[float, Field(json_schema_extra={"x-mcp-header": "Price"})]) -> str:
        """Take."""
        return str(price)

    with pytest.raises(ValueError, match="hint:"):
        Server("mirrored").tool(take)


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
