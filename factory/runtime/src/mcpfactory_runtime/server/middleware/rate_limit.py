"""How often one client may call a tool."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.rates import Bucket, read_rate

__all__ = ["RateLimit"]

Json = dict[str, Any]

_CLIENTS: Final = 10_000  # that are remembered; beyond, the one that was quiet for longest is forgotten


class RateLimit(Middleware):
    """Refuses calls of a tool beyond a rate, with the time to wait. `Server(rates=…)` limits all calls together.

    Args:
        rates: tool → rate (`5/m`); "" for each tool that is not named.
        by: who one client is; default: the principal of the access token, else session, else address.
        clock: seconds.

    Raises:
        ValueError: what is no rate.
    """

    def __init__(
        self,
        rates: Mapping[str, str],
        *,
        by: Callable[[Context], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = {name: read_rate(f"rate of {name or 'each tool'}", rate) for name, rate in rates.items()}
        self._by = by or _client
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool, or refuse.

        Raises:
            ToolError: it was called too often.
        """
        rate = self._rates.get(call.name) or self._rates.get("")
        if rate is not None:
            bucket = self._bucket(call, rate)
            if not bucket.take():
                count, seconds = rate
                raise ToolError(
                    f"{call.name} may be called {count} times in {seconds} s; the next call may come in {ceil(bucket.wait)} s."
                )
        return await call_next(call)

    def _bucket(self, call: ToolRequest, rate: tuple[int, int]) -> Bucket:
        key = (self._by(call.context), call.name)
        bucket = self._buckets.pop(key, None) or Bucket(*rate, self._clock)
        self._buckets[key] = bucket
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return bucket


def _client(context: Context) -> str:
    return str(context.principal or context.session_id or context.client_address or "")
