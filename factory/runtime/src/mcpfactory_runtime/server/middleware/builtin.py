"""Ready-made middleware: logging, error messages, caching, limits and retries."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from math import ceil
from typing import Any, Final

from pydantic_core import to_json

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.middleware.layers import Middleware, NextRequest, NextTool, Request, ToolRequest
from mcpfactory_runtime.server.rates import PerClientCache, TokenBucket, read_rate
from mcpfactory_runtime.server.results import READ_BY_CODE
from mcpfactory_runtime.server.signature import ArgumentsError
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.truncate import Truncation, dump_json, shorten

log = logging.getLogger("mcpfactory_runtime.requests")


class Logging(Middleware):
    """Middleware that logs caller, outcome and duration of each request as a JSON line at level INFO.

    Args:
        logger: the logger; default: `mcpfactory_runtime.requests`.
        arguments: True to log also the arguments, which may contain private data.
        clock: function that returns seconds.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        arguments: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._logger = logger or log
        self._arguments = arguments
        self._clock = clock

    async def on_request(self, request: Request, call_next: NextRequest) -> Json:
        """Log a request."""
        return await self._logged({"method": request.method}, request.context, lambda: call_next(request))

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Log a tool call."""
        line: Json = {"tool": call.name}
        if self._arguments:
            line["arguments"] = dict(call.arguments)
        return await self._logged(line, call.context, lambda: call_next(call))

    async def _logged(self, line: Json, context: Context, answer: Callable[[], Any]) -> Json:
        begun = self._clock()
        line["id"] = context.request_id
        principal = context.principal
        client = {
            "principal": principal.subject if principal is not None else None,
            "session": context.session_id,
            "address": context.client_address,
            "client": context.client_info.get("name"),
        }
        line.update({name: value for name, value in client.items() if value is not None})
        outcome = "cancelled"
        try:
            result: Json = await answer()
            outcome = "failed" if result.get("isError") else result.get("resultType", "ok")
        except McpError as error:
            outcome = f"error {error.code}"
            raise
        except Exception as error:
            outcome = type(error).__name__
            raise
        else:
            return result
        finally:
            line["outcome"] = "ok" if outcome == "complete" else outcome
            line["ms"] = round((self._clock() - begun) * 1000, 3)
            self._logger.info("%s", json.dumps(line, default=str))


Words = str | Callable[[Exception], str]


class ErrorShaping(Middleware):
    """Middleware that sets the message for the model by exception type.

    Example: `ErrorShaping({KeyError: "Unknown note.", OSError: str})`. Without `ErrorShaping`, the model gets a generic
    message, because an exception's text may contain secrets.

    Args:
        words: text for each exception type, or a function that builds the text from the exception. The first matching
            type wins.
    """

    def __init__(self, words: Mapping[type[Exception], Words]) -> None:
        self._words = dict(words)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool."""
        try:
            return await call_next(call)
        except (ToolError, McpError, ArgumentsError):
            raise
        except tuple(self._words) as error:
            words = next(words for kind, words in self._words.items() if isinstance(error, kind))
            raise ToolError(words if isinstance(words, str) else words(error)) from error


_Key = tuple[str, str, bool, bytes]
"""Cache key of a result: tool, principal, `READ_BY_CODE`, arguments as JSON."""


class Caching(Middleware):
    """Middleware that answers a call with the cached result of an equal call. Failures are not cached.

    Args:
        seconds: lifetime of a result.
        tools: names of tools; default: tools annotated as read-only.
        shared: True shares results between principals. Callers without authorization always share results.
        limit: maximum number of cached results. The least recently used result is removed first.
        clock: function that returns seconds.
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
        """Return the cached result of an equal call, or call the tool and cache its result."""
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
        """Remove all cached results."""
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
    """Return a JSON value with sorted object members, so that equal arguments have equal cache keys."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


