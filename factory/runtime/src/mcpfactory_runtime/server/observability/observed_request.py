"""Observation of requests from arrival to response, and log lines of requests.

`ObservedHandler` wraps the dispatcher, and is not a middleware. Observers therefore also get requests that are refused
before any middleware runs. Lists stay cached.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from mcpfactory_runtime.protocol.errors import CODES, INTERNAL_ERROR, McpError
from mcpfactory_runtime.protocol.methods import CALL_TOOL
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.redaction import known_secrets_redaction

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.interfaces import Outcome, ReplyChannel
    from mcpfactory_runtime.server.registry import Registry


Handle = Callable[["Call", "ReplyChannel"], "Outcome"]

# Histogram bounds in seconds, and a value of `error.type`, from the semantic conventions for MCP.
BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
TOOL_ERROR: Final = "tool_error"
CANCELLED: Final = "cancelled"


class ObservedRequest:
    """One request, in terms of OpenTelemetry's semantic conventions for MCP.

    Attributes:
        method: the method's name in the newest revision.
        tool: name of the called tool, even in search mode, or "" for other requests and for unregistered names.
        prompt: name of the requested prompt, or "" for other requests and for unregistered names.
        revision: the protocol revision of the request.
        seconds: duration of the request.
        code: the code of the JSON-RPC error that ended the request, or None.
        failure: "" for a success, or `tool_error`, `cancelled` or the code as text.
        message: the message of the JSON-RPC error.
        trace_id: ID of the trace in hexadecimal digits, or "" without tracing.
        span_id: ID of the span in hexadecimal digits, or "" without tracing.
        kept: data that observers store until the request ends.
    """

    __slots__ = (
        *("call", "channel", "code", "failure", "message", "method"),
        *("kept", "prompt", "revision", "seconds", "span_id", "tool", "trace_id"),
    )

    def __init__(self, call: Call, channel: ReplyChannel, registry: Registry) -> None:
        self.call = call
        self.channel = channel
        self.method = call.method
        self.revision = call.peer.revision.name
        self.tool = _tool_name(call.params, registry) if call.method == CALL_TOOL else ""
        self.prompt = _known(call.params, registry.prompts) if call.method == "prompts/get" else ""
        self.seconds = 0.0
        self.code: int | None = None
        self.failure = ""
        self.message = ""
        self.trace_id = ""
        self.span_id = ""
        self.kept: dict[object, Any] = {}

    @property
    def title(self) -> str:
        """Return the method and the name of the tool or prompt."""
        return " ".join(filter(None, (self.method, self.tool or self.prompt)))

    @property
    def session(self) -> str:
        """Return a digest of the HTTP session's ID, or "" without a session.

        The ID is not logged, because the ID gives access to the session.
        """
        session = self.channel.session_channel
        known = None if session is None else session.session_id
        return "" if known is None else sha256(known.encode()).hexdigest()[:16]

    def fail(self, error: BaseException) -> None:
        """Record an exception as the error that is sent to the client."""
        if isinstance(error, asyncio.CancelledError):
            self.failure = CANCELLED
            return
        self.code = error.code if isinstance(error, McpError) else INTERNAL_ERROR
        self.message = str(error) if isinstance(error, McpError) else ""
        self.failure = str(self.code)

    def succeed(self, result: Json | bytes) -> None:
        """Record a result."""
        if isinstance(result, dict) and result.get("isError"):
            self.failure = TOOL_ERROR


class RequestObserver(Protocol):
    """Observer of the beginning and end of requests. Methods must not raise exceptions, and run in the event loop."""

    def begin(self, request: ObservedRequest) -> None:
        """Handle the beginning of a request, in the request's context."""

    def end(self, request: ObservedRequest) -> None:
        """Handle the end of a request, in the request's context."""


