"""Middleware for rate limits, response size and retries."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import ceil
from typing import Final

from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.layers import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.rates import Bucket, read_rate
from mcpfactory_runtime.server.results import READ_BY_CODE
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.truncate import Cut, compact, shorten

_CLIENTS: Final = 10_000  # that are remembered; beyond, the one that was quiet for longest is forgotten


class RateLimit(Middleware):
    """Middleware that refuses tool calls above a rate, with the time to wait.

    `Server(rates=…)` limits all calls together.

    Args:
        rates: tool → rate (`5/m`), counted by each process; "" for each tool that is not named.
        by: identifies a client; default: the principal of the access token, else session, else address.
        clock: returns seconds.

    Raises:
        ValueError: a rate is invalid.
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


_NAMED: Final = 5  # cuts listed in the note


class ResponseLimit(Middleware):
    """Shortens results beyond a number of characters: lists lose items from their end, long texts their end, and a sentence says so.

    Images and the like that do not fit are left out. A result with an output schema would no longer fit that: it becomes a failure that
    asks for less. What another tool reads (`Context.call`) stays whole.

    Args:
        characters: the most that a result may have.
        tools: names; default: all tools.
    """

    def __init__(self, characters: int = 100_000, *, tools: Iterable[str] = ()) -> None:
        if characters < 1:
            raise ValueError(f"a limit of {characters} characters lets nothing through\nhint: 100_000, say")
        self._room = characters
        self._tools = frozenset(tools)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Shorten a result that is too large."""
        result = await call_next(call)
        if READ_BY_CODE.get() or (self._tools and call.name not in self._tools):
            return result
        size = sum(map(_size, result.get("content", ())))
        if size <= self._room:
            return result
        if result.get("structuredContent") is not None:
            if "outputSchema" in call.tool:
                return _failure(f"The answer has {size:,} characters; at most {self._room:,} are given. Ask for less.")
            value, cuts = shorten(result["structuredContent"], self._room)
            return {**result, "structuredContent": value, "content": [_text(compact(value)), _told(cuts)]}
        return {**result, "content": self._content(result["content"])}

    def _content(self, blocks: list[Json]) -> list[Json]:
        """Return the content that fits, in its order, and a note about omitted parts."""
        left, found, cuts, gone = self._room, [], [], 0
        for block in blocks:
            size = _size(block)
            if size <= left:
                found.append(block)
                left -= size
            elif block.get("type") == "text" and left > 0:
                text, cut = _shortened(block["text"], left)
                found.append({**block, "text": text})
                cuts += cut
                left = 0
            else:
                gone += 1
        cuts += [Cut("", len(blocks) - gone, len(blocks), "parts")] if gone else []
        return [*found, _told(cuts)]


def _shortened(text: str, room: int) -> tuple[str, list[Cut]]:
    """Return a text with less of it: as JSON, where it is some."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text[: max(room - 1, 0)]}…", [Cut("", max(room - 1, 0), len(text), "characters")]
    value, cuts = shorten(value, room)
    return compact(value), cuts


def _size(block: Json) -> int:
    """Return the characters of what a block holds."""
    resource = block.get("resource") or {}
    return sum(len(one.get(name, "")) for one in (block, resource) for name in ("text", "data", "blob"))


def _told(cuts: list[Cut]) -> Json:
    return _text(f"(shortened: {'; '.join(map(str, cuts[:_NAMED])) or 'parts'}. Ask for less to see the rest.)")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _failure(text: str) -> Json:
    return {"content": [_text(text)], "isError": True}


class Retry(Middleware):
    """Middleware that retries a tool call after one of the given exceptions; the wait doubles each time.

    Generated tools retry calls of their API themselves (docs/reference/upstream.md); this is for hand-written tools.

    Args:
        attempts: maximum number of calls.
        wait: seconds before the second one.
        on: exceptions after which to retry.
        tools: names; default: tools annotated as read-only or idempotent.
        sleep: waits the given number of seconds.
    """

    def __init__(
        self,
        attempts: int = 3,
        wait: float = 0.2,
        *,
        on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        tools: Iterable[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self._attempts = attempts
        self._wait = wait
        self._on = on
        self._tools = frozenset(tools)
        self._sleep = sleep

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool, again where that may help."""
        attempts = self._attempts if (call.name in self._tools if self._tools else call.idempotent) else 1
        for attempt in range(1, attempts):
            try:
                return await call_next(call)
            except self._on:
                await self._sleep(self._wait * 2 ** (attempt - 1))
        return await call_next(call)
