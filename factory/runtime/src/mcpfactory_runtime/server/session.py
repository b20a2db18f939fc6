"""Session of a client on one stream of encoded messages.

A `Session` is also the `ReplyChannel` of its requests, because all requests share the stream.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import Batch, Call, Connection, ErrorReply, Event, Notification, Response
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, McpError
from mcpfactory_runtime.protocol.jsonrpc import OversizeMessage, RequestId
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.errors import is_keyboard_interrupt
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ReplyChannel, ServerInterface, SessionChannel

log = logging.getLogger(__name__)

DROPPABLE: Final = frozenset({"notifications/progress", "notifications/message"})
"""Notifications that may be dropped, because no result depends on them."""

DROP_AT: Final = 1 << 20
"""Number of unread bytes above which notifications in `DROPPABLE` are dropped."""

# Seconds between the last progress and the result of a call. The TypeScript SDK drops progress that it reads together
# with the result of the same call.
PROGRESS_GAP: Final = 0.05

CUT_OFF: Final = McpError(INTERNAL_ERROR, "The server shut down before the request ended. hint: send it again")


class Session:
    """Session of one client. Use a session only in the event loop."""

    principal = ""
    private = False
    session_id: str | None = None
    progress_gap = 0.0
    """Minimum seconds between the last progress notification and the result of a call."""

    def __init__(self, server: ServerInterface, send: Callable[[bytes], None]) -> None:
        self._server = server
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.connection = Connection()
        self.subscriptions: set[str] = set()
        self.session_state: Json = {}
        self.allowance = server.rates.allowance()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        self._waiting: dict[RequestId, asyncio.Future[Json]] = {}
        self._can_ask = True
        self._batches: dict[Call, BatchReply] = {}
        server.hub.add(self)

    # -- incoming messages ---------------------------------------------------------------------------------------

    def feed(self, data: bytes | OversizeMessage) -> None:
        """Handle one message, or the notice of a message above the size limit."""
        self.handle(self.receive(data))

    def receive(self, data: bytes | OversizeMessage) -> Event:
        """Decode a message to an event."""
        if isinstance(data, OversizeMessage):
            limit = self._server.max_message_size
            error = McpError(INVALID_REQUEST, f"Message larger than {limit} bytes")
            return self.connection.decode_error_reply(error, data.request_id)
        try:
            message = jsonrpc.decode(data)
        except McpError as error:
            return self.connection.decode_error_reply(error)
        return self.connection.receive(message)

    def channel_of(self, call: Call) -> ReplyChannel:
        """Return the reply channel for a request's notifications."""
        return self

    def deliver(self, call: Call, data: bytes) -> None:
        """Send the encoded response to a request."""
        self._send(data)

    def on_cancelled(self, call: Call) -> None:
        """Release the resources of a canceled request. A canceled request gets no response."""

    def handle(self, event: Event) -> None:
        """Process the event of a message."""
        if type(event) is Call:
            self._start(event)
        elif type(event) is Response:
            self._resolve(event)
        elif type(event) is Notification:
            if event.method == "notifications/cancelled":
                self._cancel(event.params["requestId"])
        elif type(event) is ErrorReply:
            if event.message is not None:
                self._send(jsonrpc.encode(event.message))
        elif type(event) is Batch:
            self._start_batch(event)

    def _start(self, call: Call) -> None:
        try:
            outcome = self._server.handle(call, self.channel_of(call))
        except McpError as error:
            self.reply(call, error)
        except Exception:
            log.exception("%s failed", call.method)
            self.reply(call, McpError(INTERNAL_ERROR, "Internal error"))
        else:
            if isinstance(outcome, dict | bytes):
                self.reply(call, outcome)
            else:
                self.start_task(call, outcome)

    def start_task(self, call: Call, outcome: Awaitable[Json]) -> None:
        """Answer a request once the outcome is available.

        From Python 3.12, a handler that never waits finishes before this method returns.
        """
        work = self._finish(call, outcome)
        if sys.version_info >= (3, 12):
            task = asyncio.Task(work, loop=self._loop, eager_start=True)
        else:
            task = self._loop.create_task(work)
        if not task.done():
            self._tasks[call] = task

    # -- calls that a thread answers (transports/direct_calls.py) ---------------------------------------------------------

    @property
    def has_one_request(self) -> bool:
        """Return True if only the latest request is in flight."""
        return not self._tasks and len(self.connection.in_flight) <= 1

    def fast_path_runner(self, call: Call) -> Callable[[], Json | McpError] | None:
        """Return a function that runs a tool call in any thread, or None if `handle` must run the call."""
        return self._server.fast_path_runner(call, self)

    async def _finish(self, call: Call, outcome: Awaitable[Json]) -> None:
        try:
            answer: Json | McpError = await answer_or_error(call, outcome)
            if call.progressed is not None and self.progress_gap:
                await asyncio.sleep(call.progressed + self.progress_gap - self._loop.time())
        except asyncio.CancelledError:
            if self.connection.in_flight.get(call.id) is not call:  # the client canceled the call, so send no response
                raise
            answer = McpError(INTERNAL_ERROR, "The handler was cancelled")
        except GeneratorExit:  # the code that the handler awaits raised GeneratorExit
            log.error("%s failed: GeneratorExit", call.method)
            answer = McpError(INTERNAL_ERROR, "Internal error")
        finally:
            # Remove the task here, because a callback of the task would cost one event loop iteration per call.
            self._tasks.pop(call, None)
        if self.connection.in_flight.get(call.id) is call:
            self.reply(call, answer)

    def reply(self, call: Call, outcome: Json | bytes | McpError) -> None:
        """Send the response to a request."""
        try:
            data = self.connection.answer(call, outcome)
        except Exception:  # usually a ValueError; other errors are possible if the value changes during encoding
            log.exception("the result of %s cannot be converted to JSON", call.method)
            data = self.connection.answer(
                call, McpError(INTERNAL_ERROR, "Internal error: the result cannot be converted to JSON")
            )
        batch = self._batches.pop(call, None) if self._batches else None
        if batch is None:
            self.deliver(call, data)
        else:
            batch.add(data)

    def _cancel(self, request_id: RequestId) -> None:
        call = self.connection.in_flight[request_id]
        self.connection.forget(call)
        batch = self._batches.pop(call, None)
        if batch is not None:
            batch.add(None)
        self.on_cancelled(call)
        task = self._tasks.get(call)
        if task is not None:
            task.cancel()
            # needed if the task was canceled before its start
            task.add_done_callback(lambda _: self._tasks.pop(call, None))

    def _start_batch(self, batch: Batch) -> None:
        calls = [event for event in batch.events if type(event) is Call]
        refusals = [event.message for event in batch.events if type(event) is ErrorReply and event.message is not None]
        if calls or refusals:
            reply = BatchReply(self._batch_sender(), len(calls) + len(refusals))
            for call in calls:
                self._batches[call] = reply
            for message in refusals:
                reply.add(jsonrpc.encode(message))
        for event in batch.events:
            if type(event) is not ErrorReply:
                self.handle(event)

    def _batch_sender(self) -> Callable[[bytes], None]:
        return self._send

    # -- reply channel of all requests -----------------------------------------------------------------------------

    @property
    def session_channel(self) -> SessionChannel | None:
        """Return this session."""
        return self

    def notify(self, method: str, params: Json, revision: Revision | None = None) -> None:
        """Send a notification. Without `revision`, use the session's handshake revision."""
        self._send(jsonrpc.encode(jsonrpc.notification_message(self._wire(method, revision), params)))

    def _wire(self, method: str, revision: Revision | None) -> str:
        if revision is None:
            peer = self.connection.peer
            return method if peer is None else peer.revision.wire(method)
        return revision.wire(method)

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and wait for the client's result."""
        return await self.ask(method, params, self._send)

    async def ask(self, method: str, params: Json, send: Callable[[bytes], None]) -> Json:
        """Send a request with `send`, and wait for the result. Cancel the request if the caller stops waiting."""
        if not self._can_ask:
            raise _cannot_ask()
        request_id, data = self.connection.request(method, params)
        future = self._waiting[request_id] = self._loop.create_future()
        send(data)
        limit = self._server.question_timeout
        try:
            async with asyncio.timeout(limit):
                result: Json = await future
            return result
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # The call or a timeout canceled the request. The session continues.
            if task is not None and task.cancelling():
                self._withdraw(request_id, "no longer needed")
            raise
        except TimeoutError:
            self._withdraw(request_id, f"not answered within {limit} seconds")
            raise McpError(INTERNAL_ERROR, f"The client did not answer {method} within {limit} seconds") from None
        finally:
            del self._waiting[request_id]
            self.connection.abandon(request_id)

    def _withdraw(self, request_id: RequestId, reason: str) -> None:
        self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    def _resolve(self, answer: Response) -> None:
        future = self._waiting.get(answer.id)
        if future is not None and not future.done():
            if answer.error is not None:
                future.set_exception(answer.error)
            else:
                future.set_result(answer.result)

    def close_stream(self, retry: int | None) -> None:
        """Do nothing, because the stream belongs to the session."""

    def publish(self, method: str, params: Json) -> None:
        """Send a change notification if this is a handshake session with a matching subscription."""
        if self.connection.peer is not None and (method != UPDATED or params["uri"] in self.subscriptions):
            self.notify(method, params)

    # -- shutdown ------------------------------------------------------------------------------------------------

    def refuse_requests(self, *, questions: bool = False) -> None:
        """Refuse new requests at shutdown. Also fail all questions to the client, unless `questions` is True."""
        self.connection.limit = 0
        if not questions:
            self._can_ask = False
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(_cannot_ask())

    async def wait_idle(self) -> None:
        """Wait until no request is in flight."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _wait(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)

    async def close(self, grace: float) -> None:
        """Wait for at most `grace` seconds until handlers finish. Answer the other requests with an error."""
        self._server.hub.discard(self)
        for future in self._waiting.values():
            future.cancel()
        await self._wait(grace)
        for call, task in list(self._tasks.items()):
            self.reply(call, CUT_OFF)
            task.cancel()
        await self._wait(grace)


def _cannot_ask() -> McpError:
    return McpError(INTERNAL_ERROR, "The server is shutting down; the client cannot be asked now")


class BatchReply:
    """Collector of the responses to a batch, which are sent as one array."""

    def __init__(self, send: Callable[[bytes], None], count: int) -> None:
        self._send = send
        self._missing = count
        self._parts: list[bytes] = []

    def add(self, part: bytes | None) -> None:
        """Add one response, or None for a call without a response."""
        if part is not None:
            self._parts.append(part)
        self._missing -= 1
        if not self._missing and self._parts:
            self._send(b"[" + b",".join(self._parts) + b"]")


async def answer_or_error(call: Call, outcome: Awaitable[Json]) -> Json | McpError:
    """Return the result of a call, or any failure as an error for the client."""
    try:
        return await outcome
    except McpError as error:
        return error
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # other errors also need a response, because callers must not wait forever
        if is_keyboard_interrupt(error):
            raise
        log.exception("%s failed", call.method)
        return McpError(INTERNAL_ERROR, "Internal error")
