"""Streamable HTTP: one ASGI application for the handshake and the per-request lifecycle.

`protocol.http` classifies requests, and this module executes them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.auth.authorization import issuer_metadata_url, resource_metadata_url
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import ErrorReply
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, McpError
from mcpfactory_runtime.protocol.http import (
    LOOPBACK,
    SESSION_HEADER,
    Accepted,
    BeginSession,
    EndSession,
    Mirrored,
    OpenStream,
    Rejection,
    ServeCall,
    SessionMessage,
    check_host_and_origin,
    find_header_arguments,
    route,
)
from mcpfactory_runtime.protocol.jsonrpc import sse_event
from mcpfactory_runtime.server.session import CUT_OFF
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.storage.base import NamespacedStore
from mcpfactory_runtime.storage.events import SessionJournal
from mcpfactory_runtime.transports.http.asgi import (
    AsgiRequest,
    LifespanTask,
    Page,
    Receive,
    Scope,
    Send,
    allowed_origin,
    check_request_size,
    client_identity,
    is_preflight,
    read_body,
    read_headers,
    send_events,
    send_json,
    send_page,
    send_post_response,
    send_preflight,
    send_rejection,
    with_cors_headers,
)
from mcpfactory_runtime.transports.http.authentication import create_gate
from mcpfactory_runtime.transports.http.exchange import Exchange
from mcpfactory_runtime.transports.http.health import METRICS, PROBES, HealthEndpoints
from mcpfactory_runtime.transports.http.process_relay import MultiProcessSessions
from mcpfactory_runtime.transports.http.sessions import HttpSession, SseEndpoints, session_id_from_url
from mcpfactory_runtime.transports.http.stream import EventStreamAnswer
from mcpfactory_runtime.transports.shutdown import LimitedEnd

if TYPE_CHECKING:
    from mcpfactory_runtime.oauth_proxy import OAuthProxy
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.revisions import Revision
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.base import SharedStore
    from mcpfactory_runtime.transports.http.oauth_endpoints import OAuthProxyEndpoints
    from mcpfactory_runtime.transports.http.routes import RouteTable

_BARELY_USED: Final = 3  # a session with at most this number of requests counts as barely used
_ABANDONED_AFTER: Final = 60.0  # a session without a request for this number of seconds counts as abandoned
FORWARDED_GRACE: Final = 10.0  # maximum seconds for other processes' requests after a shutdown signal


class HttpApp:
    """ASGI application of a server.

    Args:
        server: handles the requests.
        path: the MCP endpoint; "/" if the application is mounted at the endpoint itself.
        allowed_hosts: permitted host names of requests, without port. `*` permits all hosts. None permits this
            machine, and the host of the resource in `auth`.
        allowed_origins: origins of web pages that may call (`https://example.com`). Origins on this machine are always
            permitted.
        session_idle: seconds after which an unused session ends.
        max_sessions: limit of sessions. Above the limit, a session of the principal with the most sessions ends. A
            barely used session ends first, and otherwise the least recently used session.
        max_requests: maximum concurrent requests of the per-request lifecycle, including listening streams.
        auth: authorizes callers; None permits all callers. An `OAuthProxy` also issues tokens to clients.
        legacy_sse: True to also serve HTTP+SSE, the transport of the oldest revision. The paths are `sse` and
            `messages` next to `path`.
        store: shared storage for several processes (docs/reference/transports.md). The store contains sessions, their
            events, tasks and used states.
        pages: path → page to serve on GET, in addition to the protocol.

    Raises:
        ValueError: a route of the server has the path of MCP or of a page.
        RuntimeError: the server has routes, but Starlette is not installed.
    """

    def __init__(
        self,
        server: ServerInterface,
        *,
        path: str = "/mcp",
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] = (),
        session_idle: float = 3600.0,
        max_sessions: int = 10_000,
        max_requests: int = 10_000,
        auth: Authorization | OAuthProxy | None = None,
        legacy_sse: bool = True,
        store: SharedStore | None = None,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        self._server = server
        self._path = path.rstrip("/")
        proxy = None if auth is None or isinstance(auth, Authorization) else auth
        believed = auth if auth is None or isinstance(auth, Authorization) else auth.authorization
        self._gate = create_gate(believed, server, self.path)
        self._metadata_urls = [] if believed is None else [resource_metadata_url(believed.resource)]
        self._metadata_urls += [] if proxy is None else [issuer_metadata_url(proxy.issuer)]
        self._hosts = LOOPBACK | self._gate.hosts if allowed_hosts is None else frozenset(allowed_hosts)
        self._origins = frozenset(allowed_origins)
        self._login = None if proxy is None else self._create_login(proxy, store)
        self._idle = session_idle
        self._max_sessions = max_sessions
        self._max_requests = max_requests
        self._requests = 0
        self._sharing = None if store is None else MultiProcessSessions(NamespacedStore(store, server.name))
        self._shared = None if self._sharing is None else self._sharing.sessions
        self._sessions: dict[str, HttpSession] = {}
        parent = self._path.rpartition("/")[0]
        self._relay = None if self._sharing is None else self._sharing.relay
        self._label = self._relay.label if self._relay else ""
        self._sse = SseEndpoints(server, parent, max_sessions, self._label) if legacy_sse else None
        self._paths = frozenset({self._path}) | (self._sse.paths if self._sse is not None else frozenset())
        self._pages = pages or {}
        self._reviving = asyncio.Lock()
        self._ending: set[asyncio.Task[Any]] = set()
        self._life = LifespanTask(self._enter)
        self._probes = HealthEndpoints(server, self._life, self._gate)
        self._probed = PROBES - self._paths - self._pages.keys()
        self._routes = self._create_routes()
        self._mirrored: dict[str, Mirrored] = {}
        self._mirrored_version = -1

    @property
    def path(self) -> str:
        """Return the path of the MCP endpoint."""
        return self._path or "/"

    def _create_login(self, proxy: OAuthProxy, store: SharedStore | None) -> OAuthProxyEndpoints:
        """Return the endpoints of an OAuth proxy, and allow the proxy's origin, so that its pages can post forms."""
        from mcpfactory_runtime.transports.http.oauth_endpoints import OAuthProxyEndpoints  # noqa: PLC0415 - rarely needed

        name = str(self._server.info.get("title") or self._server.name)
        proxy.bind(store, name, self._gate.supported_scopes)
        self._origins |= {proxy.origin}
        return OAuthProxyEndpoints(proxy)

    def _create_routes(self) -> RouteTable | None:
        """Return the server's custom routes."""
        routes = self._server.routes
        if not routes:
            return None
        taken = self._paths | self._pages.keys() | (self._login.paths if self._login is not None else frozenset())
        for one in routes:
            if one.path.rstrip("/") in taken:
                raise ValueError(
                    f"{one.path} is already used for MCP, a login or a page\nhint: choose another path for the route"
                )
        try:
            from mcpfactory_runtime.transports.http.routes import RouteTable  # noqa: PLC0415 - loads Starlette
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"custom routes need {error.name}\nhint: pip install 'mcpfactory-runtime[routes]'"
            ) from None
        return RouteTable(routes, self._gate, self._server.max_message_size)

    # -- ASGI ----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            if not self._life.started and _place(scope)[1] not in self._probed:
                await self._life.start()
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:  # WebSockets are not part of MCP
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._life.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._life.end()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Run the lifespan when a Starlette or FastAPI application mounts this application.

        Without the outer application's lifespan, the lifespan lasts from the first request to the end of the event
        loop.

        Args:
            app: the outer application; unused.
        """
        await self._life.start()
        try:
            yield
        finally:
            await self._life.end()

    def mount_on(self, app: Any, prefix: str) -> None:
        """Mount this application in a Starlette or FastAPI application, after the existing routes.

        The outer application also runs the lifespan, and serves the metadata of the authorization at the root of the
        host (RFC 9728 §3.1, RFC 8414 §3.1). With `auth`, the path of the resource is `prefix` and then `path`.

        Args:
            app: the outer application.
            prefix: path of the mount, such as `/books`.
        """
        for url in self._metadata_urls:
            app.router.add_route(urlsplit(url).path, self)
        app.mount(prefix, self)
        inner = app.router.lifespan_context

        @asynccontextmanager
        async def both(outer: Any) -> AsyncIterator[Any]:
            async with self.lifespan(), inner(outer) as state:
                yield state

        app.router.lifespan_context = both

    async def _enter(self, stack: AsyncExitStack) -> None:
        self._probes.draining = False
        if self._sharing is not None:
            await stack.enter_async_context(self._sharing.join_shared_store(self._server))
        await stack.enter_async_context(LimitedEnd(self._server.running()))
        stack.push_async_callback(self._leave)
        if self._relay is not None:
            await self._relay.start(self._serve, self._server)

    async def _leave(self) -> None:
        self.begin_shutdown()
        self._server.readiness.stop()
        if self._relay is not None:
            await self._relay.aclose(FORWARDED_GRACE)
        for session in list(self._sessions.values()):
            session.close_journal()
            await self._end_session(session)

    def begin_shutdown(self) -> None:
        """Refuse new requests, and end streams that belong to no request. Call this method in the event loop."""
        self._server.closing.set()
        self._probes.draining = True
        if self._relay is not None:
            self._relay.begin_shutdown()
        for session in self._sessions.values():
            session.begin_shutdown()
        if self._sse is not None:
            self._sse.begin_shutdown()

    # -- one request ---------------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send, sender: str | None = None) -> None:
        """Serve a request. `sender` is the principal that another process has authenticated."""
        refused = check_request_size(scope)
        headers = read_headers(scope["headers"]) if refused is None else {}
        refused = refused or check_host_and_origin(headers, self._hosts, self._origins)
        if refused is not None:
            await send_rejection(send, refused)
            return
        origin = allowed_origin(headers, self._origins) if sender is None else ""
        if origin and is_preflight(scope["method"], headers):
            methods = self._routes.methods(scope) if self._routes is not None else None
            await send_preflight(send, origin, headers, methods or None)
            return
        send = with_cors_headers(send, origin) if origin else send
        await self._serve_path(scope, receive, send, headers=headers, sender=sender)

    async def _serve_path(
        self, scope: Scope, receive: Receive, send: Send, *, headers: dict[str, str], sender: str | None
    ) -> None:
        path, place = _place(scope)
        if place not in self._paths:
            if self._login is not None and place in self._login.paths:
                await self._login.serve(place, scope, headers, receive, send)
                return
            if self._routes is None or not await self._routes.serve(scope, headers, receive, send):
                await self._serve_other(place, path, scope, headers, send)
            return
        principal = await self._gate.authenticate(scope, headers) if sender is None else sender
        if isinstance(principal, Rejection):
            await send_rejection(send, principal)
            return
        if sender is None:
            here = await self._forward(principal, scope, receive, send, headers)
            if here is None:
                return
            receive = here
        body: Any = None
        if scope["method"] == "POST":
            data = await read_body(receive, self._server.max_message_size)
            if data is None:
                await send_rejection(send, Rejection(413, None, f"Larger than {self._server.max_message_size} bytes\n"))
                return
            try:
                body = jsonrpc.decode(data)
            except McpError as error:
                body = error
        refused = self._gate.authorize(principal, body)
        if refused is not None:
            await send_rejection(send, refused)
            return
        if place != self._path:
            assert self._sse is not None
            await self._sse.serve(place, scope, body, headers=headers, principal=principal, receive=receive, send=send)
            return
        if self._shared is not None and SESSION_HEADER in headers:
            await self._revive(headers[SESSION_HEADER], principal, scope)
        chosen = route(
            scope["method"], headers, body, lambda session: self._revision_of(session, principal), self._mirrored_of
        )
        # A client that lists event streams first in the Accept header prefers an event stream.
        streamed = headers.get("accept", "").startswith("text/event-stream")
        await self._execute(chosen, principal, scope, receive, send, streamed=streamed)

    async def _forward(
        self, principal: str, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> Receive | None:
        """Forward a request to the process with its session, and return None if that process answered the request."""
        session_id = headers.get(SESSION_HEADER) or session_id_from_url(scope)
        if self._relay is None or not session_id or session_id in self._sessions:
            return receive
        return await self._relay.forward(session_id, principal, scope, receive, send)

    async def _serve_other(self, place: str, path: str, scope: Scope, headers: dict[str, str], send: Send) -> None:
        if place in self._probed:
            await self._probes.serve(place, scope, headers, send)
            return
        if place == METRICS and place not in self._pages and self._server.metrics is not None:
            sessions = len(self._sessions) + (self._sse.count if self._sse else 0)
            await self._probes.serve_metrics(self._server.metrics, sessions, scope, headers, send)
            return
        if place not in self._pages:
            await self._serve_metadata(path, send)
            return
        admitted = await self._gate.authenticate(scope, headers)
        await send_page(send, self._pages[place], scope, headers, admitted=not isinstance(admitted, Rejection))

    async def _serve_metadata(self, path: str, send: Send) -> None:
        document = self._gate.document(path)
        place = self._gate.issuer_redirect_url(path)
        if place is not None:
            await send_rejection(send, Rejection(307, None, f"See {place}\n", {"location": place}))
        elif document is None:
            await send_rejection(send, Rejection(404, None, f"Nothing here. hint: the MCP endpoint is {self.path}\n"))
        else:
            await send_json(send, 200, jsonrpc.encode(document))

    async def _exchange(self, call: Call, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of the per-request lifecycle. Rates apply per principal, or per address without a token."""
        if self._requests >= self._max_requests:
            error = McpError(INTERNAL_ERROR, f"{self._max_requests} requests are already in flight")
            await send_rejection(send, Rejection(503, jsonrpc.error_message(call.id, error), "", {"retry-after": "5"}))
            return
        allowance = self._server.rates.of(client_identity(principal, scope))
        call.http = AsgiRequest(scope)
        self._requests += 1
        try:
            await Exchange(self._server, call, receive, send, principal=principal, allowance=allowance).run()
        finally:
            self._requests -= 1

    async def _execute(
        self, chosen: Any, principal: str, scope: Scope, receive: Receive, send: Send, *, streamed: bool
    ) -> None:
        if type(chosen) is ServeCall:
            await self._exchange(chosen.call, principal, scope, receive, send)
        elif type(chosen) is SessionMessage:
            session = self._sessions[chosen.session]
            # The principal is unchanged, but its scopes may have changed.
            session.principal = principal
            answer = session.post(chosen.message, AsgiRequest(scope))
            try:
                await send_post_response(answer, receive, send, streamed=streamed)
            except asyncio.CancelledError:
                if not self._server.closing.is_set():
                    raise
                await _cut_off(answer, chosen.message, send)
        elif type(chosen) is Rejection:
            await send_rejection(send, chosen)
        elif type(chosen) is Accepted:
            await send_json(send, 202, b"")
        elif type(chosen) is BeginSession:
            await self._begin_session(chosen.message, principal, scope, receive, send)
        elif type(chosen) is OpenStream:
            await self._open_stream(chosen, receive, send)
        elif type(chosen) is EndSession:
            await self._end_session(self._sessions[chosen.session])
            await send_json(send, 200, b"")

    # -- sessions ------------------------------------------------------------------------------------------------

    def _revision_of(self, session_id: str, principal: str) -> Revision | None:
        session = self._sessions.get(session_id)
        if session is None or session.principal != principal:  # hide other principals' sessions
            return None
        session.mark_used(asyncio.get_running_loop().time())
        return session.revision

    def _new_session(
        self, session_id: str, principal: str, scope: Scope, journal: SessionJournal | None = None
    ) -> HttpSession:
        session = HttpSession(self._server, session_id, asyncio.get_running_loop().time(), journal)
        session.principal = principal
        session.owner = client_identity(principal, scope)
        if journal is not None:
            journal.on_lost = partial(self._lose_session, session)
        return session

    async def _revive(self, session_id: str, principal: str, scope: Scope) -> None:
        """Continue a session of an ended process if the store contains the session."""
        if session_id in self._sessions:
            return
        async with self._reviving:  # several requests may revive the session at once
            if session_id in self._sessions:
                return
            assert self._shared is not None
            journal = SessionJournal(self._shared, session_id)
            if await journal.claim() is not None:
                return
            found = await journal.load()
            if found is None or found[0]["principal"] != principal:
                return
            await self._drop_idle(asyncio.get_running_loop().time())
            session = self._new_session(session_id, principal, scope, journal)
            await session.restore_session(*found)
            self._sessions[session_id] = session

    async def _begin_session(
        self, message: dict[str, Any], principal: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        await self._drop_idle(asyncio.get_running_loop().time())
        session_id = f"{self._label}{secrets.token_urlsafe(24)}"
        journal = None if self._shared is None else SessionJournal(self._shared, session_id)
        session = self._new_session(session_id, principal, scope, journal)
        answer = session.post(message, AsgiRequest(scope))
        if session.connection.peer is None:  # without a successful handshake, the session does not exist
            await session.close(0)
            await send_post_response(answer, receive, send)
            return
        self._sessions[session.id] = session
        if self._shared is not None:
            await self._shared.wait_until_written()
        await send_post_response(answer, receive, send, [(b"mcp-session-id", session.id.encode())])

    async def _drop_idle(self, now: float) -> None:
        stale = [session for session in self._sessions.values() if now - session.used > self._idle]
        if not stale and len(self._sessions) >= self._max_sessions:
            stale = [_least_missed(self._sessions.values(), now)]
        for session in stale:
            await self._end_session(session)

    async def _end_session(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)
        session.end()
        await session.close(0)

    def _lose_session(self, session: HttpSession) -> None:
        # Remove the session first, so that the next request is forwarded.
        if self._sessions.pop(session.id, None) is session:
            in_background(self._ending, self._end_session(session))

    async def _open_stream(self, chosen: OpenStream, receive: Receive, send: Send) -> None:
        session = self._sessions[chosen.session]
        if chosen.last_event is None:
            await send_events(session.own, receive, send)
            return
        found = await session.find_stream(chosen.last_event)
        if found is None:
            error = McpError(INVALID_REQUEST, "Last-Event-ID is not from this session, or is too old")
            await send_rejection(send, Rejection(400, None, f"{error}\n"))
            return
        stream, after, earlier = found
        await send_events(stream, receive, send, after=after, earlier=earlier, resumed=True)

    # -- mirrored arguments --------------------------------------------------------------------------------------

    def _mirrored_of(self, tool: str) -> Mirrored:
        registry = self._server.registry
        if self._mirrored_version != registry.version:
            self._mirrored.clear()
            self._mirrored_version = registry.version
        known = self._mirrored.get(tool)
        if known is None:
            entry = registry.tools.get(tool)
            if entry is None:
                return ()
            known = self._mirrored[tool] = find_header_arguments(entry.wire.get("inputSchema"))
        return known


def _place(scope: Scope) -> tuple[str, str]:
    """Return the path of a request below the mount point, unchanged and without a trailing slash."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path, path.rstrip("/")


async def _cut_off(answer: EventStreamAnswer | ErrorReply | None, message: Any, send: Send) -> None:
    """End the response to a request after the drain time, with an error if no message was sent."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    error = jsonrpc.encode(jsonrpc.error_message(jsonrpc.error_response_id(message), CUT_OFF))
    if isinstance(answer, EventStreamAnswer) and answer.is_unsent:
        await send_json(send, 200, error)
    elif (
        isinstance(answer, EventStreamAnswer) and not answer.count
    ):  # the stream began after `KEEP_ALIVE` without a message
        await send({"type": "http.response.body", "body": sse_event(error)})


def _least_missed(sessions: Collection[HttpSession], now: float) -> HttpSession:
    """Return the session that ends if the limit is exceeded. The principal with the most sessions loses a session.

    Abandoned sessions come first, then barely used sessions, and then the least recently used session.
    """
    held = Counter(session.owner for session in sessions)
    most = max(held.values())
    return min(
        (session for session in sessions if held[session.owner] == most),
        key=lambda session: (now - session.used < _ABANDONED_AFTER, session.uses > _BARELY_USED, session.used),
    )
