"""ASGI helpers: bounded requests, responses, CORS, and the lifespan of an application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import ErrorReply
from mcpfactory_runtime.protocol.http import Rejection, check_header_size
from mcpfactory_runtime.storage.events import SessionLostError
from mcpfactory_runtime.transports.http.stream import EventStreamAnswer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Page = Callable[[str, bool], tuple[str, str]]
"""Function from (Accept header, authorized) to (content type, text)."""

READING: Final = ("GET", "HEAD")
ONLY_GET: Final = Rejection(405, None, "Only GET\n", {"allow": "GET, HEAD"})
SSE_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class AsgiRequest:
    """HTTP request of a scope, for handlers."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers without Authorization, with names in lower case."""
        headers = read_headers(self._scope["headers"])
        headers.pop("authorization", None)
        return headers

    @property
    def address(self) -> str | None:
        """Return the address of the client or of a reverse proxy, or None if it is unknown."""
        client = self._scope.get("client")
        return str(client[0]) if client else None


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return lower-case header name → value, with repeated headers joined, so that all values are checked."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def check_request_size(scope: Scope) -> Rejection | None:
    """Return a rejection if the URL or the headers of a request are too large."""
    target = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    # Each header has four more bytes, for ": " and the line end.
    size = target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return check_header_size(target, size, len(scope["headers"]))


def client_identity(principal: str, scope: Scope) -> str:
    """Return the identity of a client: the principal, or the address if there is no token."""
    return principal or f"at {address_of(scope)}"


def address_of(scope: Scope) -> str:
    """Return the source address of a request, or "" if it is unknown."""
    return str((scope.get("client") or [""])[0])


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the body, or None if it exceeds `limit` bytes or the client disconnects."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body if len(body) <= limit else None
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
    return b"".join(parts)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects, and ignore other messages."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(send: Send, status: int, data: bytes, headers: Headers | None = None) -> None:
    """Send a complete JSON response."""
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": status, "headers": head + headers if headers else head})
    await send({"type": "http.response.body", "body": data})


