"""The log as one JSON object a line: each request, and whatever else is logged, with the ids of the request's span."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from mcpfactory_runtime.server.observe.request import ObservedRequest
from mcpfactory_runtime.upstream.redaction import seen_secrets

__all__ = ["JsonFormatter", "RequestLines", "install"]

Json = dict[str, Any]

log = logging.getLogger("mcpfactory_runtime.requests")

_LONGEST: Final = 128  # characters of what a client has chosen
_REQUEST: Final[ContextVar[ObservedRequest | None]] = ContextVar("mcpfactory_request", default=None)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON, without the credentials of calls of APIs.

    Attributes:
        one_line: tells those who write to stderr themselves that each line is an object.
    """

    one_line = True

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
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
        return seen_secrets().text(json.dumps(line, default=str))


class RequestLines:
    """Logs each request once, when it has ended: who, what, how, how long. Never arguments or results."""

    def begin(self, request: ObservedRequest) -> None:
        """Let what is logged from now on have the request's ids."""
        request.kept[self] = _REQUEST.set(request)

    def end(self, request: ObservedRequest) -> None:
        """Write the line."""
        token: Token[ObservedRequest | None] = request.kept.pop(self)
        _REQUEST.reset(token)
        channel = request.channel
        client = {
            "tool": request.tool,
            "prompt": request.prompt,
            "session": request.session,
            "principal": str(getattr(channel.principal, "subject", ""))[:_LONGEST],
            "address": (channel.http.address if channel.http is not None else "") or "",
            "client": str(request.call.peer.info.get("name", ""))[:_LONGEST],
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


def install(stream: TextIO | None = None) -> None:
    """Write the log of the whole process as JSON lines from now on, in place of what was set up. Twice is once.

    Args:
        stream: where to; None is stderr.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger("mcpfactory_runtime").setLevel(logging.INFO)


def _ids(request: ObservedRequest) -> Json:
    found = {"request": str(request.call.id)[:_LONGEST], "trace_id": request.trace_id, "span_id": request.span_id}
    return {name: value for name, value in found.items() if value}
