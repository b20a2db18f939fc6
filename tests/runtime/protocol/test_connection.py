"""The state machine without a loop: messages as a table, and a server and a client connection piped into each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol.connection import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_VERSION,
    Call,
    Connection,
    ErrorReply,
    Notification,
    State,
)
from mcpfactory_runtime.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    McpError,
)
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, R2025_03_26, R2025_06_18, Revision
from mcpfactory_runtime.types import Json
from tests.runtime.requirements import requirement


def request(method: str, params: Json | None = None, id: Any = 1) -> Json:  # noqa: A002 - as on the wire
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def notification(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def hello(version: str = LATEST_LEGACY.name, **changes: Any) -> Json:
    params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
    return request("initialize", {**params, **changes}, id="hello")


def modern(method: str, id: Any = 1, /, **meta: Any) -> Json:  # noqa: A002 - as on the wire
    return request(method, {"_meta": {META_VERSION: LATEST.name, META_CAPABILITIES: {}, **meta}}, id)


def opened(revision: Revision = LATEST_LEGACY) -> Connection:
    connection = Connection()
    call = connection.receive(hello(revision.name))
    assert isinstance(call, Call)
    connection.answer(call, {})
    connection.receive(notification("notifications/initialized"))
    return connection


def code(event: object) -> int:
    assert isinstance(event, ErrorReply)
    return event.error.code


@requirement("initialize.same-version")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
def test_the_handshake_negotiates_every_revision_that_has_one(revision: Revision) -> None:
    connection = opened(revision)
    assert connection.state is State.OPEN
    assert connection.peer is not None
    assert connection.peer.revision is revision
    assert connection.peer.declares("roots")
    assert not connection.peer.declares("sampling")


# (state before, message, what comes out)
TABLE: list[tuple[State, Json, type | int]] = [
    (State.FRESH, request("ping"), Call),
    (State.FRESH, request("tools/list"), INVALID_REQUEST),
    (State.FRESH, request("nonsense"), METHOD_NOT_FOUND),
    (State.FRESH, hello(), Call),
    (State.FRESH, hello(protocolVersion=5), INVALID_PARAMS),
    (State.FRESH, hello(capabilities=[]), INVALID_PARAMS),
    (State.FRESH, hello(clientInfo="me"), INVALID_PARAMS),
    (State.FRESH, modern("tools/list"), Call),
    (State.FRESH, modern("server/discover"), Call),
    (State.FRESH, request("server/discover"), METHOD_NOT_FOUND),
    (State.OPENING, request("tools/list"), Call),
    (State.OPEN, request("tools/list"), Call),
    (State.OPEN, hello(), Call),
    (State.OPEN, request("server/discover"), METHOD_NOT_FOUND),
    (State.OPEN, modern("tools/list"), Call),
    (State.OPEN, modern("initialize"), METHOD_NOT_FOUND),
    (State.OPEN, modern("ping"), METHOD_NOT_FOUND),
    (State.OPEN, modern("logging/setLevel"), METHOD_NOT_FOUND),
    (State.OPEN, modern("tools/list", **{META_VERSION: "2099-01-01"}), UNSUPPORTED_VERSION),
    (State.OPEN, modern("tools/list", **{META_VERSION: LATEST_LEGACY.name}), UNSUPPORTED_VERSION),
    (State.OPEN, modern("tools/list", **{META_VERSION: None}), INVALID_PARAMS),
    (State.OPEN, modern("tools/list", **{META_CAPABILITIES: None}), INVALID_PARAMS),
    (State.OPEN, modern("tools/list", **{META_CLIENT: "me"}), INVALID_PARAMS),
    (State.OPEN, modern("tools/list", **{META_LOG_LEVEL: "loud"}), INVALID_PARAMS),
    (State.OPEN, modern("tools/list", **{META_LOG_LEVEL: "error"}), Call),
    (State.OPEN, request("tools/list", id=None), INVALID_REQUEST),
]


@requirement(
    "message.id-null",
    "initialize.first",
    "initialize.ping-before",
    "message.unknown-method",
    "meta.required-keys",
    "version.retired-methods",
    "message.error-id",
)
@pytest.mark.parametrize(("state", "message", "outcome"), TABLE)
def test_what_a_request_means_depends_on_state_and_metadata(state: State, message: Json, outcome: type | int) -> None:
    connection = {State.FRESH: Connection, State.OPENING: opening, State.OPEN: opened}[state]()
    event = connection.receive(message)
    if isinstance(outcome, int):
        assert code(event) == outcome
        assert isinstance(event, ErrorReply)
        assert event.message is not None
        assert event.message.get("id") == message["id"]
    else:
        assert isinstance(event, outcome)


def opening() -> Connection:
    connection = Connection()
    connection.receive(hello())
    return connection


@requirement("message.id-in-flight")
def test_an_id_in_flight_cannot_be_used_again_until_it_is_answered() -> None:
    connection = opened()
    first = connection.receive(request("tools/list", id=7))
    assert isinstance(first, Call)
    assert code(connection.receive(request("tools/list", id=7))) == INVALID_REQUEST
    assert json.loads(connection.answer(first, {"tools": []})) == {"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}
    assert isinstance(connection.receive(request("tools/list", id=7)), Call)


@requirement("cancel.not-initialize", "cancel.ignore")
def test_only_requests_in_flight_can_be_cancelled_and_never_the_handshake() -> None:
    connection = Connection()
    connection.receive(hello())
    silent = connection.receive(notification("notifications/cancelled", {"requestId": "hello"}))
    assert isinstance(silent, ErrorReply)
    assert silent.message is None
    connection.receive(request("tools/list", id=7))
    assert isinstance(connection.receive(notification("notifications/cancelled", {"requestId": 7})), Notification)
    wrong: Any
    for wrong in (8, None, [], {}):
        assert isinstance(connection.receive(notification("notifications/cancelled", {"requestId": wrong})), ErrorReply)


@requirement("message.error-without-id")
def test_undecodable_bytes_are_answered_with_a_null_id_until_the_revision_leaves_ids_out() -> None:
    error = McpError(PARSE_ERROR, "no")
    assert Connection().decode_error_reply(error).message == {"jsonrpc": "2.0", "id": None, "error": error.to_dict()}
    assert opened(R2025_06_18).decode_error_reply(error).message is not None
    newest = opened(LATEST_LEGACY).decode_error_reply(error).message
    assert newest is not None
    assert "id" not in newest


@requirement("initialize.respect-version")
def test_a_server_cannot_request_what_the_revision_does_not_have() -> None:
    connection = opened(R2025_03_26)
    with pytest.raises(McpError) as refused:
        connection.request("elicitation/create", {})
    assert refused.value.code == METHOD_NOT_FOUND
    with pytest.raises(McpError):
        connection.notify("notifications/tasks/status")
    assert b"list_changed" in connection.notify("notifications/tools/list_changed")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | JSON,
        "method": st.sampled_from(sorted(LATEST_LEGACY.requests | LATEST_LEGACY.client_notifications)) | JSON,
        "params": JSON
        | st.fixed_dictionaries({"_meta": st.dictionaries(st.sampled_from([META_VERSION, META_CAPABILITIES]), JSON)}),
        "result": JSON,
        "error": JSON,
    },
)


@requirement("message.error-id")
@given(st.lists(PARTS | JSON | st.lists(PARTS, max_size=3), max_size=6))
def test_whatever_comes_gives_an_event_and_refusals_echo_no_wrong_id(messages: list[Any]) -> None:
    connection = opened(R2025_03_26)
    for message in messages:
        event = connection.receive(message)
        if isinstance(event, ErrorReply) and event.message is not None and isinstance(message, dict):
            assert event.message["id"] in (message.get("id"), None)
