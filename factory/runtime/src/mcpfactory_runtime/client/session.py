"""Session of a client: requests and responses, handlers for the server's requests, subscriptions.

In revisions without `subscriptions/listen`, a subscription uses `resources/subscribe` and unsolicited notifications.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from itertools import count
from typing import Any, Final, Literal, Protocol

from mcpfactory_runtime.client.channel import ClientChannel, ConnectionLostError, HttpError, ProtocolError, cancel_tasks
from mcpfactory_runtime.protocol.connection import META_SUBSCRIPTION
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.protocol.jsonrpc import error_in_response, error_message, notification_message, request_message
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.types import Json

Progress = Callable[[Json], Any]
Answerer = Callable[[str, Json], Awaitable[Json]]
Listener = Callable[[str, Json], Any]

_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message. `message` is JSON data, text that is not JSON, or None for an HTTP response without a body.

    For a message received over HTTP, `http` has the `status` and the `headers` of the response. Request headers may
    contain credentials, so they are never stored.
    """

    direction: Literal["sent", "received"]
    message: Any
    http: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        entry: dict[str, Any] = {"direction": self.direction, "message": self.message}
        return {**entry, "http": self.http} if self.http else entry


class Transcript(deque[TranscriptEntry]):
    """The newest messages, oldest first."""

    def sent(self, message: Any) -> None:
        """Add a sent message."""
        if self.maxlen != 0:
            self.append(TranscriptEntry("sent", message))

    def received(self, message: Any, http: dict[str, Any] | None = None) -> None:
        """Add a received message."""
        if self.maxlen != 0:
            self.append(TranscriptEntry("received", message, http or {}))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries as JSON data."""
        return [entry.to_dict() for entry in self]


class NotificationReceiver(Protocol):
    """Receiver of notifications."""

    def notified(self, method: str, params: Json) -> None:
        """Handle a notification."""

    def ended(self, error: Exception | None) -> None:
        """Handle the end of the notifications. `error` is None after a normal end."""


class ClientSession:
    """The client's side of a connection. `watchers` receive each notification.

    `answer` returns the result for a request of the server, or raises McpError.
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
        self.watchers: set[NotificationReceiver] = set()
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
        """Connect the channel, or raise ConnectionLostError."""
        await self.channel.open(self)

    async def aclose(self) -> None:
        """Close the channel and fail all pending requests."""
        await cancel_tasks(self._tasks)
        await self.channel.aclose()
        self.lost(ProtocolError("the client was closed"))

    @property
    def ended(self) -> Exception | None:
        """Return the error that ended the connection, or None while it is open."""
        return self._lost

    async def renew_subscriptions(self) -> None:
        """Repeat the subscriptions in a new session of the handshake lifecycle."""
        for watcher in tuple(self.watchers):
            if isinstance(watcher, Subscription):
                await watcher.renew()

    def next_id(self) -> int:
        """Return the id of the next request."""
        return next(self._ids)

    async def request(
        self,
        request_id: int,
        method: str,
        params: Json | None,
        *,
        timeout: float | None,  # noqa: ASYNC109 - a timeout also notifies the server
        progress: Progress | None = None,
        cancel: bool = True,
    ) -> Json:
        """Send a request and return its result. A `timeout` of None means no limit.

        If the caller abandons the request and `cancel` is True, the client notifies the server. The request may raise
        McpError, TimeoutError, ConnectionLostError or HttpError.
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
                if notify:  # send no other message between the timeout and the cancellation
                    with suppress(ConnectionLostError, HttpError):
                        await self._notify_cancelled(request_id)
                raise TimeoutError(f"no response to {method} within {timeout:g} seconds") from None
            if notify:
                self._spawn(self._notify_cancelled(request_id))
            raise
        finally:
            self._pending.pop(request_id, None)
            self._progress.pop(request_id, None)
            self._limits.pop(request_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # mark the exception as retrieved, even if the caller was canceled

    async def _exchange(self, message: Json, future: asyncio.Future[Json]) -> Json:
        await self.send(message)
        # The response arrived before send() returned, so let the receiver handle earlier notifications first.
        if future.done():
            await asyncio.sleep(0)
        return await future

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        await self.send(notification_message(self._revision().wire(method), params))

    async def send(self, message: Json) -> None:
        """Send any message."""
        self.transcript.sent(message)
        await self.channel.send(message, self._headers(message) if self.channel.http else _NO_HEADERS)

    # --- received messages (Receiver) ---

    def received(self, message: Any, http: Json | None = None) -> None:
        """Handle a received message."""
        self.transcript.received(message, http)
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict):
                self._dispatch(one)

    def failed(self, request_id: Any, error: Exception) -> None:
        """End one request with an error."""
        future = self._pending.get(request_id)
        if future is not None and not future.done():
            future.set_exception(error)

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop or restart the timeout of a request."""
        if request_id in self._limits:
            limit, timeout = self._limits[request_id]
            limit.reschedule(None if delayed else asyncio.get_running_loop().time() + timeout)

    def lost(self, error: Exception) -> None:
        """Fail all pending requests."""
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
            self.failed(request_id, error_in_response(message))
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
        except Exception as error:  # noqa: BLE001 - the server must get a response even after a bug in a handler
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
            task.exception()  # mark the exception as retrieved; callers report a lost connection


