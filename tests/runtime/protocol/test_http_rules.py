"""The decision ladder as a table: method, headers and body in, what to do out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    McpError,
)
from mcpfactory_runtime.protocol.http import (
    Accepted,
    BeginSession,
    EndSession,
    Mirrored,
    OpenStream,
    Rejection,
    ServeCall,
    SessionMessage,
    check_host_and_origin,
    route,
)
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2024_11_05, Revision
from tests.runtime.requirements import requirement

NEW, OLD = LATEST.name, LATEST_LEGACY.name
LOCAL = {"localhost", "127.0.0.1", "[::1]"}


def sessions(session_id: str) -> Revision | None:
    return {"s1": LATEST_LEGACY}.get(session_id)


def mirrored(tool: str) -> Mirrored:
    return (("mcp-param-region", ("region",)),) if tool == "regional" else ()


def decide(body: Any, method: str = "POST", /, **headers: str) -> Any:
    named = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return route(method, named, body, sessions, mirrored)


def call(method: str = "tools/list", params: Any = None, /, **meta: Any) -> dict[str, Any]:
    full = {"_meta": {META_VERSION: NEW, META_CAPABILITIES: {}, **meta}, **(params or {})}
    return {"jsonrpc": "2.0", "id": 3, "method": method, "params": full}


PLAIN = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
INITIALIZE = {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": OLD}}
HEADERS = {"mcp_protocol_version": NEW, "mcp_method": "tools/list"}
TOOL = call("tools/call", {"name": "add", "arguments": {}})

REFUSED: list[tuple[str, Any, dict[str, str], int, int]] = [
    ("no JSON", McpError(PARSE_ERROR, "no"), HEADERS, 400, PARSE_ERROR),
    ("an array", [call()], HEADERS, 400, INVALID_REQUEST),
    ("a response", {"jsonrpc": "2.0", "id": 1, "result": {}}, HEADERS, 400, INVALID_REQUEST),
    ("a null id", {**call(), "id": None}, HEADERS, 400, INVALID_REQUEST),
    ("no method", {"jsonrpc": "2.0", "id": 3, "params": {}}, HEADERS, 400, INVALID_REQUEST),
    ("no metadata under a modern header", PLAIN, HEADERS, 400, INVALID_PARAMS),
    ("initialize under a modern header", INITIALIZE, HEADERS, 400, INVALID_PARAMS),
    ("no capabilities", call("tools/list", None, **{META_CAPABILITIES: None}), HEADERS, 400, INVALID_PARAMS),
    ("metadata without header", call(), {"mcp_method": "tools/list"}, 400, HEADER_MISMATCH),
    ("metadata with an old header", call(), {**HEADERS, "mcp_protocol_version": OLD}, 400, HEADER_MISMATCH),
    ("no Mcp-Method", call(), {"mcp_protocol_version": NEW}, 400, HEADER_MISMATCH),
    ("another Mcp-Method", call(), {**HEADERS, "mcp_method": "Tools/List"}, 400, HEADER_MISMATCH),
    ("no Mcp-Name", TOOL, {**HEADERS, "mcp_method": "tools/call"}, 400, HEADER_MISMATCH),
    ("another Mcp-Name", TOOL, {**HEADERS, "mcp_method": "tools/call", "mcp_name": "sub"}, 400, HEADER_MISMATCH),
    (
        "bad base64 in Mcp-Name",
        TOOL,
        {**HEADERS, "mcp_method": "tools/call", "mcp_name": "=?base64?!?="},
        400,
        HEADER_MISMATCH,
    ),
    (
        "a version nobody knows",
        call("tools/list", None, **{META_VERSION: "2099-01-01"}),
        {**HEADERS, "mcp_protocol_version": "2099-01-01"},
        400,
        UNSUPPORTED_VERSION,
    ),
    *(
        (f"{method} is gone", call(method), {**HEADERS, "mcp_method": method}, 404, METHOD_NOT_FOUND)
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "nonsense")
    ),
    (
        "a mirrored argument without header",
        call("tools/call", {"name": "regional", "arguments": {"region": "eu"}}),
        {**HEADERS, "mcp_method": "tools/call", "mcp_name": "regional"},
        400,
        HEADER_MISMATCH,
    ),
    ("no session", PLAIN, {}, 400, INVALID_REQUEST),
    ("an ended session", PLAIN, {"mcp_session_id": "gone"}, 404, INVALID_REQUEST),
    (
        "another version than negotiated",
        PLAIN,
        {"mcp_session_id": "s1", "mcp_protocol_version": R2024_11_05.name},
        400,
        INVALID_REQUEST,
    ),
    ("no JSON in a session", McpError(PARSE_ERROR, "no"), {"mcp_session_id": "s1"}, 400, PARSE_ERROR),
]


@requirement(
    "http-modern.mcp-method",
    "http-modern.mcp-name",
    "http-modern.version-missing",
    "http-modern.version-mismatch",
    "http-modern.version-unsupported",
    "http-modern.unknown-method",
    "http-modern.error-id",
    "http-modern.markers",
    "http-modern.header-case",
    "param-header.missing",
    "session.missing",
    "session.ended",
    "version-header.mismatch",
    "meta.required-keys",
    "meta.required-keys-status",
    "http-modern.single",
)
@pytest.mark.parametrize(("what", "body", "headers", "status", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_requests_are_refused_with_status_and_code(
    what: str, body: Any, headers: dict[str, str], status: int, code: int
) -> None:
    refused = decide(body, **headers)
    assert isinstance(refused, Rejection)
    assert refused.message is not None
    assert (refused.status, refused.message["error"]["code"]) == (status, code)
    own = body.get("id") if isinstance(body, dict) else None
    assert refused.message.get("id") == own


ACCEPTED: list[tuple[str, Any, str, dict[str, str], type]] = [
    ("a modern request", call(), "POST", HEADERS, ServeCall),
    ("a modern request with an old session", call(), "POST", {**HEADERS, "mcp_session_id": "s1"}, ServeCall),
    (
        "blanks around headers",
        TOOL,
        "POST",
        {**HEADERS, "mcp_method": " tools/call\t", "mcp_name": " add "},
        ServeCall,
    ),
    (
        "an encoded name",
        TOOL,
        "POST",
        {**HEADERS, "mcp_method": "tools/call", "mcp_name": "=?base64?YWRk?="},
        ServeCall,
    ),
    (
        "a mirrored argument",
        call("tools/call", {"name": "regional", "arguments": {"region": "eu"}}),
        "POST",
        {**HEADERS, "mcp_method": "tools/call", "mcp_name": "regional", "mcp_param_region": "eu"},
        ServeCall,
    ),
    ("a modern notification", {"jsonrpc": "2.0", "method": "notifications/x"}, "POST", HEADERS, Accepted),
    ("initialize", INITIALIZE, "POST", {}, BeginSession),
    ("initialize with an old header", INITIALIZE, "POST", {"mcp_protocol_version": OLD}, BeginSession),
    ("a request in a session", PLAIN, "POST", {"mcp_session_id": "s1"}, SessionMessage),
    ("a batch in a session", [PLAIN], "POST", {"mcp_session_id": "s1", "mcp_protocol_version": OLD}, SessionMessage),
    ("GET in a session", None, "GET", {"mcp_session_id": "s1"}, OpenStream),
    ("DELETE in a session", None, "DELETE", {"mcp_session_id": "s1"}, EndSession),
]


@requirement(
    "http-modern.encoded-name", "http-modern.header-space", "http-modern.no-sessions", "http-modern.notification"
)
@pytest.mark.parametrize(("what", "body", "method", "headers", "kind"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_requests_are_routed(what: str, body: Any, method: str, headers: dict[str, str], kind: type) -> None:
    assert type(decide(body, method, **headers)) is kind


@requirement("origin.validated", "origin.status", "origin.host")
@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("localhost:8000", None, True),
        ("localhost:", None, True),
        ("127.0.0.1:1@evil.example", None, False),
        ("localhost:abc", None, False),
        ("localhost:80:80", None, False),
        ("[::1]:abc", None, False),
        ("[::1]:1@evil.example", None, False),
        ("127.0.0.1", None, True),
        ("[::1]:8000", None, True),
        ("LOCALHOST", None, True),
        ("evil.example", None, False),
        ("", None, False),
        ("[::1", None, False),
        ("[::1].evil.example", None, False),
        ("localhost", "http://[::1].evil.example", False),
        ("localhost:8000", "http://localhost:6274", True),
        ("localhost", "https://[::1]:1", True),
        ("localhost:8000", "http://evil.example", False),
        ("localhost:8000", "null", False),
        ("localhost:8000", "http://localhost.evil.example", False),
        ("localhost:8000", "http://localhost:80@evil.example", False),
        ("localhost:8000", "http://localhost:1, http://evil.example", False),
        ("localhost:8000", "https://app.example", True),
        ("localhost:8000", "https://app.example:8443", False),
    ],
)
def test_only_this_machine_and_named_origins_may_call(host: str, origin: str | None, allowed: bool) -> None:
    headers = {"host": host} | ({"origin": origin} if origin is not None else {})
    refused = check_host_and_origin(headers, LOCAL, {"https://app.example"})
    assert (refused is None) == allowed
    assert refused is None or refused.status == 403


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
HEADER_NAMES = ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "content-type", "mcp-param-region"]
HEADER_VALUES = st.sampled_from([NEW, OLD, "s1", "tools/call", "tools/list", "regional", "=?base64?w7w=?="]) | st.text(
    max_size=8
)
BODIES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers() | JSON,
        "method": st.sampled_from(["tools/call", "tools/list", "initialize"]) | JSON,
        "params": JSON
        | st.fixed_dictionaries(
            {
                "_meta": st.fixed_dictionaries(
                    {META_VERSION: st.just(NEW) | JSON, META_CAPABILITIES: st.just({}) | JSON}
                )
            },
            optional={"name": st.just("regional") | JSON, "arguments": JSON},
        ),
        "result": JSON,
    },
)


@requirement("http-modern.error-id")
@given(
    st.sampled_from(["POST", "GET", "DELETE", "PATCH"]),
    st.dictionaries(st.sampled_from(HEADER_NAMES), HEADER_VALUES),
    BODIES | JSON | st.lists(BODIES, max_size=2),
)
def test_whatever_comes_gets_a_route_and_refusals_echo_no_wrong_id(
    method: str, headers: dict[str, str], body: Any
) -> None:
    chosen = route(method, headers, body, sessions, mirrored)
    if isinstance(chosen, Rejection) and chosen.message is not None:
        own = body.get("id") if isinstance(body, dict) else None
        assert chosen.message.get("id") in (own, None)
        assert 400 <= chosen.status < 500
