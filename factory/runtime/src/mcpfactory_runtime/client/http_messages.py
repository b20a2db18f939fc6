"""HTTP messages of the client: mirrored headers, server-sent events, trace context."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_runtime.protocol.http import find_header_annotations
from mcpfactory_runtime.protocol.methods import CALL_TOOL, METHODS
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.types import Json

Path = tuple[str, ...]

_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def mcp_request_headers(
    message: Json, version: str, revision: Revision, parameters: Mapping[str, Mapping[Path, str]]
) -> dict[str, str]:
    """Return the HTTP headers for a message. `parameters` maps tool → path of an argument → header name."""
    method, params = message.get("method", ""), message.get("params") or {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": str(method)}
    row = revision.rows["methods"].get(str(method), "")
    name = params.get(METHODS[row].named) if row else None
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    if row == CALL_TOOL:
        for path, header in parameters.get(str(name), {}).items():
            value = _at(params.get("arguments"), path)
            if value is not None:
                headers[f"Mcp-Param-{header}"] = encode_value(value)
    return headers


def encode_value(value: Any) -> str:
    """Return a string, integer or boolean as a header value, in base64 if it is not plain ASCII."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if _PLAIN.fullmatch(text) and not looks_encoded:
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def header_parameters(tool: Json) -> dict[Path, str]:
    """Return the arguments of a tool with a valid `x-mcp-header`, as path → header name."""
    found = find_header_annotations(tool.get("inputSchema"))
    return {path: header for path, header, _ in found if path and isinstance(header, str) and header}


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # send 5.0 as 5, because JSON does not distinguish the two numbers
    return value if isinstance(value, str | int) else None


_DIGITS: Final = 16  # maximum digits of `retry`; Python refuses to parse very long numbers


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. `id` is the last received event ID, and `retry` is in milliseconds."""

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


class SseReader:
    """Parser of an event stream. An event with an ID or `retry` may have no data."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # pieces of an incomplete line
        self._held = b""
        # Encoding of the next line. Only the first line may start with a byte order mark.
        self._encoding = "utf-8-sig"
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._noted = False
        self.size = 0  # bytes since the last complete event

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """Yield the events that `data` completes."""
        self.size += len(data)
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""  # a trailing "\r" may be the first half of "\r\n"
        text = data[: len(data) - len(self._held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        for line in lines:
            event = self._line(line.decode(self._encoding, "replace"))
            self._encoding = "utf-8"
            if event is not None:
                yield event

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id, self._noted = value, True
        elif name == "retry" and value.isascii() and value.isdecimal() and len(value) < _DIGITS:
            self._retry, self._noted = int(value), True
        return None

    def _complete(self) -> SseEvent | None:
        event = None
        if self._data or self._noted:
            event = SseEvent("\n".join(self._data), self._event or "message", self._id, self._retry)
        self._data, self._event, self._retry, self._noted, self.size = [], "", None, False, 0
        return event


TRACE_FIELDS: Final = ("traceparent", "tracestate", "baggage")
"""Members of `_meta` that are also HTTP headers (W3C Trace Context, W3C Baggage)."""

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?")
_LIST: Final = re.compile(r"[\t -~]*")
# Name of a field → maximum characters of the value.
_LONGEST: Final = {"traceparent": 256, "tracestate": 512, "baggage": 8192}


def current_trace_metadata(given: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the metadata of OpenTelemetry's current span and baggage for a request.

    If the existing `_meta` (`given`) has a `traceparent`, the current span is omitted.
    """
    if "opentelemetry.context" not in sys.modules:  # the program has not loaded OpenTelemetry, so there is no span
        return {}
    from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: PLC0415 - the program has loaded the library
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 - likewise

    found: dict[str, str] = {}
    if "traceparent" not in (given or {}):
        TraceContextTextMapPropagator().inject(found)
    W3CBaggagePropagator().inject(found)
    return found


def forwarded_trace_metadata(carrier: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace metadata for a forwarded request. Without a current span, use the incoming request's trace.

    `carrier` is the `_meta` or the HTTP headers of the incoming request.
    """
    if not carrier:
        return current_trace_metadata()
    found = {name: carrier[name] for name in TRACE_FIELDS if _well_formed(name, carrier.get(name))}
    here = current_trace_metadata()
    if "traceparent" in here or "traceparent" not in found:  # `tracestate` is valid only with its own `traceparent`
        found.pop("traceparent", None)
        found.pop("tracestate", None)
    return found | here


def _well_formed(name: str, value: Any) -> bool:
    form = _PARENT if name == "traceparent" else _LIST
    return isinstance(value, str) and len(value) <= _LONGEST[name] and form.fullmatch(value) is not None
