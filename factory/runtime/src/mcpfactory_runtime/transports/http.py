"""Streamable HTTP: one ASGI callable for sessions of the handshake and for requests that carry their own metadata.

`protocol.http` decides what a request is; here it is carried out. The web server is loaded by `run_http` only.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import sys
from collections.abc import Collection, Iterable, MutableMapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.auth.gate import make_gate
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Refusal
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST, McpError
from mcpfactory_runtime.protocol.http import (
    LOOPBACK,
    Accepted,
    EndSession,
    Handshake,
    InSession,
    ModernCall,
    OpenStream,
    Rejection,
    check_origin,
    route,
)
from mcpfactory_runtime.protocol.param_headers import Mirrored, find_mirrored

from .http_exchange import SSE_HEADERS, Exchange, Receive, Send, send_json
from .http_session import HttpSession
from .http_stream import Stream

if TYPE_CHECKING:
    from mcpfactory_runtime.auth import Authorization
    from mcpfactory_runtime.revisions import Revision
    from mcpfactory_runtime.server.server import Server

__all__ = ["HttpApp", "run_http"]

Scope = MutableMapping[str, Any]

_DRAIN: Final = 10  # seconds for requests in flight when the process is told to end


class HttpApp:
    """A server as ASGI application.

    Args:
        server: who answers.
        path: the MCP endpoint; "/" when the application is mounted at the endpoint itself.
        allowed_hosts: host names that requests may be addressed to, without port; `*` for any. Default: this machine.
        allowed_origins: origins of web pages that may call (`https://example.com`), besides those of this machine.
        session_idle: seconds after which an unused session ends.
        max_sessions: the session unused for longest ends when there are more.
        auth: who may call; None serves everybody.
    """

    def __init__(
        self,
        server: Server,
        *,
        path: str = "/mcp",
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] = (),
        session_idle: float = 3600.0,
        max_sessions: int = 10_000,
        auth: Authorization | None = None,
    ) -> None:
        self._server = server
        self._path = path.rstrip("/")
        self._gate = make_gate(auth, server, self.path)
        self._hosts = LOOPBACK | self._gate.hosts if allowed_hosts is None else frozenset(allowed_hosts)
        self._origins = frozenset(allowed_origins)
        self._idle = session_idle
        self._max_sessions = max_sessions
        self._sessions: dict[str, HttpSession] = {}
        self._life = AsyncExitStack()
        self._started = False
        self._mirrored: dict[str, Mirrored] = {}
        self._mirrored_version = -1

    @property
    def path(self) -> str:
        """The path of the MCP endpoint."""
        return self._path or "/"

    # -- ASGI ----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            if not self._started:
                await self._start()
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:  # WebSockets are not part of MCP
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.begin_shutdown()
        await self._life.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self) -> None:
        """Enter the server's lifespan; at the first request where the application is mounted and told of no lifespan."""
        self._started = True
        await self._life.enter_async_context(self._server.running())

    def begin_shutdown(self) -> None:
        """End all long-lived streams, so that the web server can drain. Event loop only."""
        self._server.closing.set()
        for session in self._sessions.values():
            session.end()

    # -- one request ---------------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope["headers"])
        refused = check_origin(headers, self._hosts, self._origins)
        if refused is not None:
            await _reject(send, refused)
            return
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        if path.rstrip("/") != self._path:
            await self._serve_metadata(path, send)
            return
        principal = await self._gate.admit(scope, headers)
        if isinstance(principal, Rejection):
            await _reject(send, principal)
            return
        body: Any = None
        if scope["method"] == "POST":
            data = await _read_body(receive, self._server.max_message_size)
            if data is None:
                await _reject(send, Rejection(413, None, f"Larger than {self._server.max_message_size} bytes\n"))
                return
            try:
                body = jsonrpc.decode(data)
            except McpError as error:
                body = error
        refused = self._gate.permit(principal, body)
        if refused is not None:
            await _reject(send, refused)
            return
        chosen = route(
            scope["method"], headers, body, lambda session: self._revision_of(session, principal), self._mirrored_of
        )
        # who lists the event stream first prefers it
        streamed = headers.get("accept", "").startswith("text/event-stream")
        await self._act(chosen, principal, receive, send, streamed=streamed)

    async def _serve_metadata(self, path: str, send: Send) -> None:
        document = self._gate.document(path)
        if document is None:
            await _reject(send, Rejection(404, None, f"Nothing here. hint: the MCP endpoint is {self.path}\n"))
        else:
            await send_json(send, 200, jsonrpc.encode(document))

    async def _act(self, chosen: Any, principal: str, receive: Receive, send: Send, *, streamed: bool) -> None:
        if type(chosen) is ModernCall:
            await Exchange(self._server, chosen.call, receive, send, principal).run()
        elif type(chosen) is InSession:
            session = self._sessions[chosen.session]
            session.principal = principal  # the same one, perhaps with other scopes
            await _send_answer(session.post(chosen.message), receive, send, streamed=streamed)
        elif type(chosen) is Rejection:
            await _reject(send, chosen)
        elif type(chosen) is Accepted:
            await send_json(send, 202, b"")
        elif type(chosen) is Handshake:
            await self._begin_session(chosen.message, principal, receive, send)
        elif type(chosen) is OpenStream:
            await self._open_stream(chosen, receive, send)
        elif type(chosen) is EndSession:
            await self._end_session(self._sessions[chosen.session])
            await send_json(send, 200, b"")

    # -- sessions ------------------------------------------------------------------------------------------------

    def _revision_of(self, session_id: str, principal: str) -> Revision | None:
        session = self._sessions.get(session_id)
        if session is None or session.principal != principal:  # sessions of others do not exist
            return None
        session.used = asyncio.get_running_loop().time()
        return session.revision

    async def _begin_session(self, message: dict[str, Any], principal: str, receive: Receive, send: Send) -> None:
        now = asyncio.get_running_loop().time()
        await self._drop_idle(now)
        session = HttpSession(self._server, secrets.token_urlsafe(24), now)
        session.principal = principal
        answer = session.post(message)
        if session.connection.peer is None:  # the handshake failed; there is no session
            await session.close(0)
            await _send_answer(answer, receive, send)
            return
        self._sessions[session.id] = session
        await _send_answer(answer, receive, send, [(b"mcp-session-id", session.id.encode())])

    async def _drop_idle(self, now: float) -> None:
        stale = [session for session in self._sessions.values() if now - session.used > self._idle]
        if not stale and len(self._sessions) >= self._max_sessions:
            stale = [min(self._sessions.values(), key=lambda session: session.used)]
        for session in stale:
            await self._end_session(session)

    async def _end_session(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)
        session.end()
        await session.close(0)

    async def _open_stream(self, chosen: OpenStream, receive: Receive, send: Send) -> None:
        session = self._sessions[chosen.session]
        stream, after = session.own, None
        if chosen.last_event is not None:
            found = session.find_stream(chosen.last_event)
            if found is None:
                error = McpError(INVALID_REQUEST, "Last-Event-ID is not one of this session's, or too old")
                await _reject(send, Rejection(400, None, f"{error}\n"))
                return
            stream, after = found
        await _send_events(stream, after, receive, send, resumed=chosen.last_event is not None)

    # -- mirrored arguments --------------------------------------------------------------------------------------

    def _mirrored_of(self, tool: str) -> Mirrored:
        """The `x-mcp-header` annotations of a tool, found once."""
        registry = self._server.registry
        if self._mirrored_version != registry.version:
            self._mirrored.clear()
            self._mirrored_version = registry.version
        known = self._mirrored.get(tool)
        if known is None:
            entry = registry.tools.get(tool)
            if entry is None:
                return ()
            known = self._mirrored[tool] = find_mirrored(entry.wire.get("inputSchema"))
        return known


