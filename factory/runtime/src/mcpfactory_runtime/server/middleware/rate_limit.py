"""How often one client may call a tool."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.rates import Bucket, read_rate
from mcpfactory_runtime.store.base import Expected, StoreError

if TYPE_CHECKING:
    from mcpfactory_runtime.store.base import SharedStore

__all__ = ["RateLimit"]

Json = dict[str, Any]

log = logging.getLogger("mcpfactory_runtime")

_ATTEMPTS: Final = 100  # to be the one who takes a token while others take some
_ROUNDING: Final = 1e-6  # of a token: who waited as long as it should is not refused by a last digit
_CLIENTS: Final = 10_000  # that are remembered; beyond, the one that was quiet for longest is forgotten


class RateLimit(Middleware):
    """Refuses calls of a tool beyond a rate, with the time to wait. `Server(rates=…)` limits all calls together.

    Args:
        rates: tool → rate (`5/m`); "" for each tool that is not named.
        by: who one client is; default: the principal of the access token, else session, else address.
        clock: seconds.
        now: seconds since the epoch, for processes that share a store and so count together.

    Raises:
        ValueError: what is no rate.
    """

    def __init__(
        self,
        rates: Mapping[str, str],
        *,
        by: Callable[[Context], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._rates = {name: read_rate(f"rate of {name or 'each tool'}", rate) for name, rate in rates.items()}
        self._by = by or _client
        self._clock = clock
        self._now = now
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool, or refuse.

        Raises:
            ToolError: it was called too often.
        """
        rate = self._rates.get(call.name) or self._rates.get("")
        if rate is not None:
            wait = await self._take(call, rate)
            if wait > 0:
                count, seconds = rate
                raise ToolError(
                    f"{call.name} may be called {count} times in {seconds} s; the next call may come in {ceil(wait)} s."
                )
        return await call_next(call)

    async def _take(self, call: ToolRequest, rate: tuple[int, int]) -> float:
        """Take a token of the caller, and return 0; without one the seconds to wait. Counted alone where the store fails."""
        client, store = self._by(call.context), call.context.server.store
        if store is not None:
            try:
                return await _take_shared(store, f"{call.name}\0{client}", rate, self._now)
            except StoreError as error:
                log.warning("the rate of %s is counted by this process alone: %s", call.name, error)
        key = (client, call.name)
        bucket = self._buckets.pop(key, None) or Bucket(*rate, self._clock)
        self._buckets[key] = bucket
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if bucket.take() else max(bucket.wait, _ROUNDING)


async def _take_shared(store: SharedStore, name: str, rate: tuple[int, int], clock: Callable[[], float]) -> float:
    """Take a token of a bucket that several processes share, and return 0; without one the seconds to wait.

    The bucket is forgotten when it would be full again, so that a missing one is full.

    Raises:
        StoreError: the store cannot be used.
    """
    count, seconds = rate
    digest = sha256(f"{name}\0{count}/{seconds}".encode()).hexdigest()
    space = f"rate/{digest}"
    for _ in range(_ATTEMPTS):
        kept, now = await store.get(space, ""), clock()
        left, seen = (float(count), now) if kept is None else (float(word) for word in kept.split())
        left = min(count, left + max(now - seen, 0.0) * count / seconds)
        if left < 1 - _ROUNDING:
            return (1 - left) * seconds / count
        state = f"{left - 1!r} {max(now, seen)!r}".encode()
        if await store.write(space, [("", state)], seconds=seconds, expected=Expected("", kept)):
            return 0.0
    raise StoreError(f"{_ATTEMPTS} others took tokens meanwhile")


def _client(context: Context) -> str:
    return str(context.principal or context.session_id or context.client_address or "")
