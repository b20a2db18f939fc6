"""The transport of the oldest revision: one stream of events from the server, one address to POST to it (HTTP with SSE).

A session is the connection of its GET: it begins with an `endpoint` event that names the address of its POSTs, and ends
when the client leaves. Answers travel on the stream; a POST is only accepted.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.framing import sse_event
from mcpfactory_runtime.protocol.http import Rejection, is_json
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.session import Session
from mcpfactory_runtime.transports.http.stream import DROPPABLE, Stream
from mcpfactory_runtime.transports.http.wire import AsgiRequest, Receive, Scope, Send, reject, send_events, send_json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.host import Host, HttpRequest, ReplyChannel, SessionChannel

__all__ = ["SseEndpoints", "session_in"]

Json = dict[str, Any]


class SseSession(Session):
    """One client's stream."""

    def __init__(self, server: Host, principal: str) -> None:
        self.principal = principal
        self.stream = Stream(None, primed=False)
        self._request: AsgiRequest | None = None
        super().__init__(server, self.stream.push)

    def post(self, message: Any, request: AsgiRequest) -> None:
        """Take one decoded message."""
        self._request = request
        self.handle(self.connection.receive(message))

    def channel_of(self, call: Call) -> ReplyChannel:
        """Return the session, with the POST that brought the request."""
        return _PostedChannel(self, self._request)

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification; those that a client can do without are left out while it does not read."""
        data = jsonrpc.encode(jsonrpc.notification_message(self._wire(method, revision), params))
        self.stream.push(data, droppable=method in DROPPABLE)


class _PostedChannel:
    """The way back of one request: the session's."""

    def __init__(self, session: SseSession, request: AsgiRequest | None) -> None:
        self.http: HttpRequest | None = request
        self.persistent: SessionChannel = session
        self.principal = session.principal
        self.private = session.private
        self.subscriptions = session.subscriptions
        self.allowance = session.allowance
        self.notify = session.notify
        self.request = session.request
        self.close_stream = session.close_stream


class SseEndpoints:
    """The two addresses, and the sessions between them. Event loop only.

    Args:
        server: who answers.
        parent: the path above both addresses, without slash at its end.
        max_sessions: clients at once; more are refused for now.
        label: what the ids of this process's sessions begin with.
    """

    def __init__(self, server: Host, parent: str, max_sessions: int, label: str = "") -> None:
        self._server = server
        self._stream_path = f"{parent}/sse"
        self._post_path = f"{parent}/messages"
        self._max_sessions = max_sessions
        self._label = label
        self._sessions: dict[str, SseSession] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> frozenset[str]:
        """Where the addresses are."""
        return frozenset({self._stream_path, self._post_path})

    async def serve(
        self,
        path: str,
        scope: Scope,
        body: Any,
        *,
        headers: dict[str, str],
        principal: str,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one request to one of the `paths`. `body` is the decoded body of a POST, or the McpError of that."""
        allowed = "GET" if path == self._stream_path else "POST"
        if scope["method"] != allowed:
            # for newer clients that try this address with a POST first: 405 leads them here (Backwards Compatibility)
            await reject(send, Rejection(405, None, f"Only {allowed} is served here\n", {"allow": allowed}))
        elif allowed == "GET":
            await self._open(scope.get("root_path", ""), principal, receive, send)
        elif not is_json(headers):
            await reject(
                send, Rejection(415, None, "The body must be application/json, and Content-Type must say so\n")
            )
        else:
            await self._post(scope, body, principal, send)

    @property
    def count(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def begin_shutdown(self) -> None:
        """End every stream as soon as its requests are answered."""
        for session in self._sessions.values():
            session.refuse_requests()
            task = asyncio.ensure_future(_end(session))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _open(self, root: str, principal: str, receive: Receive, send: Send) -> None:
        if len(self._sessions) >= self._max_sessions:
            text = f"There are {self._max_sessions} sessions already. hint: try again later\n"
            await reject(send, Rejection(503, None, text, {"retry-after": "5"}))
            return
        name = f"{self._label}{secrets.token_urlsafe(24)}"
        session = self._sessions[name] = SseSession(self._server, principal)
        address = f"{root}{self._post_path}?session_id={name}"
        try:
            await send_events(
                session.stream, receive, send, after=0, first=sse_event(address.encode(), event="endpoint")
            )
        finally:
            del self._sessions[name]
            session.stream.finish()
            await session.close(0)

    async def _post(self, scope: Scope, body: Any, principal: str, send: Send) -> None:
        session = self._sessions.get(session_in(scope))
        if session is None or session.principal != principal:  # sessions of others do not exist
            text = f"There is no such session. hint: GET {self._stream_path} begins one\n"
            await reject(send, Rejection(404, None, text))
            return
        if isinstance(body, McpError):
            await reject(send, Rejection(400, jsonrpc.error_message(jsonrpc.MISSING, body)))
            return
        session.principal = principal  # the same one, perhaps with other scopes
        await send_json(send, 202, b"")  # before the answer, which may be on the stream at once
        session.post(body, AsgiRequest(scope))


async def _end(session: SseSession) -> None:
    await session.wait_idle()
    session.stream.finish()


def session_in(scope: Scope) -> str:
    """Return the session that the address of a POST names; "" for none."""
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("session_id", [""])[0]
