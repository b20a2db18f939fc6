"""Requests and their answers over a channel: ids, timeouts, progress, what the server asks in between, and a transcript."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from itertools import count
from typing import Any, Final, Literal, Protocol

from mcpfactory_runtime.client.channel import ClientChannel, ConnectionLostError, HttpError, ProtocolError, end_tasks
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.protocol.jsonrpc import error_message, error_of, notification_message, request_message
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.types import Json

Progress = Callable[[Json], Any]
Answerer = Callable[[str, Json], Awaitable[Json]]
Listener = Callable[[str, Json], Any]

_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message. `message` is the decoded JSON, text that is not JSON, or None for an HTTP exchange without a body.

    `http` has `status` and `headers` of the response for messages received over HTTP; request headers that carry
    credentials are never stored.
    """

    direction: Literal["sent", "received"]
    message: Any
    http: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        entry: dict[str, Any] = {"direction": self.direction, "message": self.message}
        return {**entry, "http": self.http} if self.http else entry


class Transcript(deque[TranscriptEntry]):
    """The latest entries, oldest first."""

    def sent(self, message: Any) -> None:
        """Note a message of ours."""
        if self.maxlen != 0:
            self.append(TranscriptEntry("sent", message))

    def received(self, message: Any, http: dict[str, Any] | None = None) -> None:
        """Note a message of the server's."""
        if self.maxlen != 0:
            self.append(TranscriptEntry("received", message, http or {}))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries as JSON data."""
        return [entry.to_dict() for entry in self]


class Watcher(Protocol):
    """A receiver of notifications as they arrive. The methods do not block."""

    def notified(self, method: str, params: Json) -> None:
        """Take a notification."""

    def ended(self, error: Exception | None) -> None:
        """Note that none will come any more."""


class ClientSession:
    """The client's side of a message stream. `watchers` see every notification.

    Args:
        channel: opened by `open`.
        answer: makes the result for a request of the server; raises McpError.
        listen: receives every notification.
        headers: what a message needs as HTTP headers.
        revision: the revision that is spoken now; it knows what methods are called on the wire.
        kept: how many messages the transcript keeps.
    """

    def __init__(
        self,
        channel: ClientChannel,
        answer: Answerer,
        listen: Listener,
        headers: Callable[[Json], Mapping[str, str]],
        revision: Callable[[], Revision],
        *,
        kept: int,
    ) -> None:
        self.channel = channel
        self.transcript = Transcript(maxlen=kept)
        self.watchers: set[Watcher] = set()
        self._answer = answer
        self._listen = listen
        self._headers = headers
        self._revision = revision
        self._ids = count(1)
        self._pending: dict[int, asyncio.Future[Json]] = {}
        self._progress: dict[int, Progress] = {}
        self._limits: dict[int, tuple[asyncio.Timeout, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: Exception | None = None

    async def open(self) -> None:
        """Connect the channel.

        Raises:
            ConnectionLostError: the server is gone.
        """
        await self.channel.open(self)

    async def aclose(self) -> None:
        """Close the channel and fail all pending requests."""
        await end_tasks(self._tasks)
        await self.channel.aclose()
        self.lost(ProtocolError("the client was closed"))

    @property
    def ended(self) -> Exception | None:
        """Why nothing comes any more; None while something may."""
        return self._lost

    def next_id(self) -> int:
        """Return the id of the next request."""
        return next(self._ids)

    async def request(
        self,
        request_id: int,
        method: str,
        params: Json | None,
        *,
        timeout: float | None,  # noqa: ASYNC109 - the session tells the server that it no longer waits
        progress: Progress | None = None,
        cancel: bool = True,
    ) -> Json:
        """Send a request and return its result.

        Args:
            request_id: from `next_id`.
            method: the method.
            params: None leaves the member out.
            timeout: seconds; None waits forever.
            progress: receives the params of the request's progress notifications.
            cancel: notify the server if the request is abandoned.

        Raises:
            McpError: the server returned an error.
            TimeoutError: the response did not arrive in time.
            ConnectionLostError, HttpError: the server cannot answer.
        """
        if self._lost is not None:
            raise self._lost
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = future
        if progress is not None:
            self._progress[request_id] = progress
        try:
            message = request_message(request_id, self._revision().wire(method), params)
            if timeout is None:
                return await self._exchange(message, future)
            async with asyncio.timeout(timeout) as limit:
                self._limits[request_id] = limit, timeout
                return await self._exchange(message, future)
        except (TimeoutError, asyncio.CancelledError) as error:
            known = self.channel.forget(request_id)
            notify = cancel and not known and self._lost is None
            if isinstance(error, TimeoutError):
                if notify:  # must be the next message sent
                    with suppress(ConnectionLostError, HttpError):
                        await self._notify_cancelled(request_id)
                raise TimeoutError(f"no answer to {method} within {timeout:g} seconds") from None
            if notify:
                self._spawn(self._notify_cancelled(request_id))
            raise
        finally:
            self._pending.pop(request_id, None)
            self._progress.pop(request_id, None)
            self._limits.pop(request_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # mark as retrieved, even if the caller was canceled

    async def _exchange(self, message: Json, future: asyncio.Future[Json]) -> Json:
        await self.send(message)
        if future.done():  # the answer overtook the end of sending it: notifications before it come first
            await asyncio.sleep(0)
        return await future

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        await self.send(notification_message(self._revision().wire(method), params))

    async def send(self, message: Json) -> None:
        """Send any message."""
        self.transcript.sent(message)
        await self.channel.send(message, self._headers(message) if self.channel.http else _NO_HEADERS)

    # --- what comes back (Receiver) ---

    def received(self, message: Any, http: Json | None = None) -> None:
        """Take a message of the server's."""
        self.transcript.received(message, http)
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict):
                self._dispatch(one)

    def failed(self, request_id: Any, error: Exception) -> None:
        """Fail one request."""
        future = self._pending.get(request_id)
        if future is not None and not future.done():
            future.set_exception(error)

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop a request's clock, or restart it."""
        if request_id in self._limits:
            limit, timeout = self._limits[request_id]
            limit.reschedule(None if delayed else asyncio.get_running_loop().time() + timeout)

    def lost(self, error: Exception) -> None:
        """Fail every request."""
        if self._lost is None:
            self._lost = error
        for future in self._pending.values():
            if not future.done():
                future.set_exception(self._lost)
        for watcher in self.watchers:
            watcher.ended(self._lost)

    def _dispatch(self, message: Json) -> None:
        method, request_id = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            rows = self._revision().rows
            method = rows["client_requests" if "id" in message else "notifications"].get(method, method)
        if isinstance(method, str) and "id" in message:
            self._spawn(self._respond(request_id, method, params))
        elif isinstance(method, str):
            if method == "notifications/progress":
                callback = self._progress.get(params.get("progressToken", -1))
                if callback is not None:
                    self._spawn(_call(callback, params))
            for watcher in self.watchers:
                watcher.notified(method, params)
            self._spawn(_call(self._listen, method, params))
        elif "error" in message:
            self.failed(request_id, error_of(message))
        else:
            future = self._pending.get(request_id) if type(request_id) is int else None
            if future is not None and not future.done():
                result = message.get("result")
                if isinstance(result, dict):
                    future.set_result(result)
                else:
                    future.set_exception(ProtocolError("the server sent a response without a result object"))

    async def _respond(self, request_id: Any, method: str, params: Json) -> None:
        try:
            result = await self._answer(method, params)
        except McpError as error:
            message = error_message(request_id, error)
        except Exception as error:  # noqa: BLE001 - a handler's bug must reach the server as an answer, or it waits for ever
            message = error_message(
                request_id, McpError(INTERNAL_ERROR, f"the client's handler failed: {type(error).__name__}")
            )
        else:
            message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        await self.send(message)

    async def _notify_cancelled(self, request_id: int) -> None:
        await self.notify("notifications/cancelled", {"requestId": request_id, "reason": "the client no longer waits"})

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a lost connection is reported to callers, not to the event loop


async def _call(function: Callable[..., Any], *arguments: Any) -> None:
    result = function(*arguments)
    if isawaitable(result):
        await result
