"""HTTP endpoints of an OAuth proxy, with a limit on the size of requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from mcpfactory_runtime.oauth_proxy.proxy import OAuthEndpointRequest, OAuthEndpointResponse
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.transports.http.asgi import Receive, Scope, Send, address_of, read_body, send_rejection

if TYPE_CHECKING:
    from mcpfactory_runtime.oauth_proxy.proxy import OAuthProxy

_LARGEST: Final = 65_536  # maximum bytes of a body
_MOST_FIELDS: Final = 50


class OAuthProxyEndpoints:
    """Endpoints that an OAuth proxy serves next to the MCP endpoint."""

    def __init__(self, proxy: OAuthProxy) -> None:
        self._proxy = proxy
        self.paths = frozenset(proxy.paths)

    async def serve(self, place: str, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        """Serve a request to one of the paths."""
        method = self._proxy.allowed_method(place)
        if scope["method"] != method:
            await send_rejection(send, Rejection(405, None, f"Only {method}\n", {"allow": method}))
            return
        text, body = scope["query_string"], None
        if method == "POST":
            data = await read_body(receive, _LARGEST)
            if data is None:
                await send_rejection(send, Rejection(413, None, f"Larger than {_LARGEST} bytes\n"))
                return
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            text, body = (data, None) if kind == "application/x-www-form-urlencoded" else (b"", _json(data))
        fields = _fields(text)
        if fields is None:
            await send_rejection(
                send, Rejection(400, None, "A parameter is repeated, or there are too many parameters\n")
            )
            return
        asked = OAuthEndpointRequest(method, fields, body, _cookies(scope["headers"]), address_of(scope))
        await _send(send, await self._proxy.answer(place, asked))


def _fields(text: bytes) -> dict[str, str] | None:
    """Return the non-empty parameters of a query or form, or None for repeated parameters (RFC 6749 §3.1)."""
    try:
        pairs = parse_qsl(text.decode("latin-1"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


def _json(data: bytes) -> Any:
    try:
        return jsonrpc.decode(data)
    except McpError:
        return None


def _cookies(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the cookies of a request, the first of several cookies with equal names (RFC 6265 §5.4)."""
    found: dict[str, str] = {}
    for header, value in headers:
        if header == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                name, _, text = pair.strip().partition("=")
                found.setdefault(name, text)
    return found


async def _send(send: Send, reply: OAuthEndpointResponse) -> None:
    head = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers]
    head.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": head})
    await send({"type": "http.response.body", "body": reply.body})