class RateLimit(Middleware):
    """Middleware that refuses tool calls above a rate. The error contains the time to wait.

    To limit all calls together, use `Server(rates=…)`.

    Args:
        rates: rate such as `5/m` by tool name, for each client and process. "" applies to each tool that is not listed.
        by: function that returns a client's identity. The default identity is the principal, the session or the
            address, in this order.
        clock: function that returns seconds.

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
        self._buckets = {name: PerClientCache(partial(TokenBucket, *rate, clock)) for name, rate in self._rates.items()}
        self._by = by or _client

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Call a tool, or refuse the call."""
        name = call.name if call.name in self._rates else ""
        if name in self._rates:
            bucket = self._buckets[name].of(f"{call.name} {self._by(call.context)}")
            if not bucket.take():
                count, seconds = self._rates[name]
                raise ToolError(
                    f"{call.name} is limited to {count} calls in {seconds} s; try again in {ceil(bucket.wait)} s."
                )
        return await call_next(call)


def _client(context: Context) -> str:
    return str(context.principal or context.session_id or context.client_address or "")


_NAMED: Final = 5  # maximum number of shortened values that the note lists


class ResponseLimit(Middleware):
    """Middleware that shortens results above a number of characters, and adds a note about omitted parts.

    Lists and texts are cut at the end. Images and other content that do not fit are omitted. A result with an output
    schema is replaced by an error, because a shortened result would violate the schema. Results of `Context.call` stay
    complete.

    Args:
        characters: maximum size of a result.
        tools: names of tools; default: all tools.
    """

    def __init__(self, characters: int = 100_000, *, tools: Iterable[str] = ()) -> None:
        if characters < 1:
            raise ValueError(f"the limit of {characters} characters is too low\nhint: set a limit such as 100_000")
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
                text = f"The answer has {size:,} characters; at most {self._room:,} are given. Ask for less."
                return {"content": [{"type": "text", "text": text}], "isError": True}
            value, cuts = shorten(result["structuredContent"], self._room)
            return {
                **result,
                "structuredContent": value,
                "content": [{"type": "text", "text": dump_json(value)}, _cut_note(cuts)],
            }
        return {**result, "content": self._content(result["content"])}

    def _content(self, blocks: list[Json]) -> list[Json]:
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
        cuts += [Truncation("", len(blocks) - gone, len(blocks), "parts")] if gone else []
        return [*found, _cut_note(cuts)]


def _shortened(text: str, room: int) -> tuple[str, list[Truncation]]:
    """Return a shorter text, and a record of each omitted part. JSON stays valid."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text[: max(room - 1, 0)]}…", [Truncation("", max(room - 1, 0), len(text), "characters")]
    value, cuts = shorten(value, room)
    return dump_json(value), cuts


def _size(block: Json) -> int:
    resource = block.get("resource") or {}
    return sum(len(one.get(name, "")) for one in (block, resource) for name in ("text", "data", "blob"))


def _cut_note(cuts: list[Truncation]) -> Json:
    named = "; ".join(map(str, cuts[:_NAMED])) or "parts"
    return {"type": "text", "text": f"(shortened: {named}. Ask for less to see the rest.)"}


class Retry(Middleware):
    """Middleware that retries a tool call after one of the given exceptions. The waiting time doubles after each call.

    Use `Retry` for hand-written tools. Generated tools retry API calls themselves (docs/reference/upstream.md).

    Args:
        attempts: maximum number of calls.
        wait: seconds before the second call.
        on: exceptions after which to retry.
        tools: names of tools; default: tools annotated as read-only or idempotent.
        sleep: function that waits the given number of seconds.
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
        """Call a tool, and retry after one of the exceptions if the tool permits retries."""
        attempts = self._attempts if (call.name in self._tools if self._tools else call.idempotent) else 1
        for attempt in range(1, attempts):
            try:
                return await call_next(call)
            except self._on:
                await self._sleep(self._wait * 2 ** (attempt - 1))
        return await call_next(call)
