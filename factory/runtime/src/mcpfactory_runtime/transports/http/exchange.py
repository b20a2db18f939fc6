"""Responses of the per-request lifecycle over HTTP: plain JSON, or a stream for notifications and slow handlers.

An error determines the status (404, 400), and a handler may raise the error late. The response therefore begins only
with the first notification, with the result, or after `KEEP_ALIVE` seconds. A later error is sent on the stream, with
status 200. A disconnect cancels the handler (basic/patterns/cancellation). The server sends SSE comments, so that
proxies do not close idle connections.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Call
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, McpError, http_status
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.session import CUT_OFF, DROPPABLE, answer_or_error
from mcpfactory_runtime.transports.http.asgi import SSE_HEADERS, Receive, Send, send_json, wait_for_disconnect
from mcpfactory_runtime.transports.http.stream import KEEP_ALIVE, EventStreamAnswer
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.server.rates import ClientRateLimits


log = logging.getLogger(__name__)

_WATCH_AFTER: Final = 0.02  # seconds after which a task watches for a disconnect; most calls end earlier


class Exchange:
    """The channel of one request, and the response to the request."""

    subscriptions: set[str] = set()  # noqa: RUF012 - never written: this lifecycle has no resources/subscribe
    private = False
    session_channel = None

    def __init__(
        self,
        server: ServerInterface,
        call: Call,
        receive: Receive,
        send: Send,
        *,
        principal: str,
        allowance: ClientRateLimits,
    ) -> None:
        self.principal = principal
        self.allowance = allowance
        self._server = server
        self._call = call
        self._receive = receive
        self._send = send
        self._task: asyncio.Task[Any] | None = None
        self._stream: EventStreamAnswer | None = None
        self._writer: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._gone = False
        self._answering = False

    async def run(self) -> None:
        """Handle the request and send the response."""
        task = self._task = asyncio.current_task()
        assert task is not None
        self._timer = asyncio.get_running_loop().call_later(_WATCH_AFTER, self._watch)
        try:
            await self._respond(await self._outcome())
        except asyncio.CancelledError:
            if not self._gone and (self._answering or not self._server.closing.is_set()):
                raise
            task.uncancel()
            if not self._gone:  # the request exceeded the drain time of the server
                await self._respond(CUT_OFF)
        finally:
            self._timer.cancel()
            if self._watcher is not None:
                self._watcher.cancel()
            if self._gone and self._writer is not None:
                self._writer.cancel()

    async def _outcome(self) -> Json | bytes | McpError:
        try:
            outcome = self._server.handle(self._call, self)
        except McpError as error:
            return error
        if isinstance(outcome, dict | bytes):
            return outcome
        try:
            return await answer_or_error(self._call, outcome)
        except asyncio.CancelledError:
            assert self._task is not None
            if self._task.cancelling():
                raise
            # No one canceled the call, so the handler canceled itself.
            return McpError(INTERNAL_ERROR, "The handler was cancelled")

    async def _respond(self, outcome: Json | bytes | McpError) -> None:
        assert self._timer is not None
        self._timer.cancel()  # no stream can begin afterwards
        self._answering = True
        status = 200
        try:
            if isinstance(outcome, McpError):
                status = http_status(outcome.code)
                data = jsonrpc.encode(jsonrpc.error_message(self._call.id, outcome))
            else:
                data = jsonrpc.encode_result_message(self._call.id, outcome)
        except Exception:  # usually a ValueError, but the value may change during the encoding
            log.exception("the result of %s cannot be converted to JSON", self._call.method)
            error = McpError(INTERNAL_ERROR, "Internal error: the result cannot be converted to JSON")
            data = jsonrpc.encode(jsonrpc.error_message(self._call.id, error))
        if self._stream is None:
            await send_json(self._send, status, data)
            return
        self._stream.finish(data)
        assert self._writer is not None
        await self._writer

    # -- the channel ---------------------------------------------------------------------------------------------

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification, which turns the response into an event stream."""
        message = jsonrpc.notification_message(self._call.peer.revision.wire(method), params)
        self._begin_stream().push(jsonrpc.encode(message), droppable=method in DROPPABLE)

    async def request(self, method: str, params: Json) -> Json:
        """Refuse the request with McpError, because the server cannot send requests (basic/patterns/mrtr)."""
        raise McpError(INVALID_REQUEST, f"{method} cannot be sent to the client in this revision")

    def close_stream(self, retry: int | None) -> None:
        """Do nothing, because a stream of this lifecycle cannot be resumed."""

    def _begin_stream(self) -> EventStreamAnswer:
        """Turn the response into an event stream, to send a notification or a comment."""
        if self._stream is None:
            self._stream = EventStreamAnswer(None, primed=False)
            self._stream.overrun = self._abort
            self._writer = asyncio.get_running_loop().create_task(self._write(self._stream))
        return self._stream

    async def _write(self, stream: EventStreamAnswer) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        async for message in stream.follow(0):
            await self._send({"type": "http.response.body", "body": message, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    # -- disconnects ---------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._wait_for_disconnect())
        self._timer = loop.call_later(KEEP_ALIVE, self._begin_stream)

    async def _wait_for_disconnect(self) -> None:
        await wait_for_disconnect(self._receive)
        self._abort()

    def _abort(self) -> None:
        assert self._task is not None
        self._gone = True
        self._task.cancel()