class ObservedHandler:
    """Wrapper of a request handler that notifies observers of the beginning and end of each request."""

    def __init__(self, handle: Handle, registry: Registry, clock: Callable[[], float] = time.perf_counter) -> None:
        self._handle = handle
        self._registry = registry
        self._clock = clock
        self.observers: list[RequestObserver] = []

    def handle(self, call: Call, channel: ReplyChannel) -> Outcome:
        """Answer one request."""
        begun = self._clock()
        request = ObservedRequest(call, channel, self._registry)
        try:
            outcome = self._handle(call, channel)
        except Exception as error:
            self._begin(request)
            request.fail(error)
            self._end(request, begun)
            raise
        if not isinstance(outcome, dict | bytes):
            return self._finished(request, outcome, begun)
        self._begin(request)
        request.succeed(outcome)
        self._end(request, begun)
        return outcome

    async def _finished(self, request: ObservedRequest, outcome: Awaitable[Json], begun: float) -> Json:
        self._begin(request)
        try:
            result = await outcome
            request.succeed(result)
        except BaseException as error:
            request.fail(error)
            raise
        else:
            return result
        finally:
            self._end(request, begun)

    def _begin(self, request: ObservedRequest) -> None:
        for observer in self.observers:
            observer.begin(request)

    def _end(self, request: ObservedRequest, begun: float) -> None:
        request.seconds = self._clock() - begun
        for observer in reversed(self.observers):
            observer.end(request)


def error_type_label(request: ObservedRequest) -> str:
    """Return a request's failure, with `_OTHER` for codes that JSON-RPC and MCP do not define."""
    return request.failure if request.code is None or request.code in CODES else "_OTHER"


def _tool_name(params: Json, registry: Registry) -> str:
    tool = registry.tools.get(_known(params, registry.tools))
    if tool is None:
        return ""
    target = tool.resolve_target(params.get("arguments")) if tool.resolve_target is not None else None
    return (target or tool).name


def _known(params: Json, registered: Any) -> str:
    name = params.get("name")
    return name if type(name) is str and name in registered else ""


log = logging.getLogger("mcpfactory_runtime.requests")

MAX_VALUE_LENGTH: Final = 128  # maximum characters of a client's text in logs and spans
_REQUEST: Final[ContextVar[ObservedRequest | None]] = ContextVar("mcpfactory_request", default=None)


class JsonFormatter(logging.Formatter):
    """Formatter that writes log records as JSON lines, without the credentials of API calls.

    Attributes:
        one_line: True if code that writes directly to stderr must also write one JSON object per line.
    """

    one_line = True

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON line."""
        line: Json = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request = _REQUEST.get()
        if request is not None:
            line |= _ids(request)
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return known_secrets_redaction().text(json.dumps(line, default=str))


class RequestLogger:
    """Observer that logs caller, method, outcome and duration of each request, but no arguments or results."""

    def begin(self, request: ObservedRequest) -> None:
        """Add the request's IDs to all log records until the request ends."""
        request.kept[self] = _REQUEST.set(request)

    def end(self, request: ObservedRequest) -> None:
        """Write the log line of the request."""
        token: Token[ObservedRequest | None] = request.kept.pop(self)
        _REQUEST.reset(token)
        channel, http = request.channel, request.call.http
        client = {
            "tool": request.tool,
            "prompt": request.prompt,
            "session": request.session,
            "principal": str(getattr(channel.principal, "subject", ""))[:MAX_VALUE_LENGTH],
            "address": (http.address if http is not None else "") or "",
            "client": str(request.call.peer.info.get("name", ""))[:MAX_VALUE_LENGTH],
        }
        fields: Json = {
            **_ids(request),
            "method": request.method,
            **{name: value for name, value in client.items() if value},
            "revision": request.revision,
            "outcome": request.failure or "ok",
            "ms": round(request.seconds * 1000, 3),
        }
        log.info("%s", request.title, extra={"fields": fields})


def install_json_logging(stream: TextIO | None = None) -> None:
    """Write all later log records of the process as JSON lines to `stream` or stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger("mcpfactory_runtime").setLevel(logging.INFO)


def _ids(request: ObservedRequest) -> Json:
    found = {
        "request": str(request.call.id)[:MAX_VALUE_LENGTH],
        "trace_id": request.trace_id,
        "span_id": request.span_id,
    }
    return {name: value for name, value in found.items() if value}