async def _call(function: Callable[..., Any], *arguments: Any) -> None:
    result = function(*arguments)
    if isawaitable(result):
        await result


def accept_defaults(params: Json) -> Json:
    """Accept an elicitation form with the default values of its fields, as a handler for `elicitation=`.

    Fields without a default are omitted. A request to open a URL is declined.
    """
    properties = (params.get("requestedSchema") or {}).get("properties")
    if not isinstance(properties, dict):
        return {"action": "decline"}
    fields = {name: field for name, field in properties.items() if isinstance(field, dict) and "default" in field}
    return {"action": "accept", "content": {name: field["default"] for name, field in fields.items()}}


class Handlers:
    """Handlers for the server's requests. A capability is declared only if it has a handler."""

    def __init__(
        self,
        elicitation: Callable[[Json], Any] | None = None,
        sampling: Callable[[Json], Any] | None = None,
        roots: Sequence[Json] | Callable[[], Any] | None = None,
    ) -> None:
        self._by_method: dict[str, Callable[[Json], Any]] = {}
        if elicitation is not None:
            self._by_method["elicitation/create"] = elicitation
        if sampling is not None:
            self._by_method["sampling/createMessage"] = sampling
        if callable(roots):
            self._by_method["roots/list"] = lambda _params: roots()
        elif roots is not None:
            self._by_method["roots/list"] = lambda _params: list(roots)

    def capabilities(self, revision: Revision) -> Json:
        """Return the capabilities to declare to a server that uses `revision`."""
        found: Json = {}
        for method, name in (
            ("elicitation/create", "elicitation"),
            ("sampling/createMessage", "sampling"),
            ("roots/list", "roots"),
        ):
            if method in self._by_method and name in revision.client_capabilities:
                found[name] = {"form": {}} if name == "elicitation" and "url" in revision.elicitation_modes else {}
        return found

    async def answer(self, method: str, params: Json) -> Json:
        """Return the result for a request, or raise McpError if the request has no handler."""
        handler = self._by_method.get(method)
        if handler is None:
            raise McpError(METHOD_NOT_FOUND, f"the client does not support {method}")
        result = handler(params)
        if isawaitable(result):
            result = await result
        return {"roots": list(result)} if method == "roots/list" else dict(result)


_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
# Member of the filter → notification (basic/patterns/subscriptions).
_KINDS: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


def subscription_filter(tools: bool, prompts: bool, resources: bool, uris: Iterable[str]) -> Json:
    """Return a filter for `subscriptions/listen`."""
    kinds = {"toolsListChanged": tools, "promptsListChanged": prompts, "resourcesListChanged": resources}
    found: Json = {name: True for name, wanted in kinds.items() if wanted}
    listed = list(uris)
    return {**found, "resourceSubscriptions": listed} if listed else found


