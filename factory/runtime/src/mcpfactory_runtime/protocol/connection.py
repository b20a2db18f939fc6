"""Server side of a message stream (stdio, an HTTP session) as a state machine without I/O, and facts about its peer.

`receive` takes decoded messages and returns events. `answer`, `request` and `notify` return bytes to send.

Rules for changes to this module:

1. Only the tables below decide about lifecycles and states.
2. Each request has its own lifecycle (basic/versioning, Backward Compatibility). A request with a protocol version in
   its metadata uses the per-request lifecycle, and the connection's state is neither used nor changed. Any other
   request uses the handshake.
3. Never answer a message that looks like a response, even if it is invalid. Otherwise, two peers could exchange errors
   forever.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    McpError,
)
from mcpfactory_runtime.protocol.jsonrpc import RequestId
from mcpfactory_runtime.revisions import LATEST_LEGACY, MODERN, SUPPORTED, Revision, negotiate
from mcpfactory_runtime.types import Json

# Keys of `params._meta` and `result._meta` in the per-request lifecycle (basic/index, General fields).
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

LOG_LEVELS: Final[dict[str, int]] = {
    "debug": 0,
    "info": 1,
    "notice": 2,
    "warning": 3,
    "error": 4,
    "critical": 5,
    "alert": 6,
    "emergency": 7,
}
"""Levels of syslog (RFC 5424), least severe first."""


class Peer:
    """Facts about the peer.

    `log_level` is the index of the lowest requested log level. In the per-request lifecycle, no log messages are sent
    if `log_level` is None.
    """

    __slots__ = ("capabilities", "info", "log_level", "revision")

    def __init__(self, revision: Revision, info: Json, capabilities: Json, log_level: int | None = None) -> None:
        self.revision = revision
        self.info = info
        self.capabilities = capabilities
        self.log_level = log_level

    def declares(self, *path: str) -> bool:
        """Return True if a capability was declared, such as `declares("elicitation", "url")`."""
        value: Any = self.capabilities
        for name in path:
            if not isinstance(value, dict) or name not in value or value[name] is None:
                return False
            value = value[name]
        return True

    def missing(self, *path: str) -> Json | None:
        """Return the capabilities object for a capability that is not declared, or None for a declared capability."""
        if self.declares(*path):
            return None
        needed: Json = {}
        for name in reversed(path):
            needed = {name: needed}
        return needed

    def __repr__(self) -> str:
        return f"Peer({self.revision.name}, {self.info.get('name')!r})"


class RequestMetadata(NamedTuple):
    """Checked metadata of a request in the per-request lifecycle. The protocol version may be unsupported."""

    version: str
    info: Json
    capabilities: Json
    log_level: int | None

    def peer(self) -> Peer:
        """Return the peer of this request.

        An unsupported version raises McpError with the supported versions (basic/versioning).
        """
        revision = MODERN.get(self.version)
        if revision is None:
            raise McpError(
                UNSUPPORTED_VERSION,
                f"Unsupported protocol version {self.version!r}",
                {"supported": SUPPORTED, "requested": self.version},
            )
        return Peer(revision, self.info, self.capabilities, self.log_level)


def read_request_metadata(params: Json) -> RequestMetadata:
    """Return the metadata of a request in the per-request lifecycle, or raise McpError (basic/index, `_meta`)."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise McpError(INVALID_PARAMS, "Invalid params: _meta is missing")
    version = meta.get(META_VERSION)
    if type(version) is not str:
        raise McpError(INVALID_PARAMS, f"Invalid params: _meta must have {META_VERSION}, a string")
    capabilities = meta.get(META_CAPABILITIES)
    if type(capabilities) is not dict:
        raise McpError(INVALID_PARAMS, f"Invalid params: _meta must have {META_CAPABILITIES}, an object")
    info = meta.get(META_CLIENT)
    if info is None:
        info = {}
    elif type(info) is not dict:
        raise McpError(INVALID_PARAMS, f"Invalid params: {META_CLIENT} must be an object")
    wanted = meta.get(META_LOG_LEVEL)
    level = None
    if wanted is not None:
        level = LOG_LEVELS.get(wanted) if type(wanted) is str else None
        if level is None:
            raise McpError(INVALID_PARAMS, f"Invalid params: {META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    return RequestMetadata(version, info, capabilities, level)


MAX_IN_FLIGHT: Final = 1000
"""Maximum number of concurrent requests of a peer."""


class State(Enum):
    """State of a connection's handshake (basic/lifecycle)."""

    FRESH = "fresh"  # before `initialize`
    OPENING = "opening"  # after `initialize`, before `notifications/initialized`
    OPEN = "open"

    __hash__ = object.__hash__  # `Enum.__hash__` is slow Python code, and each message would call it twice


_ANY: Final = "*"

# (state, method) → next state. A method without an entry is refused.
# The state OPENING permits all methods, because many clients do not wait for the response to `initialize`.
# A second `initialize` begins a new handshake, so that a gateway can restart its client while the process runs.
_NEXT: Final[dict[tuple[State, str], State]] = {
    (State.FRESH, "initialize"): State.OPENING,
    (State.FRESH, "ping"): State.FRESH,
    (State.FRESH, "notifications/cancelled"): State.FRESH,
    (State.OPENING, "initialize"): State.OPENING,
    (State.OPENING, "notifications/initialized"): State.OPEN,
    (State.OPENING, _ANY): State.OPENING,
    (State.OPEN, "initialize"): State.OPENING,
    (State.OPEN, _ANY): State.OPEN,
}


class Call:
    """A request from the peer. The caller must answer with `Connection.answer`, unless the peer cancels the request.

    `method` is a name from `METHODS`, independent of the revision. `http` is the HTTP request that contained the call.
    `progressed` is the event loop's time of the latest progress notification.
    """

    __slots__ = ("http", "id", "method", "params", "peer", "progressed", "state")

    def __init__(self, request_id: RequestId, method: str, params: Json, peer: Peer) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.peer = peer
        self.state: Json | None = None
        self.http: Any = None
        self.progressed: float | None = None

    def __repr__(self) -> str:
        return f"Call({self.id!r}, {self.method!r}, {self.peer.revision})"


class Notification(NamedTuple):
    """A notification from the peer. `notifications/cancelled` is returned only for an unanswered request."""

    method: str
    params: Json


class Response(NamedTuple):
    """The peer's response to one of our requests, with either `error` or `result`."""

    id: RequestId
    result: Any
    error: McpError | None


class ErrorReply(NamedTuple):
    """The reply to an invalid message."""

    error: McpError
    message: Json | None


class Batch(NamedTuple):
    """Messages of one JSON array, whose responses are also sent as one array (basic/index, Batching)."""

    events: list[Event]


Event = Call | Notification | Response | ErrorReply | Batch


class Connection:
    """The server's side of a message stream.

    `peer` is None before the handshake. `limit` is the maximum number of unanswered requests of the peer, and is 0
    during the shutdown.
    """

    def __init__(self) -> None:
        self.state = State.FRESH
        self.peer: Peer | None = None
        self.in_flight: dict[RequestId, Call] = {}
        self.limit = MAX_IN_FLIGHT
        self._waiting: set[RequestId] = set()
        self._count = 0

    # -- received messages ---------------------------------------------------------------------------------------

    def receive(self, message: Any) -> Event:
        """Return the event for a decoded message, which is an `ErrorReply` after an error."""
        if type(message) is list:
            return self._receive_batch(message)
        try:
            if type(message) is dict and "method" not in message and ("result" in message or "error" in message):
                return self._receive_answer(message)
            jsonrpc.check_message(message)
            params: Json = message.get("params") or {}
            if "id" in message:
                return self._receive_request(message["id"], message["method"], params)
            return self._receive_notification(message["method"], params)
        except McpError as error:
            return self._refuse(message, error)

    def decode_error_reply(self, error: McpError, request_id: Any = jsonrpc.MISSING) -> ErrorReply:
        """Return the reply to bytes that are not a message or exceed the size limit."""
        return self._refuse({"id": request_id}, error)

    def _receive_request(self, request_id: RequestId, method: str, params: Json) -> Call:
        meta = params.get("_meta")
        if type(meta) is dict and META_VERSION in meta:
            peer = read_request_metadata(params).peer()
        elif method == "initialize":
            peer = _handshake(params)
        else:
            peer = self._known_peer(method)
        row = peer.revision.rows["methods"].get(method)
        if row is None:
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        if request_id in self.in_flight:
            raise McpError(INVALID_REQUEST, f"Invalid request: id {request_id!r} belongs to a request in flight")
        if len(self.in_flight) >= self.limit:
            raise _too_many(self.limit)
        if not peer.revision.modern:
            self.state = self._next(row)
            if row == "initialize":
                self.peer = peer
        call = Call(request_id, row, params, peer)
        self.in_flight[request_id] = call
        return call

    def _known_peer(self, method: str) -> Peer:
        """Return the peer of the handshake, or raise McpError if the state does not permit the method."""
        if (self.state, method) in _NEXT or (self.state, _ANY) in _NEXT:
            return self.peer or Peer(LATEST_LEGACY, {}, {})
        if method not in LATEST_LEGACY.methods:
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        raise McpError(
            INVALID_REQUEST,
            f"Invalid request: {method} before initialize. hint: send initialize first, or put {META_VERSION} and the "
            "client's capabilities into params._meta of every request",
        )

    def _receive_notification(self, method: str, params: Json) -> Event:
        if method == "notifications/cancelled":
            request_id = params.get("requestId")
            call = self.in_flight.get(request_id) if jsonrpc.is_request_id(request_id) else None
            # Ignore the cancellation of an answered request or of `initialize` (utilities/cancellation).
            if call is None or call.method == "initialize":
                return ErrorReply(McpError(INVALID_PARAMS, "Nothing to cancel"), None)
            return Notification(method, params)
        peer = self.peer
        row = None if peer is None else peer.revision.rows["client_notifications"].get(method)
        if row is None:
            return ErrorReply(McpError(METHOD_NOT_FOUND, f"Unknown notification: {method}"), None)
        self.state = self._next(row)
        return Notification(row, params)

    def _receive_answer(self, message: Json) -> Event:
        request_id = message.get("id")
        if not jsonrpc.is_request_id(request_id) or request_id not in self._waiting:
            return ErrorReply(McpError(INVALID_REQUEST, f"Response to an unknown request: {request_id!r}"), None)
        self._waiting.remove(request_id)
        if "error" in message:
            return Response(request_id, None, jsonrpc.error_in_response(message))
        result = message["result"]
        if not isinstance(result, dict):
            return Response(request_id, None, McpError(INVALID_REQUEST, "The peer's result is not an object"))
        return Response(request_id, result, None)

    def _receive_batch(self, messages: list[Any]) -> Event:
        if self.peer is None or not self.peer.revision.batches:
            return self._refuse(
                None, McpError(INVALID_REQUEST, "Invalid request: this revision does not support batches")
            )
        if not messages:
            return self._refuse(None, McpError(INVALID_REQUEST, "Invalid request: an empty batch"))
        events: list[Event] = []
        for message in messages:
            if isinstance(message, dict) and message.get("method") == "initialize":
                error = McpError(INVALID_REQUEST, "Invalid request: initialize must not be part of a batch")
                events.append(self._refuse(message, error))
            elif isinstance(message, list):
                events.append(self._refuse(None, McpError(INVALID_REQUEST, "Invalid request: a batch in a batch")))
            else:
                events.append(self.receive(message))
        return Batch(events)

    def _next(self, method: str) -> State:
        return _NEXT.get((self.state, method)) or _NEXT.get((self.state, _ANY)) or self.state

    def _refuse(self, message: Any, error: McpError) -> ErrorReply:
        request_id = jsonrpc.error_response_id(message)
        notification = isinstance(message, dict) and "id" not in message and "method" in message
        if notification and error.code != INVALID_REQUEST:  # notifications are never answered
            return ErrorReply(error, None)
        null_id = self.peer is None or self.peer.revision.null_id
        return ErrorReply(error, jsonrpc.error_message(request_id, error, null_id=null_id))

    # -- sent messages -------------------------------------------------------------------------------------------

    def answer(self, call: Call, outcome: Json | bytes | McpError) -> bytes:
        """Return the encoded response to `call`, and remove the call from `in_flight`.

        If the result cannot be encoded, raise ValueError, so that the caller can answer with an error.
        """
        if isinstance(outcome, McpError):
            data = jsonrpc.encode(jsonrpc.error_message(call.id, outcome))
        else:
            data = jsonrpc.encode_result_message(call.id, outcome)
        self.in_flight.pop(call.id, None)
        return data

    def forget(self, call: Call) -> None:
        """Drop a call without an answer."""
        self.in_flight.pop(call.id, None)

    def request(self, method: str, params: Json | None = None) -> tuple[RequestId, bytes]:
        """Return the ID and the bytes of a request to the peer, or raise McpError for a method of another revision."""
        revision = self.peer.revision if self.peer else LATEST_LEGACY
        if method not in revision.client_requests:
            raise McpError(METHOD_NOT_FOUND, f"{method} does not exist in revision {revision}")
        self._count += 1
        self._waiting.add(self._count)
        return self._count, jsonrpc.encode(jsonrpc.request_message(self._count, revision.wire(method), params))

    def abandon(self, request_id: RequestId) -> None:
        """Stop waiting for the response to a request."""
        self._waiting.discard(request_id)

    def notify(self, method: str, params: Json | None = None) -> bytes:
        """Return the bytes of a notification to the peer."""
        revision = self.peer.revision if self.peer else LATEST_LEGACY
        if method not in revision.notifications:
            raise McpError(METHOD_NOT_FOUND, f"{method} does not exist in revision {revision}")
        return jsonrpc.encode(jsonrpc.notification_message(revision.wire(method), params))


def _too_many(limit: int) -> McpError:
    if not limit:
        return McpError(INTERNAL_ERROR, "This side is shutting down and accepts no more requests")
    return McpError(
        INTERNAL_ERROR, f"More than {limit} requests in flight. hint: wait for responses before you send more"
    )


def _handshake(params: Json) -> Peer:
    """Return the peer from the params of `initialize` (basic/lifecycle, Initialization)."""
    version = params.get("protocolVersion")
    if type(version) is not str:
        raise McpError(INVALID_PARAMS, "Invalid params: initialize needs protocolVersion, a string")
    info, capabilities = params.get("clientInfo", {}), params.get("capabilities", {})
    for name, value in (("clientInfo", info), ("capabilities", capabilities)):
        if type(value) is not dict:
            raise McpError(INVALID_PARAMS, f"Invalid params: {name} must be an object")
    return Peer(negotiate(version), info, capabilities)
