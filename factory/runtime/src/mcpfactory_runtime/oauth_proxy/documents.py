"""Documents that describe clients, at the URL that is a client's id: fetched within bounds, since anybody may name one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

from mcpfactory_runtime.oauth_proxy.clients import ClientRefusedError, read_document

__all__ = ["ClientDocuments"]

Described = tuple[str, tuple[str, ...]]

log = logging.getLogger("mcpfactory_runtime")

_KEPT: Final = 300.0  # seconds that a document counts, or its absence
_MOST: Final = 200  # documents that are kept
_MOST_FETCHES: Final = 30  # in a minute
_AT_ONCE: Final = 4


class ClientDocuments:
    """What is known of clients by their documents. Event loop only.

    Args:
        fetch: takes a URL that anybody may have chosen, returns the document; raises OSError. None: from public addresses.
        clock: seconds.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[bytes]] | None, clock: Callable[[], float]) -> None:
        self._fetch = fetch or _fetch_public
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Described | None]] = OrderedDict()
        self._fetched: deque[float] = deque(maxlen=_MOST_FETCHES)
        self._busy = asyncio.Semaphore(_AT_ONCE)

    async def find(self, client_id: str) -> Described | None:
        """Return name and redirect URIs of a client; None where its document says none, or cannot be had now."""
        now = self._clock()
        until, described = self._known.get(client_id, (0.0, None))
        exhausted = len(self._fetched) == _MOST_FETCHES and self._fetched[0] > now - 60.0
        if until > now or exhausted:  # then what was known some time ago is better than nothing
            return described
        self._fetched.append(now)
        async with self._busy:
            described = await self._read(client_id)
        self._known[client_id] = (now + _KEPT, described)
        self._known.move_to_end(client_id)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return described

    async def _read(self, client_id: str) -> Described | None:
        try:
            return read_document(client_id, json.loads(await self._fetch(client_id)))
        except (OSError, ValueError, ClientRefusedError) as error:
            log.warning("the document of a client: %r", str(error)[:300])
            return None


async def _fetch_public(url: str) -> bytes:
    from mcpfactory_runtime.client.http import fetch_public  # noqa: PLC0415 - the HTTP client is for those who fetch

    return await fetch_public(url)
