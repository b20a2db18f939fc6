"""Sessions of the handshake lifecycle over HTTP, and the HTTP+SSE transport.

Messages that belong to a request are sent in the response to its POST. All other messages are sent on the session's own
stream.

In HTTP+SSE, a session is one GET connection, which begins with an `endpoint` event. The event contains the URL for POST
requests. Responses to messages are sent on the GET stream, and each POST request gets the status 202. The session ends
when the client disconnects.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Batch, Call, ErrorReply, Event, Peer, State
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.protocol.http import Rejection, declares_json_body
from mcpfactory_runtime.protocol.jsonrpc import sse_event
from mcpfactory_runtime.revisions import LEGACY, Revision
from mcpfactory_runtime.server.session import DROPPABLE, PROGRESS_GAP, Session
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.transports.http.asgi import (
    AsgiRequest,
    Receive,
    Scope,
    Send,
    send_events,
    send_json,
    send_rejection,
)
from mcpfactory_runtime.transports.http.stream import EventStreamAnswer
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.events import SessionJournal, UnfinishedStream


_OWN: Final = "0"  # name of the session's own stream
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # number of an event in decimal digits
_STREAMS_KEPT: Final = 64  # maximum finished responses that a client may still fetch


class HttpSession(Session):
    """One client's session.

    `used` is the time of the last use, by the event loop's clock. `owner` is the client's principal, or the client's
    address without a token.
    """

    def __init__(
        self, server: ServerInterface, session_id: str, now: float, journal: SessionJournal | None = None
    ) -> None:
        self.id = self.session_id = session_id
        self.used = now
        self.uses = 0
        self.owner = ""
        self._journal = journal
        self._generation = 0  # number of processes that had the session earlier
        self.own = EventStreamAnswer(_OWN, primed=False, awaited=False, recorder=journal)
        super().__init__(server, self.own.push)
        self._streams: OrderedDict[str, EventStreamAnswer] = OrderedDict({_OWN: self.own})
        self._count = 0
        self._current: EventStreamAnswer | None = None
        self._channels: dict[Call, _PostChannel] = {}

    @property
    def revision(self) -> Revision:
        """Return the negotiated revision."""
        assert self.connection.peer is not None
        return self.connection.peer.revision

    def mark_used(self, now: float) -> None:
        """Record a use of the session."""
        self.used = now
        self.uses += 1
        if self._journal is not None:
            self._journal.touch(now)

    def post(self, message: Any, request: AsgiRequest) -> EventStreamAnswer | ErrorReply | None:
        """Handle the body of a POST, and return the response's stream, an error (status 400), or None (status 202)."""
        event = self.connection.receive(message)
        if type(event) is ErrorReply:
            return self._refused(message, event)
        stream = self._open_stream(event) if _expects_answer(event) else None
        for call in _calls(event):
            call.http = request
        self._current = stream
        self.handle(event)
        self._current = None
        if self._journal is not None and self.connection.peer is not None:
            self._journal.save(self._state())
        return stream

    def _open_stream(self, event: Event) -> EventStreamAnswer:
        self._count += 1
        name = f"{self._generation}.{self._count}" if self._generation else str(self._count)
        stream = self._streams[name] = EventStreamAnswer(
            name,
            primed=self.connection.peer is not None and self.revision.priming,
            recorder=self._journal,
            requests=() if self._journal is None else [call.id for call in _calls(event)],
        )
        self._tidy()
        return stream

    async def find_stream(self, event_id: str) -> StreamPosition | None:
        """Return the position of a `Last-Event-ID`, or None if the ID is unknown or expired."""
        name, _, digits = event_id.rpartition("-")
        if not _NUMBER.fullmatch(digits):
            return None
        stream, number = self._streams.get(name), int(digits)
        if stream is not None and stream.has_after(min(number, stream.count)):
            return StreamPosition(stream, min(number, stream.count))
        stored = None if self._journal is None else await self._journal.events(name)
        if not stored:
            return None
        if stream is not None:  # the stream is open, but only the journal has its first messages
            missed = [event for event in stored if event[0] > number]
            return StreamPosition(stream, number, missed) if missed and missed[0][0] == number + 1 else None
        stream = EventStreamAnswer(name, primed=False)
        stream.restore(stored)
        stream.finish()
        # A dead process may have lost events, so send at least the response again.
        number = min(number, stream.count - 1)
        return StreamPosition(stream, number) if stream.has_after(number) else None

    def begin_shutdown(self) -> None:
        """End the session's own stream, but not the streams of requests in flight."""
        self.refuse_requests()
        self.own.finish(recorded=False)  # another process may continue the session, so do not record the end

    def close_journal(self) -> None:
        """Stop recording, but leave the session in the store, because another process may continue the session."""
        if self._journal is not None:
            self._journal.close()

    def end(self) -> None:
        """Close every stream."""
        if self._journal is not None:
            self._journal.forget()
        for stream in self._streams.values():
            stream.finish()

    def _refused(self, message: Any, refusal: ErrorReply) -> EventStreamAnswer | ErrorReply | None:
        if refusal.message is None:
            return None
        if jsonrpc.error_response_id(message) is jsonrpc.MISSING or "method" not in message:
            return refusal
        # The refusal of a valid request is an ordinary response.
        stream = EventStreamAnswer(None, primed=False)
        stream.finish(jsonrpc.encode(refusal.message))
        return stream

    def _tidy(self) -> None:
        surplus = len(self._streams) - _STREAMS_KEPT
        if surplus > 0:
            for name in [name for name, stream in self._streams.items() if stream.closed][:surplus]:
                del self._streams[name]

    # -- message routing -----------------------------------------------------------------------------------------

    def channel_of(self, call: Call) -> _PostChannel:
        """Return the channel of a call in the current POST."""
        assert self._current is not None
        channel = self._channels[call] = _PostChannel(self, self._current)
        return channel

    def deliver(self, call: Call, data: bytes) -> None:
        """Send the response on the stream of the request, and end the stream."""
        channel = self._channels.pop(call, None)
        stream = channel.stream if channel is not None else self._current
        assert stream is not None
        stream.finish(data)
        if stream.only_message is not None and stream.name is not None:
            self._streams.pop(stream.name, None)  # plain JSON cannot be resumed, because it has no event IDs

    def on_cancelled(self, call: Call) -> None:
        """End the stream of a canceled request."""
        channel = self._channels.pop(call, None)
        if channel is not None:
            channel.stream.finish()

    def _batch_sender(self) -> Callable[[bytes], None]:
        assert self._current is not None
        return self._current.finish

    # -- shared store --------------------------------------------------------------------------------------------

    def _state(self) -> Json:
        peer = self.connection.peer
        assert peer is not None
        return {
            "principal": str(self.principal),
            "generation": self._generation,
            "revision": peer.revision.name,
            "info": peer.info,
            "capabilities": peer.capabilities,
            "log_level": peer.log_level,
            "subscriptions": sorted(self.subscriptions),
        }

    async def restore_session(self, state: Json, unfinished: list[UnfinishedStream]) -> None:
        """Take over a session of another process, and send errors for the unanswered requests."""
        assert self._journal is not None
        revision = LEGACY[state["revision"]]
        self.connection.peer = Peer(revision, state["info"], state["capabilities"], state["log_level"])
        self.connection.state = State.OPEN
        self.subscriptions.update(state["subscriptions"])
        self._generation = state["generation"] + 1
        self._journal.save(self._state())
        error = McpError(INTERNAL_ERROR, "The server was restarted before this request was answered")
        for name, requests, last in unfinished:
            if name == _OWN:
                continue
            messages = [jsonrpc.error_message(request, error) for request in requests]
            self._journal.append(name, last + 1, jsonrpc.encode(messages[0] if len(messages) == 1 else messages))
            self._journal.finish(name)
        kept = await self._journal.events(_OWN)
        if kept is not None:
            self.own.restore(kept)


