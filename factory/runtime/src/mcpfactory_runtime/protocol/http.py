"""Routing of Streamable HTTP requests as a pure function, and checks of arguments that headers repeat.

The first rule that applies selects the action (basic/versioning; basic/transports/streamable-http):

1. `check_host_and_origin` refuses invalid Origin and Host, before the body is read.
2. Metadata in the body, or a version header without a handshake revision, selects the per-request lifecycle.
3. `initialize` selects the handshake.
4. Any other request selects a session of the handshake lifecycle.

In the per-request lifecycle, the version header and the metadata are both required. If a refused request has a readable
ID, the refusal contains the ID.

Only revisions with `method_header` have repeated arguments (basic/transports/streamable-http, Custom Headers).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import META_VERSION, Call, read_request_metadata
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, McpError, http_status
from mcpfactory_runtime.protocol.jsonrpc import MISSING
from mcpfactory_runtime.protocol.methods import CALL_TOOL, METHODS
from mcpfactory_runtime.revisions import ASSUMED, LATEST, LEGACY, MODERN, REVISIONS, Revision
from mcpfactory_runtime.schemas.walk import walk
from mcpfactory_runtime.types import Json

Path = tuple[str, ...]
Mirrored = tuple[tuple[str, Path], ...]
"""Pairs of lower-case header name and path of the argument, for the arguments that headers repeat."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
_TYPES: Final = {"string", "integer", "boolean"}
_SENTINEL: Final = re.compile(r"^=\?base64\?(.*)\?=$")
_ABSENT: Final = object()


def find_header_arguments(schema: Any) -> Mirrored:
    """Return the valid annotations of an input schema."""
    found: dict[str, Path] = {}
    doubled: set[str] = set()
    for path, header, kind in find_header_annotations(schema):
        if path and not _annotation_problem(path, header, kind):
            key = f"mcp-param-{header.lower()}"
            if key in found:
                doubled.add(key)
            found[key] = path
    return tuple((header, path) for header, path in found.items() if header not in doubled)


def header_annotation_error(schema: Any) -> str:
    """Return the reason why HTTP clients must omit a tool with this input schema, or "" (Custom Headers)."""
    seen: set[str] = set()
    for path, header, kind in find_header_annotations(schema):
        if fault := _annotation_problem(path, header, kind):
            return f"x-mcp-header {header!r} {fault}"
        if header.lower() in seen:
            return f"x-mcp-header {header!r} is used twice"
        seen.add(header.lower())
    return ""


def check_header_annotations(tool: str, schema: Any) -> None:
    """Check the annotations of an input schema, because clients omit tools with invalid annotations.

    Raises:
        ValueError: an annotation is invalid. The message contains the tool's name.
    """
    if fault := header_annotation_error(schema):
        raise ValueError(
            f"tool {tool}: {fault}\nhint: give each argument a different header name, and annotate only "
            "strings, integers and booleans below `properties`"
        )


def find_header_annotations(schema: Any) -> Iterator[tuple[Path | None, Any, Any]]:
    """Yield (path, header, type) for each annotation. Below other keywords than `properties`, the path is None."""
    for steps, node in walk(schema):
        if "x-mcp-header" in node:
            kind = node.get("type")
            path = tuple(map(str, steps[1::2])) if {*steps[::2]} <= {"properties"} else None
            yield path, node["x-mcp-header"], kind if isinstance(kind, str) else None


def _annotation_problem(path: Path | None, header: Any, kind: Any) -> str:
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        return "is not a header name"
    if not path:
        return "is not on a property that is reached by `properties` alone"
    return "" if kind in _TYPES else f"is on {'.'.join(path)}, which is not a string, integer or boolean"


def check_mirrored_headers(mirrored: Mirrored, arguments: Any, headers: Mapping[str, str]) -> None:
    """Raise McpError if the headers that repeat arguments of a call do not match the arguments."""
    for header, path in mirrored:
        value = _at(arguments, path)
        given = headers.get(header)
        if value is _ABSENT or value is None:
            if given is not None:
                raise McpError(HEADER_MISMATCH, f"Header {header} is set but argument {'.'.join(path)} is not")
            continue
        if given is None:
            raise McpError(HEADER_MISMATCH, f"Header {header} is missing; argument {'.'.join(path)} is set")
        if not _is_same(decode_header(given, header), value):
            raise McpError(HEADER_MISMATCH, f"Header {header} does not match argument {'.'.join(path)}")


