"""A session of the handshake lifecycle over Streamable HTTP: a `Session` whose messages travel on several streams.

Everything that belongs to a request goes on the response of its POST; what belongs to none on the session's own stream.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Batch, Call, Event, Refusal
from mcpfactory_runtime.server.session import Session

from .http_stream import DROPPABLE, Stream

if TYPE_CHECKING:
    from mcpfactory_runtime.revisions import Revision
    from mcpfactory_runtime.server.server import Server

__all__ = ["HttpSession"]

Json = dict[str, Any]

_OWN: Final = "0"  # name of the session's own stream
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # of an event
_STREAMS_KEPT: Final = 64  # finished responses that a client may still fetch


class HttpSession(Session):
    """One client's session.

    Attributes:
        id: the session id.
        used: when it was last used, by the event loop's clock.
    """

    def __init__(self, server: Server, session_id: str, now: float) -> None:
        self.id = session_id
        self.used = now
        self.own = Stream(_OWN, primed=False, awaited=False)
        super().__init__(server, self.own.push)
        self._streams: OrderedDict[str, Stream] = OrderedDict({_OWN: self.own})
        self._count = 0
        self._current: Stream | None = None
        self._channels: dict[Call, _PostChannel] = {}

    @property
    def revision(self) -> Revision:
        """What was negotiated."""
        assert self.connection.peer is not None
        return self.connection.peer.revision

    def post(self, message: Any) -> Stream | Refusal | None:
        """Take the body of a POST: the stream of its response, a refusal to send with 400, or None for 202."""
        event = self.connection.receive(message)
        if type(event) is Refusal:
            return self._refused(message, event)
        if not _expects_answer(event):
            self._react(event)
            return None
        self._count += 1
        stream = Stream(str(self._count), primed=self.connection.peer is not None and self.revision.priming)
        self._streams[str(self._count)] = stream
        self._tidy()
        self._current = stream
        self._react(event)
        self._current = None
        return stream

    def find_stream(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream and the position that a `Last-Event-ID` names; None for one that is not (or no longer) known."""
        name, _, digits = event_id.rpartition("-")
        stream = self._streams.get(name)
        if stream is None or not _NUMBER.fullmatch(digits):
            return None
        number = min(int(digits), stream.count)
        return (stream, number) if stream.holds(number) else None

    def begin_shutdown(self) -> None:
        """End the session's own stream, and let the requests in flight end theirs."""
        self.refuse_requests()
        self.own.finish()

    def end(self) -> None:
        """Close every stream."""
        for stream in self._streams.values():
            stream.finish()

    def _refused(self, message: Any, refusal: Refusal) -> Stream | Refusal | None:
        if refusal.message is None:
            return None
        if jsonrpc.usable_id(message) is jsonrpc.MISSING or "method" not in message:
            return refusal
        stream = Stream(None, primed=False)  # a request that is refused for what it asks: an answer like any other
        stream.finish(jsonrpc.encode(refusal.message))
        return stream

    def _tidy(self) -> None:
        """Forget the oldest finished responses."""
        surplus = len(self._streams) - _STREAMS_KEPT
        for name in [name for name, stream in self._streams.items() if stream.closed][: max(surplus, 0)]:
            del self._streams[name]

    # -- where messages go ---------------------------------------------------------------------------------------

    def channel_of(self, call: Call) -> _PostChannel:
        """The response of the POST that is being taken."""
        assert self._current is not None
        channel = self._channels[call] = _PostChannel(self, self._current)
        return channel

    def deliver(self, call: Call, data: bytes) -> None:
        """Put the response on the stream of its request, and end that stream."""
        channel = self._channels.pop(call, None)
        stream = channel.stream if channel is not None else self._current
        assert stream is not None
        stream.finish(data)
        self._settle_stream(stream)

    def abandoned(self, call: Call) -> None:
        """End the stream of a cancelled request."""
        channel = self._channels.pop(call, None)
        if channel is not None:
            channel.stream.finish()

    def _batch_sender(self) -> Callable[[bytes], None]:
        assert self._current is not None
        return self._current.finish

    def _settle_stream(self, stream: Stream) -> None:
        """A response that travels as plain JSON has no event ids: nobody can come back for it."""
        if stream.sole is not None and stream.name is not None:
            self._streams.pop(stream.name, None)


class _PostChannel:
    """The way back of one request: the response of its POST."""

    __slots__ = ("_session", "principal", "private", "stream", "subscriptions")

    def __init__(self, session: HttpSession, stream: Stream) -> None:
        self._session = session
        self.stream = stream
        self.principal = session.principal
        self.private = session.private
        self.subscriptions = session.subscriptions

    @property
    def lasting(self) -> HttpSession:
        return self._session

    def notify(self, method: str, params: Json) -> None:
        self.stream.push(jsonrpc.encode(jsonrpc.notification_message(method, params)), droppable=method in DROPPABLE)

    async def request(self, method: str, params: Json) -> Json:
        return await self._session.ask(method, params, self.stream.push)

    def close_stream(self, retry: int | None) -> None:
        if self._session.revision.priming:
            self.stream.detach(retry)


def _expects_answer(event: Event) -> bool:
    if type(event) is Batch:
        return any(type(item) is Call or (type(item) is Refusal and item.message) for item in event.events)
    return type(event) is Call
