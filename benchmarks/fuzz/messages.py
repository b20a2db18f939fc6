"""The JSON-RPC decoder and the state machine of a connection: any lines, in either role, with answers in between.

Each line is a message, but for these: `!` answers the oldest call in flight, `?` asks the peer something, `#` takes back the
newest request, and `-` lets a call go.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.fuzz.mutation import mutate_lines
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Answer, Batch, Call, Connection, Event, Notice, Refusal
from mcpfactory_runtime.protocol.errors import CODES, McpError
from mcpfactory_runtime.protocol.peer import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, REVISIONS

__all__ = ["SEEDS", "WORDS", "mutate", "one"]

_META = {META_VERSION: LATEST.name, META_CAPABILITIES: {}}
_HELLO = {"protocolVersion": next(iter(REVISIONS)), "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def _lines(*messages: Any) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages)


def _request(method: str, params: Any = None, name: Any = 1) -> Any:
    return {"jsonrpc": "2.0", "id": name, "method": method, "params": params or {}}


_HANDSHAKES = tuple(
    _lines(
        _request("initialize", {**_HELLO, "protocolVersion": name}),
        b"!",
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [_request("ping", name=2), _request("tools/list", name=3)],
        b"?",
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        _request("tools/call", {"name": "x", "arguments": {}}, "a"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}},
        b"-",
    )
    for name in REVISIONS
)
SEEDS = (
    *_HANDSHAKES,
    _lines(_request("tools/list", {"_meta": _META}), _request("server/discover", {"_meta": _META}, "1"), b"!", b"!"),
    _lines(_request("initialize", {}), {"jsonrpc": "2.0", "id": None, "error": {}}, [], [[]], 5, b"{", b"\xff"),
    _lines(b"?", {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}, b"?", b"#", {"id": 2, "result": []}),
)
WORDS = (
    *sorted({method for revision in REVISIONS.values() for method in revision.methods | revision.notifications}),
    *REVISIONS,
    *_META,
    *("jsonrpc", "2.0", "id", "method", "params", "_meta", "result", "error", "code", "requestId", "protocolVersion"),
)
mutate = mutate_lines


def one(data: bytes) -> None:
    """Feed the lines to a server's side and to a client's."""
    _talk(Connection("server"), data.split(b"\n"))
    _talk(Connection("client"), data.split(b"\n"))


def _talk(connection: Connection, lines: list[bytes]) -> None:
    asked: list[Any] = []
    for line in lines:
        calls = list(connection.in_flight.values())
        if line == b"!" and calls:
            _answered(connection, calls[0])
        elif line == b"-" and calls:
            connection.forget(calls[0])
        elif line == b"#" and asked:
            connection.abandon(asked.pop())
        elif line == b"?":
            try:
                name, sent = connection.request("ping")
            except McpError:  # a revision that has no such request
                continue
            assert name not in asked, "an id used twice"
            assert jsonrpc.decode(sent)["id"] == name
            asked.append(name)
        else:
            _fed(connection, line, asked)


def _fed(connection: Connection, line: bytes, asked: list[Any]) -> None:
    try:
        message = jsonrpc.decode(line)
    except McpError as error:
        _refused(connection.undecodable(error), None)
        return
    _checked(connection, connection.receive(message), message, asked)


def _checked(connection: Connection, event: Event, message: Any, asked: list[Any]) -> None:
    match event:
        case Batch():
            assert len(event.events) == len(message), "an event for each message of a batch"
            for inner, part in zip(event.events, message, strict=True):
                _checked(connection, inner, part, asked)
        case Call():
            assert _same(event.id, message["id"]), f"call {event.id!r} for request {message['id']!r}"
            assert connection.in_flight[event.id] is event
            assert event.method == message["method"]
        case Notice():
            assert "id" not in message, "a request taken for a notification"
        case Answer():
            assert any(_same(event.id, name) for name in asked), f"an answer to {event.id!r}, which nobody asked"
            asked.remove(event.id)
        case Refusal():
            _refused(event, message)


def _refused(refusal: Refusal, message: Any) -> None:
    """A refusal can be sent, has a code of ours, the id of its request or none, and never answers a response."""
    said = refusal.message
    if said is None:
        return
    assert jsonrpc.decode(jsonrpc.encode(said)) == said
    assert said["error"]["code"] in CODES
    own = message.get("id") if isinstance(message, dict) else None
    if said.get("id") is not None:
        assert _same(said["id"], own), f"a refusal of {said['id']!r} for {own!r}"
    response = isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)
    assert not response, "a response was answered"


def _answered(connection: Connection, call: Call) -> None:
    said = jsonrpc.decode(connection.answer(call, {"ok": True}))
    assert _same(said["id"], call.id), f"{said['id']!r} answers {call.id!r}"
    assert call.id not in connection.in_flight


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
