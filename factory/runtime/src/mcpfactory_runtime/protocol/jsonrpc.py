"""JSON-RPC 2.0 messages and their framing in byte streams."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeGuard

from pydantic_core import from_json, to_json

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, McpError
from mcpfactory_runtime.types import Json

RequestId = str | int

MISSING: Final[Any] = object()
"""Marks a missing message ID, which differs from the ID null."""


_DEEPEST: Final = 255  # maximum nesting that pydantic-core encodes
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def decode(data: bytes | bytearray | memoryview | str) -> Any:
    """Return the JSON value in `data`, or raise McpError. NaN and Infinity are not JSON.

    A lone surrogate, which RFC 8259 permits in escaped form, becomes U+FFFD.
    """
    try:
        return from_json(data if isinstance(data, (bytes, bytearray, str)) else bytes(data), allow_inf_nan=False)
    except ValueError as error:
        whole = _without_halves(data.encode(errors="replace") if isinstance(data, str) else bytes(data))
        if whole is not None:
            return decode(whole)
        raise McpError(PARSE_ERROR, f"Parse error: {error}") from None


def _without_halves(data: bytes) -> bytes | None:
    """Replace escaped lone surrogates in a JSON text with U+FFFD, or return None if there are none."""
    replaced = _ESCAPES.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], data)
    return None if replaced == data else replaced


def encode(message: Any) -> bytes:
    """Return JSON without line breaks. Infinities and NaN become null, bytes base64, and lone surrogates `?`.

    A value that JSON does not support raises ValueError.
    """
    try:
        return to_json(message, inf_nan_mode="null", bytes_mode="base64")
    except ValueError:
        whole = replace_surrogates(message)
        if whole is message:
            raise
        return to_json(whole, inf_nan_mode="null", bytes_mode="base64")


def replace_surrogates(value: Any, depth: int = 0) -> Any:
    """Replace each lone surrogate in a value's strings with `?`."""
    if isinstance(value, str):
        whole = value.encode(errors="replace").decode()
        return value if whole == value else whole
    if depth > _DEEPEST:  # the value is nested too deeply, or contains itself
        return value
    if isinstance(value, dict):
        pairs = [(replace_surrogates(name), replace_surrogates(one, depth + 1)) for name, one in value.items()]
        same = all(pair[0] is name and pair[1] is value[name] for pair, name in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if isinstance(value, list | tuple):
        items = [replace_surrogates(one, depth + 1) for one in value]
        return value if all(map(operator.is_, items, value)) else items
    return value


def is_request_id(value: Any) -> TypeGuard[RequestId]:
    """Return True for strings and integers, which are the valid IDs (MCP basic/index, Requests)."""
    return type(value) is str or type(value) is int


def error_response_id(message: Any) -> Any:
    """Return the ID for an error about `message`, or MISSING if `message` has no valid ID."""
    if isinstance(message, dict):
        value = message.get("id", MISSING)
        if is_request_id(value):
            return value
    return MISSING


def check_message(message: Any) -> None:
    """Raise McpError unless `message` is a JSON-RPC request, notification or response."""
    if not isinstance(message, dict):
        raise McpError(INVALID_REQUEST, f"Invalid request: a message must be an object, not {_kind(message)}")
    if message.get("jsonrpc") != "2.0":
        raise McpError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if "id" in message and not is_request_id(message["id"]):
        raise McpError(
            INVALID_REQUEST, f"Invalid request: id must be a string or an integer, not {_kind(message['id'])}"
        )
    if "method" not in message:
        if ("result" in message) == ("error" in message):
            raise McpError(
                INVALID_REQUEST, "Invalid request: a message without method must have exactly one of result and error"
            )
        return
    if type(message["method"]) is not str:
        raise McpError(INVALID_REQUEST, f"Invalid request: method must be a string, not {_kind(message['method'])}")
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        raise McpError(INVALID_PARAMS, f"Invalid params: params must be an object, not {_kind(params)}")


def error_in_response(message: Json) -> McpError:
    """Return the error in a response, with the code INVALID_REQUEST if the error is malformed."""
    error = message.get("error")
    if isinstance(error, dict) and type(error.get("code")) is int:
        return McpError(error["code"], str(error.get("message", "")), error.get("data"))
    return McpError(INVALID_REQUEST, "The peer sent a malformed error", error)


def request_message(request_id: RequestId, method: str, params: Json | None) -> Json:
    """Return a request."""
    message: Json = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def notification_message(method: str, params: Json | None = None) -> Json:
    """Return a notification."""
    message: Json = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def encode_result_message(request_id: RequestId, result: Json | bytes) -> bytes:
    """Return the encoded response to a request, with an already encoded result unchanged."""
    if isinstance(result, bytes):
        return b'{"jsonrpc":"2.0","id":' + to_json(request_id) + b',"result":' + result + b"}"
    message = {"jsonrpc": "2.0", "id": request_id, "result": result}
    try:
        return to_json(message, inf_nan_mode="null", bytes_mode="base64")
    except ValueError:
        return encode(message)


def error_message(request_id: Any, error: McpError, *, null_id: bool = True) -> Json:
    """Return an error response. If the ID is unreadable, `request_id` is MISSING.

    `null_id` sends a missing ID as `"id": null`, as JSON-RPC 2.0 §5 requires, instead of omitting the member.
    """
    message: Json = {"jsonrpc": "2.0"}
    if request_id is not MISSING:
        message["id"] = request_id
    elif null_id:
        message["id"] = None
    message["error"] = error.to_dict()
    return message


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


DEFAULT_MAX_SIZE: Final = 64 * 1024 * 1024
"""Maximum bytes of a message."""


_KEPT: Final = 1024  # bytes of a too long message that are kept at each end, to read the ID
_ID: Final = rb'"id"\s*:\s*(?P<id>-?[0-9]+|"(?:[^"\\]|\\.)*")'
_TEXT: Final = rb'"(?:jsonrpc|(?P<method>method))"\s*:\s*"[^"\\]*"'
# A request begins with plain members, of which one is the method. Most clients write the ID last.
_FIRST_MEMBERS: Final = re.compile(rb"\s*\{(?:\s*(?:" + _TEXT + rb"|" + _ID + rb")\s*,)+")
_LAST_ID: Final = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class OversizeMessage:
    """Replacement for a message that was too long, and was discarded.

    Attributes:
        request_id: the ID of a request, or MISSING if the message is not a request or the ID is not at either end.
    """

    __slots__ = ("request_id",)

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.request_id = MISSING
        first = _FIRST_MEMBERS.match(head)
        found = first if first is None or first["id"] else _LAST_ID.search(tail)
        if first is not None and first["method"] and found is not None:
            with suppress(McpError):
                self.request_id = decode(found["id"])


class LineReader:
    """Splits bytes into lines (basic/transports, stdio).

    A line of more than `max_size` bytes becomes an `OversizeMessage`, and only its ends are kept. A carriage return
    before the line break stays in the line, because a carriage return is whitespace in JSON.
    """

    __slots__ = ("_buffer", "_head", "_held", "_max_size", "_tail")

    def __init__(self, max_size: int = DEFAULT_MAX_SIZE) -> None:
        self._buffer: list[bytes] = []
        self._held = 0
        self._max_size = max_size
        self._head: bytes | None = None  # beginning of the too long line that is skipped
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | OversizeMessage]:
        """Yield the lines that `data` completes, in order. Consume all lines before the next call."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            line = self._take(piece)
            if self._head is not None:
                yield OversizeMessage(self._head, (self._tail + line)[-_KEPT:])
                self._head = None
            elif len(line) > self._max_size:
                yield OversizeMessage(line[:_KEPT], line[-_KEPT:])
            elif line and not line.isspace():
                yield line
        if self._head is not None:
            self._tail = (self._tail + rest)[-_KEPT:]
        elif rest:
            self._buffer.append(rest)
            self._held += len(rest)
            if self._held > self._max_size:
                line = self._take(b"")
                self._head, self._tail = line[:_KEPT], line[-_KEPT:]

    def rest(self) -> bytes:
        """Return the data after the last line break, which is a complete message at the end of the stream."""
        line = self._take(b"")
        return b"" if self._head is not None or line.isspace() else line

    def _take(self, piece: bytes) -> bytes:
        if not self._buffer:
            return piece
        self._buffer.append(piece)
        line = b"".join(self._buffer)
        self._buffer.clear()
        self._held = 0
        return line


def sse_event(data: bytes, *, event_id: str | None = None, event: str | None = None) -> bytes:
    """Return a server-sent event (HTML §9.2).

    `data` has no line breaks, and b"" creates a priming event, which only has an ID. To continue after this event,
    clients send `event_id` as `Last-Event-ID`.
    """
    head = "" if event is None else f"event: {event}\n"
    if event_id is not None:
        head += f"id: {event_id}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def sse_retry(milliseconds: int) -> bytes:
    """Return an event that sets the client's wait before a reconnection."""
    return b"retry: %d\n\n" % milliseconds


def sse_comment(text: str = "") -> bytes:
    """Return a comment, which clients ignore, but which prevents proxies from closing an idle stream."""
    return f": {text}\n\n".encode()
