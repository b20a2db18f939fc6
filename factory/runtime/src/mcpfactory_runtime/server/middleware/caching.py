"""Results of tools, kept for a while."""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from pydantic_core import to_json

from mcpfactory_runtime.server.middleware.layers import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.results import READ_BY_CODE
from mcpfactory_runtime.types import Json

_Key = tuple[str, str, bool, bytes]
"""Cache key of a result: tool, principal, True if code reads it, arguments."""


class Caching(Middleware):
    """Middleware that answers a call with the cached result of an equal call. Failures are not cached.

    Args:
        seconds: lifetime of a result.
        tools: names; default: tools annotated as read-only.
        shared: one cache for all; otherwise each principal has separate results, and without authorization all share
            them.
        limit: maximum number of cached results; the least recently used one is evicted.
        clock: returns seconds.
    """

    def __init__(
        self,
        seconds: float = 60.0,
        *,
        tools: Iterable[str] = (),
        shared: bool = False,
        limit: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._tools = frozenset(tools)
        self._shared = shared
        self._limit = limit
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[float, Json]] = OrderedDict()

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Answer from the cache, or keep the answer."""
        if not (call.name in self._tools if self._tools else call.read_only):
            return await call_next(call)
        principal = "" if self._shared else str(call.context.principal or "")
        key = (call.name, principal, READ_BY_CODE.get(), to_json(_ordered(call.arguments)))
        found = self._known(key)
        if found is not None:
            return found
        since = self._clock()
        result = await call_next(call)
        if not result.get("isError"):
            self._keep(key, since, result)
        return result

    def clear(self) -> None:
        """Forget everything that was kept until now."""
        self._kept.clear()

    def _known(self, key: _Key) -> Json | None:
        found = self._kept.get(key)
        if found is None or self._clock() >= found[0]:
            return None
        self._kept.move_to_end(key)
        return copy.deepcopy(found[1])

    def _keep(self, key: _Key, since: float, result: Json) -> None:
        self._kept[key] = (since + self._seconds, copy.deepcopy(result))
        self._kept.move_to_end(key)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)


def _ordered(value: Any) -> Any:
    """Return a JSON value with the members of objects in order, so that equal arguments have equal keys."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
