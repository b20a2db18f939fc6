"""How often one client may call a tool."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.rates import ROUNDING, Bucket, read_rate
from mcpfactory_runtime.server.shared_rates import take_shared
from mcpfactory_runtime.store.base import StoreError

__all__ = ["RateLimit"]

Json = dict[str, Any]

log = logging.getLogger("mcpfactory_runtime")

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
                return await take_shared(store, f"{call.name}\0{client}", rate, self._now)
            except StoreError as error:
                log.warning("the rate of %s is counted by this process alone: %s", call.name, error)
        key = (client, call.name)
        bucket = self._buckets.pop(key, None) or Bucket(*rate, self._clock)
        self._buckets[key] = bucket
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if bucket.take() else max(bucket.wait, ROUNDING)


def _client(context: Context) -> str:
    return str(context.principal or context.session_id or context.client_address or "")