def decode_header(value: str, header: str) -> str:
    """Return the text of a header, from base64 if the header has the markers `=?base64?…?=`."""
    value = value.strip(" \t")
    sentinel = _SENTINEL.match(value)
    if sentinel is None:
        return value
    try:
        return b64decode(sentinel[1], validate=True).decode()
    except ValueError:
        raise McpError(HEADER_MISMATCH, f"Header {header} has malformed base64") from None


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, dict) or name not in arguments:
            return _ABSENT
        arguments = arguments[name]
    return arguments


def _is_same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        try:
            return float(text) == value if "." in text or "e" in text.lower() else int(text) == value
        except ValueError:
            return False
    return bool(text == value)


Headers = Mapping[str, str]

VERSION_HEADER: Final = "mcp-protocol-version"
SESSION_HEADER: Final = "mcp-session-id"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MAX_HEAD: Final = 65_536  # maximum bytes of a request line and headers
_MAX_HEADERS: Final = 100
_LOCAL_ORIGIN: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")


class Rejection:
    """Respond with `status` and the JSON-RPC error `message`. If `message` is None, respond with the plain `text`."""

    __slots__ = ("headers", "message", "status", "text")

    def __init__(self, status: int, message: Json | None, text: str = "", headers: Headers | None = None) -> None:
        self.status, self.message, self.text = status, message, text
        self.headers = headers or {}


class Accepted:
    """Respond with 202 and no body."""

    __slots__ = ()


class ServeCall(NamedTuple):
    """Serve one request of the per-request lifecycle."""

    call: Call


class BeginSession(NamedTuple):
    """Begin a session with the `initialize` request `message`."""

    message: Json


class SessionMessage(NamedTuple):
    """Pass `message` to a session."""

    session: str
    message: Any


class OpenStream(NamedTuple):
    """Open a session's stream of server messages, or resume a stream after `last_event`."""

    session: str
    last_event: str | None


class EndSession(NamedTuple):
    """End a session."""

    session: str


Route = Rejection | Accepted | ServeCall | BeginSession | SessionMessage | OpenStream | EndSession
Sessions = Callable[[str], Revision | None]


def check_header_size(target: int, size: int, count: int = 0) -> Rejection | None:
    """Return a rejection if a request line and headers are too large.

    `size` is the number of bytes before the body. For an incomplete request, `size` is the number of bytes received so
    far.
    """
    if size <= _MAX_HEAD and count <= _MAX_HEADERS:
        return None
    status, what = (414, "a shorter URL") if target > _MAX_HEAD // 2 else (431, "fewer or shorter headers")
    text = f"The URL and headers exceed {_MAX_HEAD} bytes or {_MAX_HEADERS} headers. hint: send {what}\n"
    return Rejection(status, None, text, {"connection": "close"})


def check_host_and_origin(headers: Headers, hosts: Collection[str], origins: Collection[str]) -> Rejection | None:
    """Return a rejection if the request may come from a forbidden web page (basic/transports, Security Warning).

    `hosts` are permitted host names without port, and `*` permits all hosts. Web pages with one of the `origins` may
    call. Web pages from this machine may call loopback hosts.
    """
    host = _host_name(headers.get("host", ""))
    if host not in hosts and "*" not in hosts:
        return Rejection(403, None, f"Host {host!r} is not served here. hint: add it to allowed_hosts\n")
    origin = headers.get("origin")
    if origin is None or origin in origins or "*" in origins:
        return None
    if host in LOOPBACK and _LOCAL_ORIGIN.fullmatch(origin):
        return None
    return Rejection(403, None, f"Origin {origin!r} may not call this server. hint: add it to allowed_origins\n")


def route(method: str, headers: Headers, body: Any, sessions: Sessions, mirrored: Callable[[str], Mirrored]) -> Route:
    """Return the action for a request to the MCP endpoint.

    `body` is the decoded body of a POST request, or the McpError from decoding. `sessions` maps a session ID to a
    revision, or to None if there is no such session. `mirrored` maps a tool's name to the arguments that headers
    repeat.
    """
    if method == "POST":
        return _route_post(headers, body, sessions, mirrored)
    version = headers.get(VERSION_HEADER)
    if method not in ("GET", "DELETE") or (version in REVISIONS and version not in LEGACY):
        return Rejection(405, None, f"{method} is not served here\n", {"allow": "GET, POST, DELETE"})
    found = _session(headers, MISSING, sessions)
    if isinstance(found, Rejection):
        return found
    return OpenStream(found, headers.get("last-event-id")) if method == "GET" else EndSession(found)


