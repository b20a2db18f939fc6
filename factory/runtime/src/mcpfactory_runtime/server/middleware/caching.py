"""Results of tools, kept for a while."""

from __future__ import annotations

import copy
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from mcpfactory_runtime.protocol.jsonrpc import decode, encode
from mcpfactory_runtime.server.audience import READ_BY_CODE
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.store.base import StoreError

if TYPE_CHECKING:
    from mcpfactory_runtime.store.base import SharedStore

__all__ = ["Caching"]

Json = dict[str, Any]
_Key = tuple[str, str, bool, bytes]
"""Of a result: tool, principal, whether code reads it, arguments."""

_LARGEST: Final = 1 << 20  # bytes of a result that goes into a store

log = logging.getLogger("mcpfactory_runtime")


class Caching(Middleware):
    """Answers a call from the result of an equal one. Failures are not kept.

    Args:
        seconds: how long a result is kept.
        tools: names; default: tools that say they are read-only.
        shared: one cache for all; else each principal has results of its own, and without authorization all share them.
        limit: results that are kept by this process; beyond, the one unused for longest goes.
        together: processes with a store answer from each other's results, which are there, up to 1 MiB each; the store forgets
            them by their time alone. Without a store it is as if it were left out.
        clock: seconds.
        now: seconds since the epoch, for results that processes share.
    """

    def __init__(
        self,
        seconds: float = 60.0,
        *,
        tools: Iterable[str] = (),
        shared: bool = False,
        limit: int = 1000,
        together: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._seconds = seconds
        self._tools = frozenset(tools)
        self._shared = shared
        self._limit = limit
        self._clock = clock
        self._together = together
        self._now = now
        self._cleared = float("-inf")
        self._kept: OrderedDict[_Key, tuple[float, Json]] = OrderedDict()

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Answer from the cache, or keep the answer."""
        if not (call.name in self._tools if self._tools else call.read_only):
            return await call_next(call)
        principal = "" if self._shared else str(call.context.principal or "")
        key = (call.name, principal, READ_BY_CODE.get(), to_json(_ordered(call.arguments)))
        store = call.context.server.store if self._together else None
        found = self._known(key) or (None if store is None else await self._told(store, call, key))
        if found is not None:
            return found
        since, at = self._clock(), self._now()
        result = await call_next(call)
        if not result.get("isError") and not (store is not None and await self._tell(store, call, key, (at, result))):
            self._keep(key, since, result)
        return result

    def clear(self) -> None:
        """Forget everything that was kept until now. Other processes go on with what they have."""
        self._kept.clear()
        self._cleared = self._now()

    # -- in this process -----------------------------------------------------------------------------------------

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

    # -- in the store --------------------------------------------------------------------------------------------

    async def _told(self, store: SharedStore, call: ToolRequest, key: _Key) -> Json | None:
        """Return the result that some process kept in the store, if it is not too old."""
        try:
            data = await store.get(_space(call, key), "")
        except StoreError as error:
            log.warning("results of %s are kept by this process alone: %s", call.name, error)
            return None
        if data is None:
            return None
        kept: Json = decode(data)
        fresh = self._cleared < kept["at"] and self._now() < kept["at"] + self._seconds
        result: Json = kept["result"]
        return result if fresh else None

    async def _tell(self, store: SharedStore, call: ToolRequest, key: _Key, found: tuple[float, Json]) -> bool:
        """Keep a result, and since when it holds, in the store; return whether it is there."""
        data = encode({"at": found[0], "result": found[1]})
        if len(data) > _LARGEST:
            return False
        try:
            return await store.write(_space(call, key), [("", data)], seconds=self._seconds)
        except StoreError as error:
            log.warning("a result of %s is kept by this process alone: %s", call.name, error)
            return False


def _space(call: ToolRequest, key: _Key) -> str:
    """Return the space of one result: of this tool of this version of this server, for these arguments."""
    server = call.context.server
    return f"cache/{sha256(repr((server.name, server.version, *key)).encode()).hexdigest()}"


def _ordered(value: Any) -> Any:
    """Return a JSON value with the members of objects in order, so that equal arguments have equal keys."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
