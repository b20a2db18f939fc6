"""CORS preflight requests and response headers for pages of other origins (Fetch Standard, CORS protocol)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any, Final

from mcpfactory_runtime.transports.http.wire import Headers, Send

_EXPOSED: Final = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Location"
_METHODS: Final = ("GET", "POST", "DELETE")
_REMEMBERED: Final = b"7200"  # seconds: as long as browsers do at most


def granted_origin(headers: Mapping[str, str], origins: Collection[str]) -> str:
    """Return the origin of the page that calls, if it is one of those that were named; else ""."""
    origin = headers.get("origin", "")
    return origin if origin in origins or ("*" in origins and origin) else ""


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Return True if the request is a CORS preflight."""
    return method == "OPTIONS" and "access-control-request-method" in headers


async def send_preflight(
    send: Send, origin: str, headers: Mapping[str, str], methods: Sequence[str] | None = None
) -> None:
    """Permit the methods of a route or else of MCP, and the headers that are asked for: an origin that may call may send any."""
    asked = headers.get("access-control-request-headers", "").encode("latin-1", "replace")
    head = [
        *_granted(origin),
        (b"access-control-allow-methods", ", ".join(methods or _METHODS).encode()),
        (b"access-control-allow-headers", asked),
        (b"access-control-max-age", _REMEMBERED),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": head})
    await send({"type": "http.response.body", "body": b""})


def exposing(send: Send, origin: str) -> Send:
    """Return `send` for a page of this origin, which may read the response and the headers that MCP needs."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            more: Headers = [*_granted(origin), (b"access-control-expose-headers", _EXPOSED)]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent


def _granted(origin: str) -> Headers:
    return [(b"access-control-allow-origin", origin.encode("latin-1", "replace")), (b"vary", b"Origin")]
