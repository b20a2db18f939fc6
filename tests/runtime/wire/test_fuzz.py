"""Whatever bytes come: no crash, no hang, no answer with an id that nobody used. `MCPFACTORY_FUZZ=N` tries N times more."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.revisions import LATEST, R2025_03_26, REVISIONS
from mcpfactory_runtime.testing import serve_memory
from tests.fuzzing import examples
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import PATIENCE, Json, dressed, hello, notification, request, web

METHODS = sorted(
    {method for revision in REVISIONS.values() for method in revision.requests | revision.client_notifications}
    - {"subscriptions/listen"}
)
META = {META_VERSION: LATEST.name, META_CAPABILITIES: {}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
IDS = st.integers(0, 5) | st.sampled_from(["a", "b"]) | JSON
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.just(META) | st.dictionaries(st.sampled_from([*META, "progressToken"]), JSON) | JSON,
        "name": st.sampled_from(["add", "speak", "ask_for", "greet"]) | JSON,
        "arguments": st.fixed_dictionaries({"a": st.integers()}) | JSON,
        "uri": st.sampled_from(["memo://today", "book://a/1"]) | JSON,
        "cursor": JSON,
        "requestId": IDS,
        "protocolVersion": st.sampled_from([*REVISIONS, "x"]) | JSON,
        "requestState": JSON,
        "inputResponses": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={
        "id": IDS,
        "method": st.sampled_from(METHODS) | JSON,
        "params": PARAMS | JSON,
        "result": JSON,
        "error": JSON,
    },
)
TEXTS = (MESSAGES | st.lists(MESSAGES, max_size=3) | JSON).map(lambda value: json.dumps(value).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message with some bytes changed, dropped or doubled."""
    text = bytearray(draw(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        if text:
            at = draw(st.integers(0, len(text) - 1))
            text[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(text).replace(b"\n", b" ")


LINES = st.lists(TEXTS | damaged() | st.binary(max_size=30).map(lambda data: data.replace(b"\n", b" ")), max_size=8)


def ids_in(line: bytes) -> list[Any]:
    """The ids that a line used, as a reader of JSON sees them."""
    try:
        value = jsonrpc.decode(line)
    except McpError:
        return []
    found = value if isinstance(value, list) else [value]
    return [json.dumps(one["id"]) for one in found if isinstance(one, dict) and "id" in one]


async def exchange(lines: list[bytes], cuts: list[int]) -> list[Json]:
    """What the server answers to the lines, cut anywhere, until a last request in each lifecycle is answered."""
    last = (request("initialize", hello(R2025_03_26.name)["params"], "last-1"), request("ping", id="last-2"))
    newest = dressed(LATEST, request("server/discover", id="last-3"))
    data = b"".join(line + b"\n" for line in [*lines, *(json.dumps(one).encode() for one in (*last, newest))])
    answers: list[Json] = []
    async with serve_memory(sample) as stream:
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            await stream.send(data[start:end])
        left = {"last-1", "last-2", "last-3"}
        while left:
            heard = json.loads(await asyncio.wait_for(stream.receive(), PATIENCE))
            for message in heard if isinstance(heard, list) else [heard]:
                answers.append(message)
                left.discard(message.get("id") if isinstance(message.get("id"), str) else "")
    return answers


@requirement(
    "stdio.wrong-line", "message.response-id", "message.not-json", "message.not-json-rpc", "message.response-silence"
)
@settings(max_examples=examples(150), deadline=None)
@given(LINES, st.data())
def test_any_lines_are_answered_with_their_own_ids_and_the_next_request_is_served(
    lines: list[bytes], data: st.DataObject
) -> None:
    size = sum(map(len, lines)) + len(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    used = Counter(name for line in lines for name in ids_in(line))
    used.update({'"last-1"': 1, '"last-2"': 1, '"last-3"': 1})
    for message in asyncio.run(exchange(lines, cuts)):
        if "method" in message:
            continue  # a notification, or a question of the server's: its ids are its own
        assert ("result" in message) != ("error" in message)
        if message.get("id") is not None:
            name = json.dumps(message["id"])
            assert used[name] > 0, message
            used[name] -= 1


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([*REVISIONS, "x"])
        | st.text(st.characters(max_codepoint=255), max_size=5),
        "mcp-session-id": st.sampled_from(["@session", "gone", ""]),
        "mcp-method": st.sampled_from(METHODS) | st.text(st.characters(max_codepoint=255), max_size=5),
        "mcp-name": st.sampled_from(["add", "=?base64?YWRk?=", "=?base64?!?=", ""]),
        "mcp-param-region": st.text(st.characters(max_codepoint=255), max_size=5),
        "content-type": st.sampled_from(["application/json", "text/plain", "application/json; x", ""]),
        "accept": st.sampled_from(["application/json", "text/event-stream", "*/*", ""]),
        "last-event-id": st.sampled_from(["0-0", "1-1", "x", "-", "9-99999999999999999999", "²-²"]),
        "origin": st.sampled_from(["http://localhost:1", "http://evil.example", "null", "", "://"]),
        "host": st.sampled_from(["localhost", "evil.example", "", "[::1", "localhost:x"]),
        "authorization": st.sampled_from(["Bearer x", "Basic", ""]),
    },
)


async def answered(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, str]:
    """Status, body and type of the answer to a request, with `@session` replaced by a living session."""
    async with web(sample) as http:
        session = await http.begin(R2025_03_26)
        given = {name.replace("-", "_"): value.replace("@session", session) for name, value in headers.items()}
        reply = await http.send(method, body, path, **given)
        kind = reply.headers.get("content-type", "")
        endless = method == "GET" and reply.status == 200
        content = b"" if endless else await reply.body()
        await reply.leave()
        after = await http.post(notification("notifications/initialized"), mcp_session_id=session)
        assert after.status in (202, 404)  # 404: it was a DELETE
    return reply.status, content, kind


@requirement("http.not-accepted", "http-modern.error-id")
@settings(max_examples=examples(250), deadline=None)
@given(
    st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"]),
    st.sampled_from(["/mcp", "/mcp", "/mcp", "/mcp/", "/", "/sse", "/messages", "/mcp/..", "/.well-known/x", "//"]),
    HEADERS,
    TEXTS | damaged(),
)
def test_any_request_over_http_gets_a_status_and_an_error_with_its_own_id(
    method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    status, content, kind = asyncio.run(answered(method, path, headers, body))
    assert status in (200, 202, 204, 400, 403, 404, 405, 406, 409, 413, 415)
    if kind == "application/json" and content:
        found = json.loads(content)
        for message in found if isinstance(found, list) else [found]:
            if message.get("id") is not None:
                assert json.dumps(message["id"]) in ids_in(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'"' + b"\\u0000" * 50_000,
        b"1" * 100_000,
        b"-" * 100_000,
        b'{"id":' + b"9" * 9999,
    ],
    ids=["arrays", "objects", "escapes", "digits", "signs", "number"],
)
@requirement("message.not-json")
def test_bodies_made_to_exhaust_a_reader_are_refused_at_once(body: bytes) -> None:
    status, _, _ = asyncio.run(answered("POST", "/mcp", {"mcp-session-id": "@session"}, body))
    assert status == 400
