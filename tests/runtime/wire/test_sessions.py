"""Streamable HTTP of the handshake revisions: sessions, posts and their streams, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INVALID_REQUEST, UNSUPPORTED_VERSION
from mcpfactory_runtime.revisions import LATEST, LEGACY, R2025_03_26, R2025_06_18, R2025_11_25, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, dressed, notification, request, web
from tests.runtime.wire.slow import slow, working

pytestmark = pytest.mark.anyio

STREAMED = [revision for revision in LEGACY.values() if revision.name >= R2025_03_26.name]
sessions = pytest.mark.parametrize("revision", STREAMED, ids=str)
ADD: Json = {"name": "add", "arguments": {"a": 1}}


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
