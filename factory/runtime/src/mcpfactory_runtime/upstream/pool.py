"""Keep-alive connections to APIs: a free one is found without looking at all the others.

httpcore's own pool asks every connection's socket whether it is readable whenever a request begins or ends; with thirty
calls in flight that is half of the time that a call takes. The connections themselves are httpcore's.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import httpcore

__all__ = ["Pool"]

_KEEP: Final = 30.0  # seconds that a connection is kept without a request

Origin = tuple[bytes, bytes, int | None]


class Pool:
    """Connections of one event loop.

    Args:
        trust: for https.
        backend: resolves and dials.
        limit: how many requests are under way at once, and how many free connections are kept.
    """

    def __init__(self, trust: ssl.SSLContext, backend: httpcore.AsyncNetworkBackend, limit: int) -> None:
        self._trust = trust
        self._backend = backend
        self._limit = limit
        self._slots = asyncio.Semaphore(limit)
        self._free: defaultdict[Origin, list[httpcore.AsyncHTTPConnection]] = defaultdict(list)

    async def send(self, request: httpcore.Request) -> httpcore.Response:
        """Return the response, whose stream has to be closed. Raises what httpcore raises."""
        await self._slots.acquire()
        try:
            free = self._free[request.url.origin.scheme, request.url.origin.host, request.url.origin.port]
            connection = await _first_usable(free) or httpcore.AsyncHTTPConnection(
                request.url.origin, self._trust, keepalive_expiry=_KEEP, network_backend=self._backend
            )
            response = await connection.handle_async_request(request)
        except BaseException:
            self._slots.release()
            raise

        async def give_back() -> None:
            self._slots.release()
            if connection.is_idle():
                free.append(connection)
                if sum(map(len, self._free.values())) > self._limit:
                    await next(filter(None, self._free.values())).pop(0).aclose()

        response.stream = _Stream(response.stream, give_back)
        return response

    async def aclose(self) -> None:
        """Close the connections that are free."""
        for connections in self._free.values():
            while connections:
                await connections.pop().aclose()


async def _first_usable(free: list[httpcore.AsyncHTTPConnection]) -> httpcore.AsyncHTTPConnection | None:
    """Return the connection used last, for the API is the least likely to have closed it; those that it has closed go."""
    while free:
        connection = free.pop()
        if not connection.has_expired():
            return connection
        await connection.aclose()
    return None


class _Stream:
    """A response's body; closing it gives the connection back, once."""

    def __init__(self, stream: Any, give_back: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._give_back: Callable[[], Awaitable[None]] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            await self._stream.aclose()
        finally:
            if give_back is not None:
                await give_back()