async def _send_answer(
    answer: Stream | Refusal | None,
    receive: Receive,
    send: Send,
    headers: list[tuple[bytes, bytes]] | None = None,
    *,
    streamed: bool = False,
) -> None:
    """Send what a POST leads to: plain JSON when there is only the response, events when something came before it.

    `streamed` makes events of a lone response, too.
    """
    if answer is None:
        await send_json(send, 202, b"", headers)
        return
    if type(answer) is Refusal:
        await send_json(send, 400, jsonrpc.encode(answer.message), headers)
        return
    assert isinstance(answer, Stream)
    if streamed and answer.name is not None:
        await _send_events(answer, 0, receive, send, headers)
        return
    await answer.ready()
    if answer.sole is not None:
        await send_json(send, 200, answer.sole, headers)
    elif answer.closed and not answer.count:  # cancelled: there will be no response
        await send_json(send, 202, b"", headers)
    else:
        await _send_events(answer, 0, receive, send, headers)


async def _send_events(
    stream: Stream,
    after: int | None,
    receive: Receive,
    send: Send,
    headers: list[tuple[bytes, bytes]] | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Follow a stream until it ends or the client leaves. The stream itself goes on without followers."""
    position = stream.count if after is None else after  # before the head goes out: nothing after that may be missed

    async def follow() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS + (headers or [])})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for event in stream.follow(position, resumed=resumed):
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(follow()), asyncio.ensure_future(leave())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _reject(send: Send, rejection: Rejection) -> None:
    extra = [(name.encode(), value.encode()) for name, value in rejection.headers.items()]
    if rejection.message is not None:
        await send_json(send, rejection.status, jsonrpc.encode(rejection.message), extra)
        return
    text = rejection.text.encode()
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text)), *extra]
    await send({"type": "http.response.start", "status": rejection.status, "headers": head})
    await send({"type": "http.response.body", "body": text})


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Header names (lower case, by ASGI) → values; repeated ones are joined, so that none can hide behind another."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """The body, or None when it is larger than allowed."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body if len(body) <= limit else None
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
    return b"".join(parts)


def run_http(server: Server, host: str, port: int, **options: Any) -> None:
    """Serve `http://host:port/mcp` until SIGINT or SIGTERM, then let requests in flight end.

    Args:
        server: who answers.
        host: address to listen on; anything but this machine needs `allowed_hosts`, else every host name is served
            and web pages are refused unless `allowed_origins` names them.
        port: 0 takes any free one; the URL is printed on stderr.
        options: those of `HttpApp`.
    """
    import uvicorn  # noqa: PLC0415 - the web server is loaded by those who serve HTTP only

    if host not in LOOPBACK | {"::1"}:
        options.setdefault("allowed_hosts", ("*",))
    app = HttpApp(server, **options)

    class WebServer(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            """Drain and end with status 0; a second Ctrl-C does not wait."""
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
            with suppress(RuntimeError):  # the signal came before the loop ran or after it ended
                asyncio.get_running_loop().call_soon_threadsafe(app.begin_shutdown)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_DRAIN,
    )
    web = WebServer(config)
    sockets = [config.bind_socket()]
    # Accepted sockets inherit it. Without it each response waits for the client's delayed acknowledgement (40 ms):
    # asyncio sets it only on sockets whose protocol number says TCP, which those of a given listener do not.
    sockets[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sockets[0].listen(config.backlog)  # who reads the URL below may connect at once
    sockets[0].listen(config.backlog)  # who reads the URL below may connect at once
    bound = sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"{server.name}: serving MCP at http://{shown}:{bound}{app.path}\n")
    sys.stderr.flush()
    web.run(sockets=sockets)