class StreamPosition(NamedTuple):
    """A position in a stream, after message `number`. Only the journal has the messages in `earlier`."""

    stream: EventStreamAnswer
    number: int
    earlier: Sequence[tuple[int, bytes]] = ()


class _PostChannel:
    """Channel of one request, whose messages are sent in the response to the POST."""

    __slots__ = ("_session", "allowance", "principal", "private", "stream", "subscriptions")

    def __init__(self, session: HttpSession, stream: EventStreamAnswer) -> None:
        self._session = session
        self.stream = stream
        self.principal = session.principal
        self.private = session.private
        self.subscriptions = session.subscriptions
        self.allowance = session.allowance

    @property
    def session_channel(self) -> HttpSession:
        return self._session

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        message = jsonrpc.notification_message(self._session.revision.wire(method), params)
        self.stream.push(jsonrpc.encode(message), droppable=method in DROPPABLE)

    async def request(self, method: str, params: Json) -> Json:
        return await self._session.ask(method, params, self.stream.push)

    def close_stream(self, retry: int | None) -> None:
        if self._session.revision.priming:
            self.stream.detach(retry)


def _calls(event: Event) -> list[Call]:
    return [call for call in (event.events if type(event) is Batch else (event,)) if type(call) is Call]


def _expects_answer(event: Event) -> bool:
    if type(event) is Batch:
        return any(type(item) is Call or (type(item) is ErrorReply and item.message) for item in event.events)
    return type(event) is Call