def _route_post(headers: Headers, body: Any, sessions: Sessions, mirrored: Callable[[str], Mirrored]) -> Route:
    version = headers.get(VERSION_HEADER)
    if not declares_json_body(headers):
        return Rejection(415, None, "Content-Type must be application/json\n")
    request_id = jsonrpc.error_response_id(body)
    if _is_modern(body) or (version is not None and version not in LEGACY):
        try:
            return _modern(version, headers, body, mirrored)
        except McpError as error:
            return _refuse(error, request_id, LATEST)
    if isinstance(body, McpError):
        return _refuse(body, request_id, LEGACY.get(version or "", ASSUMED), status=400)
    if isinstance(body, dict) and body.get("method") == "initialize":
        return BeginSession(body)
    found = _session(headers, request_id, sessions)
    return found if isinstance(found, Rejection) else SessionMessage(found, body)


def declares_json_body(headers: Headers) -> bool:
    """Return True if a request declares a JSON body, which web pages can send only after a CORS preflight."""
    said = headers.get("content-type", "")
    kinds = {one.strip(" \t") for one in said.split(",")}  # a repeated header with equal values is valid
    kind = kinds.pop() if len(kinds) == 1 else said
    return kind.partition(";")[0].strip(" \t").lower() == "application/json"


def _is_modern(body: Any) -> bool:
    params = body.get("params") if isinstance(body, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and META_VERSION in meta


def _modern(version: str | None, headers: Headers, body: Any, mirrored: Callable[[str], Mirrored]) -> Route:
    if isinstance(body, McpError):
        raise body
    if not isinstance(body, dict) or "method" not in body:
        raise McpError(INVALID_REQUEST, "Invalid request: the body must be one request or notification")
    jsonrpc.check_message(body)
    if "id" not in body:
        return Accepted()
    method: str = body["method"]
    params: Json = body.get("params") or {}
    envelope = read_request_metadata(params)
    if version is None:
        raise McpError(HEADER_MISMATCH, "Header MCP-Protocol-Version is missing")
    if version.strip(" \t") != envelope.version:
        raise McpError(
            HEADER_MISMATCH, f"Header MCP-Protocol-Version does not match _meta, which has {envelope.version}"
        )
    row = MODERN.get(envelope.version, LATEST).rows["methods"].get(method)
    _check_method_headers(method, params, headers, METHODS[row].named if row else "")
    peer = envelope.peer()
    if row is None:
        raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
    if row == CALL_TOOL and type(params.get("name")) is str:
        annotated = mirrored(params["name"])
        if annotated:
            check_mirrored_headers(annotated, params.get("arguments"), headers)
    return ServeCall(Call(body["id"], row, params, peer))


def _check_method_headers(method: str, params: Json, headers: Headers, named: str) -> None:
    """Check that `Mcp-Method` repeats the method, and that `Mcp-Name` repeats the member `named` of the params."""
    if headers.get("mcp-method", "").strip(" \t") != method:
        raise McpError(HEADER_MISMATCH, f"Header Mcp-Method must be {method!r}, as in the body")
    # A missing or invalid name is refused later, as an invalid body.
    if named and type(params.get(named)) is str:
        given = headers.get("mcp-name")
        if given is None or decode_header(given, "Mcp-Name") != params[named]:
            raise McpError(HEADER_MISMATCH, f"Header Mcp-Name must repeat params.{named}")


def _session(headers: Headers, request_id: Any, sessions: Sessions) -> str | Rejection:
    """Return the session ID in the headers, or a rejection if the ID is missing or unknown."""
    session_id = headers.get(SESSION_HEADER)
    version = headers.get(VERSION_HEADER)
    spoken = LEGACY.get(version or "", ASSUMED)
    if session_id is None:
        error = McpError(INVALID_REQUEST, "Header Mcp-Session-Id is missing. hint: send initialize first")
        return _refuse(error, request_id, spoken, status=400)
    revision = sessions(session_id)
    if revision is None:
        error = McpError(INVALID_REQUEST, "Session not found. hint: start a new one with initialize")
        return _refuse(error, request_id, spoken, status=404)
    if version is not None and version != revision.name:
        error = McpError(INVALID_REQUEST, f"Header MCP-Protocol-Version must be {revision}, as negotiated")
        return _refuse(error, request_id, revision, status=400)
    return session_id


def _refuse(error: McpError, request_id: Any, revision: Revision, status: int | None = None) -> Rejection:
    message = jsonrpc.error_message(request_id, error, null_id=revision.null_id)
    return Rejection(http_status(error.code) if status is None else status, message)


_PORT: Final = re.compile("(?::[0-9]{0,5})?")


def _host_name(host: str) -> str:
    """Return a host in lower case, without its port."""
    if host.startswith("["):
        address, bracket, port = host.partition("]")
        return (address + bracket if _PORT.fullmatch(port) else host).lower()
    name, colon, port = host.partition(":")
    return (name if _PORT.fullmatch(colon + port) else host).lower()
