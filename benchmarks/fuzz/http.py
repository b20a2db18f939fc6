"""The HTTP rules: a method, headers and a body, laid out as on the wire, to a decision."""

from __future__ import annotations

import json
import re
from typing import Any

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import CODES, McpError
from mcpfactory_runtime.protocol.http import (
    LOOPBACK,
    EndSession,
    Handshake,
    InSession,
    ModernCall,
    OpenStream,
    Rejection,
    check_origin,
    route,
)
from mcpfactory_runtime.protocol.param_headers import find_mirrored
from mcpfactory_runtime.protocol.peer import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, MODERN, REVISIONS, Revision

__all__ = ["SEEDS", "WORDS", "one"]

_META = {META_VERSION: LATEST.name, META_CAPABILITIES: {}}
_SCHEMA = {
    "properties": {
        name: {"type": kind, "x-mcp-header": name}
        for name, kind in (("region", "string"), ("size", "integer"), ("dry", "boolean"))
    }
}
_MIRRORED = find_mirrored(_SCHEMA)
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:.*)?", re.I | re.S)
_STATUS = {400, 403, 404, 405, 415} | {status for _, status in CODES.values()}


def _wire(head: str, body: Any = "", **headers: str) -> bytes:
    headers = {"content_type": "application/json", **headers} if head == "POST" else headers
    lines = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in headers.items())
    text = body if isinstance(body, str) else json.dumps(body)
    return f"{head}\n{lines}\n{text}".encode("latin-1")


def _modern(method: str, params: Any, **headers: str) -> bytes:
    message = {"jsonrpc": "2.0", "id": "7", "method": method, "params": {**params, "_meta": _META}}
    return _wire("POST", message, host="localhost", mcp_protocol_version=LATEST.name, mcp_method=method, **headers)


_CALL = {"name": "t", "arguments": {"region": "eu", "size": 42, "dry": True}}
SEEDS = (
    _modern("tools/list", {}),
    _modern("tools/call", _CALL, mcp_name="t", mcp_param_region="eu", mcp_param_size="42", mcp_param_dry="true"),
    _modern(
        "tools/call", _CALL, mcp_name="=?base64?dA==?=", mcp_param_region="=?base64?ZXU=?=", mcp_param_size="4.2e1"
    ),
    _modern("resources/read", {"uri": "x://y"}, mcp_name="x://y"),
    _wire("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, content_type="application/json"),
    _wire("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_session_id="s", host="[::1]:80"),
    _wire("POST", [{"jsonrpc": "2.0", "method": "x"}], mcp_session_id="gone", origin="http://localhost:1"),
    _wire("POST", "{", mcp_protocol_version="x", origin="null", host="evil.example"),
    _wire("GET", mcp_session_id="s", last_event_id="1-1", mcp_protocol_version=LATEST_LEGACY.name),
    _wire("DELETE", mcp_session_id="s", origin="https://[::1"),
)
WORDS = (
    *(
        f"{name}: "
        for name in ("host", "origin", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method")
    ),
    *(f"{name}: " for name in ("mcp-name", "mcp-param-region", "mcp-param-size", "mcp-param-dry", "last-event-id")),
    *sorted(LATEST.methods),
    *REVISIONS,
    *_META,
    "=?base64?",
    "?=",
    "localhost",
    "[::1]",
)


def _sessions(name: str) -> Revision | None:
    return LATEST_LEGACY if name == "s" else None


def one(data: bytes) -> None:
    """Decide what to do with the request; the decision must be one that its parts allow."""
    head, _, body = data.partition(b"\n\n")
    method, *lines = head.decode("latin-1").split("\n")
    headers = {name.strip().lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    refused = check_origin(headers, LOOPBACK, ())
    if refused is not None:
        assert refused.status == 403
    else:
        assert _LOCAL.fullmatch(headers["host"]), f"{headers['host']!r} is served"
        origin = headers.get("origin", "http://localhost")
        scheme, _, place = origin.partition("://")
        assert scheme in ("http", "https"), f"{origin!r} may call"
        assert _LOCAL.fullmatch(place), f"{origin!r} may call"
    try:
        message = jsonrpc.decode(body)
    except McpError as error:
        message = error
    decision = route(method, headers, message, _sessions, lambda name: _MIRRORED if name == "t" else ())
    version = headers.get("mcp-protocol-version")
    match decision:
        case Rejection():
            _rejected(decision, message if method == "POST" else None)
        case ModernCall():
            assert (version or "").strip(" \t") in MODERN, f"{version!r} is served as modern"
            assert headers["mcp-method"].strip(" \t") == message["method"] == decision.call.method
            same = type(decision.call.id) is type(message["id"]) and decision.call.id == message["id"]
            assert same, f"{decision.call.id!r} for {message['id']!r}"
        case Handshake():
            assert message["method"] == "initialize"
            assert version is None or version in LEGACY
        case InSession() | OpenStream() | EndSession():
            assert _sessions(decision.session) is not None, "handed to a session that does not live"
            assert version in (None, LATEST_LEGACY.name), f"{version!r} in a session of {LATEST_LEGACY}"


def _rejected(rejection: Rejection, message: Any) -> None:
    """A refusal has a status, and the id of its request when that had one."""
    assert rejection.status in _STATUS, rejection.status
    if rejection.message is None:
        assert rejection.text
        return
    own = message.get("id") if isinstance(message, dict) else None
    wanted = own if type(own) in (str, int) else None
    said = rejection.message.get("id")
    assert jsonrpc.decode(jsonrpc.encode(rejection.message)) == rejection.message
    assert type(said) is type(wanted), f"{said!r} for {own!r}"
    assert said == wanted, f"{said!r} for {own!r}"