class SseSession(Session):
    """One HTTP+SSE client and its stream."""

    progress_gap = PROGRESS_GAP

    def __init__(self, server: ServerInterface, principal: str) -> None:
        self.principal = principal
        self.stream = EventStreamAnswer(None, primed=False)
        super().__init__(server, self.stream.push)

    def post(self, message: Any, request: AsgiRequest) -> None:
        """Handle one decoded message."""
        event = self.connection.receive(message)
        for call in _calls(event):
            call.http = request
        self.handle(event)

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification, or drop an optional notification if the client does not read."""
        data = jsonrpc.encode(jsonrpc.notification_message(self._wire(method, revision), params))
        self.stream.push(data, droppable=method in DROPPABLE)


class SseEndpoints:
    """The two endpoints of HTTP+SSE, and their sessions, for use in the event loop.

    The path `parent` is above both endpoints. Above `max_sessions`, a GET request gets status 503.
    """

    def __init__(self, server: ServerInterface, parent: str, max_sessions: int, label: str = "") -> None:
        self._server = server
        self._stream_path = f"{parent}/sse"
        self._post_path = f"{parent}/messages"
        self._max_sessions = max_sessions
        self._label = label
        self._sessions: dict[str, SseSession] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of the endpoints."""
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
        """Serve a request to one of the `paths`."""
        allowed = "GET" if path == self._stream_path else "POST"
        if scope["method"] != allowed:
            # Newer clients first send a POST to this URL. After status 405, they send a GET.
            await send_rejection(send, Rejection(405, None, f"Only {allowed} is served here\n", {"allow": allowed}))
        elif allowed == "GET":
            await self._open(scope.get("root_path", ""), principal, receive, send)
        elif not declares_json_body(headers):
            await send_rejection(send, Rejection(415, None, "Content-Type must be application/json\n"))
        else:
            await self._post(scope, body, principal, send)

    @property
    def count(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    def begin_shutdown(self) -> None:
        """End each stream as soon as all its requests are answered."""
        for session in self._sessions.values():
            session.refuse_requests()
            in_background(self._ending, _end(session))

    async def _open(self, root: str, principal: str, receive: Receive, send: Send) -> None:
        if len(self._sessions) >= self._max_sessions:
            text = f"The limit of {self._max_sessions} sessions is reached. hint: try again later\n"
            await send_rejection(send, Rejection(503, None, text, {"retry-after": "5"}))
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
        session = self._sessions.get(session_id_from_url(scope))
        if session is None or session.principal != principal:  # hide other principals' sessions
            text = f"Unknown session. hint: GET {self._stream_path} begins a session\n"
            await send_rejection(send, Rejection(404, None, text))
            return
        if isinstance(body, McpError):
            await send_rejection(send, Rejection(400, jsonrpc.error_message(jsonrpc.MISSING, body)))
            return
        session.principal = principal  # the principal is unchanged, but its scopes may have changed
        await send_json(send, 202, b"")  # `post` may send the response at once, so send 202 first
        session.post(body, AsgiRequest(scope))


async def _end(session: SseSession) -> None:
    await session.wait_idle()
    session.stream.finish()


def session_id_from_url(scope: Scope) -> str:
    """Return the session ID in the URL of a POST, or ""."""
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("session_id", [""])[0]