class Subscription:
    """Change notifications in order of arrival; returned by `Client.listen`.

    >>> async with client.listen(tools=True) as changes:
    ...     async for method, params in changes:
    ...         print(method)

    The loop ends when the server ends the subscription. If an error ended the subscription, the loop raises the error.
    `async with` may raise the errors of a request. `honoured` is the part of the filter that the server accepted. In
    the handshake lifecycle, `honoured` is the whole filter of the client.
    """

    def __init__(self, session: ClientSession, wanted: Json, listen: Json | None, timeout: float | None) -> None:
        self.honoured = wanted
        self._session = session
        self._listen = listen
        self._timeout = timeout
        self._methods = {_KINDS[name] for name in wanted if name in _KINDS}
        self._uris: list[str] = wanted.get("resourceSubscriptions", [])
        self._queue: asyncio.Queue[tuple[str, Json] | None] = asyncio.Queue()
        self._request: asyncio.Task[Json] | None = None
        self._request_id = session.next_id()
        self._error: Exception | None = None

    async def __aenter__(self) -> Subscription:
        self._session.watchers.add(self)
        try:
            if self._listen is not None:
                await self._start(self._listen)
            for uri in self._uris if self._listen is None else ():
                await self._request_for("resources/subscribe", uri)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> tuple[str, Json]:
        item = await self._queue.get()
        if item is not None:
            return item
        self._queue.put_nowait(None)  # later calls must also end
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the subscription, and notify the server."""
        if self not in self._session.watchers:
            return
        self._session.watchers.discard(self)
        if self._request is not None:
            self._request.cancel()
            await asyncio.gather(self._request, return_exceptions=True)
        for uri in self._uris if self._listen is None else ():
            with suppress(McpError, TimeoutError, ConnectionLostError, HttpError, ProtocolError):
                await self._request_for("resources/unsubscribe", uri)

    def notified(self, method: str, params: Json) -> None:
        """Queue a notification if it belongs to this subscription."""
        if self._listen is not None:
            meta = params.get("_meta")
            if isinstance(meta, dict) and meta.get(META_SUBSCRIPTION) == self._request_id:
                self._queue.put_nowait((method, params))
        elif method in self._methods or (method == UPDATED and params.get("uri") in self._uris):
            self._queue.put_nowait((method, params))

    def ended(self, error: Exception | None) -> None:
        """End the iteration, with `error` unless it is None."""
        self._error = self._error or error
        self._queue.put_nowait(None)

    async def renew(self) -> None:
        """Subscribe again in a new session, and report everything as changed, because notifications may be lost."""
        try:
            for uri in self._uris:
                await self._request_for("resources/subscribe", uri)
        except (McpError, HttpError, TimeoutError, ConnectionLostError) as error:
            self.ended(error)
            return
        for method in sorted(self._methods):
            self._queue.put_nowait((method, {}))
        for uri in self._uris:
            self._queue.put_nowait((UPDATED, {"uri": uri}))

    async def _start(self, params: Json) -> None:
        listening = self._session.request(self._request_id, "subscriptions/listen", params, timeout=None)
        self._request = asyncio.create_task(listening)
        self._request.add_done_callback(self._finished)
        try:
            async with asyncio.timeout(self._timeout):
                first = await self._queue.get()
        except TimeoutError:
            raise TimeoutError(f"no acknowledgement of the subscription within {self._timeout:g} seconds") from None
        if first is None:
            raise self._error or ProtocolError("the server ended the subscription before acknowledging it")
        if first[0] != _ACKNOWLEDGED:
            raise ProtocolError(f"the first message of a subscription was {first[0]}, not {_ACKNOWLEDGED}")
        honoured = first[1].get("notifications")
        self.honoured = honoured if isinstance(honoured, dict) else {}

    def _finished(self, request: asyncio.Task[Json]) -> None:
        if not request.cancelled():
            error = request.exception()
            self.ended(error if isinstance(error, Exception) else None)

    async def _request_for(self, method: str, uri: str) -> None:
        await self._session.request(self._session.next_id(), method, {"uri": uri}, timeout=self._timeout)