def is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return True if the headers belong to an event stream."""
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


async def send_page(send: Send, page: Page, scope: Scope, headers: dict[str, str], *, admitted: bool) -> None:
    """Send a page that forbids scripts, framing and caching."""
    if scope["method"] not in READING:
        await send_rejection(send, ONLY_GET)
        return
    kind, text = page(headers.get("accept", ""), admitted)
    data = text.encode()
    head = [
        (b"content-type", kind.encode()),
        (b"content-length", b"%d" % len(data)),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else data})


async def send_rejection(send: Send, rejection: Rejection) -> None:
    """Send a refusal."""
    extra = [(name.encode(), value.encode()) for name, value in rejection.headers.items()]
    if rejection.message is not None:
        await send_json(send, rejection.status, jsonrpc.encode(rejection.message), extra)
        return
    text = rejection.text.encode()
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text)), *extra]
    await send({"type": "http.response.start", "status": rejection.status, "headers": head})
    await send({"type": "http.response.body", "body": text})


async def send_post_response(
    answer: EventStreamAnswer | ErrorReply | None,
    receive: Receive,
    send: Send,
    headers: Headers | None = None,
    *,
    streamed: bool = False,
) -> None:
    """Send the response to a POST request: a single message as JSON, and several messages as an event stream.

    With `streamed`, a single message is also sent as an event stream.
    """
    if answer is None:
        await send_json(send, 202, b"", headers)
        return
    if type(answer) is ErrorReply:
        await send_json(send, 400, jsonrpc.encode(answer.message), headers)
        return
    assert isinstance(answer, EventStreamAnswer)
    if streamed and answer.name is not None:
        await send_events(answer, receive, send, after=0, headers=headers)
        return
    await answer.ready()
    if answer.only_message is not None:
        await send_json(send, 200, answer.only_message, headers)
    elif answer.closed and not answer.count:  # the call was canceled, so no response follows
        await send_json(send, 202, b"", headers)
    else:
        await send_events(answer, receive, send, after=0, headers=headers)


async def send_events(
    stream: EventStreamAnswer,
    receive: Receive,
    send: Send,
    *,
    after: int | None = None,
    headers: Headers | None = None,
    resumed: bool = False,
    earlier: Sequence[tuple[int, bytes]] = (),
    first: bytes = b"",
) -> None:
    """Send a stream's events until the stream ends or the client disconnects. A disconnect does not end the stream.

    The client has the messages up to the number `after`, or up to the newest message if `after` is None. `resumed` is
    True if the client resumes the stream. `earlier` are events that the stream has dropped.
    """
    # Read the position before the head is sent. Otherwise, the client could miss a message.
    position = stream.count if after is None else after

    async def follow() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS + (headers or [])})
        await send({"type": "http.response.body", "body": first, "more_body": True})
        with suppress(SessionLostError):  # the client reconnects to the process that now owns the session
            async with aclosing(stream.follow(position, resumed=resumed, earlier=earlier)) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    tasks = [asyncio.ensure_future(follow()), asyncio.ensure_future(wait_for_disconnect(receive))]
    stream.overrun = tasks[0].cancel
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class LifespanTask:
    """Task that enters context managers before the first request and exits them at the end.

    The task that enters a context manager must also exit it, and a request's task ends too soon. Without a shutdown
    message, the event loop cancels the task at the end, and the task exits the context managers in order.
    """

    __slots__ = ("_enter", "_over", "_started", "_task")

    def __init__(self, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        self._enter = enter
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._over = asyncio.Event()

    @property
    def started(self) -> bool:
        """Return True if all context managers are entered."""
        task = self._task
        return task is not None and not task.done() and self._started is not None and self._started.done()

    async def start(self) -> None:
        """Enter the context managers once. Concurrent callers wait. After an error, the next call tries again."""
        if self._task is None or self._task.done() or self._started is None:
            self._over.clear()
            self._started = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._started))
        await asyncio.shield(self._started)

    async def end(self) -> None:
        """Exit the context managers."""
        task, self._task = self._task, None
        if task is not None:
            self._over.set()
            await asyncio.wait([task])

    async def _run(self, started: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._enter(stack)
                started.set_result(None)
                # The event loop cancels this task at the end. The context managers must still be exited.
                with suppress(asyncio.CancelledError):
                    await self._over.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error if isinstance(error, Exception) else RuntimeError("the event loop ended"))
            started.exception()  # mark the exception as retrieved, because the callers may have been canceled


_EXPOSED: Final = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Location"
_METHODS: Final = ("GET", "POST", "DELETE")
_MAX_AGE: Final = b"7200"  # seconds that browsers cache the answer to a preflight request, the most that they permit


def allowed_origin(headers: Mapping[str, str], origins: Collection[str]) -> str:
    """Return the origin of the calling page if it is in `origins`, or else ""."""
    origin = headers.get("origin", "")
    return origin if origin in origins or ("*" in origins and origin) else ""


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Return True if the request is a CORS preflight."""
    return method == "OPTIONS" and "access-control-request-method" in headers


async def send_preflight(
    send: Send, origin: str, headers: Mapping[str, str], methods: Sequence[str] | None = None
) -> None:
    """Allow any requested headers, and the methods in `methods`, or by default the methods of MCP."""
    asked = headers.get("access-control-request-headers", "").encode("latin-1", "replace")
    head = [
        *_granted(origin),
        (b"access-control-allow-methods", ", ".join(methods or _METHODS).encode()),
        (b"access-control-allow-headers", asked),
        (b"access-control-max-age", _MAX_AGE),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": head})
    await send({"type": "http.response.body", "body": b""})


def with_cors_headers(send: Send, origin: str) -> Send:
    """Wrap `send` so that pages of this origin can read the response and the headers of MCP."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            more: Headers = [*_granted(origin), (b"access-control-expose-headers", _EXPOSED)]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent


def _granted(origin: str) -> Headers:
    return [(b"access-control-allow-origin", origin.encode("latin-1", "replace")), (b"vary", b"Origin")]
