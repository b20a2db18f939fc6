"""Notifications of changes, the same in both lifecycles.

Uses `subscriptions/listen`, or `resources/subscribe` and the notifications that are sent anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from mcpfactory_runtime.client.channel import ConnectionLostError, HttpError, ProtocolError
from mcpfactory_runtime.client.session import ClientSession
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.peer import META_SUBSCRIPTION
from mcpfactory_runtime.types import Json

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
# member of the filter → notification  (basic/patterns/subscriptions)
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
    """Change notifications in their order; returned by `Client.listen`.

    >>> async with client.listen(tools=True) as changes:
    ...     async for method, params in changes:
    ...         print(method)

    The loop ends when the server ends the subscription, and raises what ended it otherwise. Entering raises what a
    request does. `honoured` is the part of the filter that the server agreed to (handshake lifecycle: the whole).
    """

    def __init__(self, session: ClientSession, wanted: Json, listen: Json | None, timeout: float | None) -> None:
        """`listen` has the params of `subscriptions/listen`; None where the revision has no such method."""
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
        self._queue.put_nowait(None)  # it stays ended
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Notify the server that the subscription has ended."""
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
        """Take a notification if it is ours."""
        if self._listen is not None:
            meta = params.get("_meta")
            if isinstance(meta, dict) and meta.get(META_SUBSCRIPTION) == self._request_id:
                self._queue.put_nowait((method, params))
        elif method in self._methods or (method == _UPDATED and params.get("uri") in self._uris):
            self._queue.put_nowait((method, params))

    def ended(self, error: Exception | None) -> None:
        """Note that nothing comes any more."""
        self._error = self._error or error
        self._queue.put_nowait(None)

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
            raise self._error or ProtocolError("the server ended the subscription before it acknowledged it")
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
