"""Results of a client: conversion to Python types, and a cache (utilities/caching, newest revision)."""

from __future__ import annotations

import copy
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcpfactory_runtime.client.channel import ResultError
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def typed_result(result: Json, kind: type[T]) -> T:
    """Return a tool's result as a `kind`, such as a pydantic model, a dataclass or `list[str]`.

    The value is the structured content, or its only member `result`, because servers wrap other values than objects.
    Without structured content, the result must have exactly one text, which is parsed as JSON if possible.

    Raises:
        ResultError: the tool failed, or the result has another type.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - the import takes 150 ms

    texts = [str(block.get("text", "")) for block in result.get("content") or () if block.get("type") == "text"]
    if result.get("isError"):
        raise ResultError("\n".join(texts) or "the tool failed without an error message")
    adapter: TypeAdapter[T] = TypeAdapter(kind)
    reasons = []
    for value in _candidates(result.get("structuredContent"), texts):
        try:
            # Strict models accept strings for types such as dates only in JSON mode.
            return adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            reasons.append(str(error))
    raise ResultError(f"the result is not a valid {kind!r}: {(reasons[-1] if reasons else 'the value is missing')}")


def _candidates(structured: Any, texts: list[str]) -> list[Any]:
    """Return the possible interpretations of a result, most likely first."""
    if structured is not None:
        wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
        return [structured, structured["result"]] if wrapped else [structured]
    if len(texts) != 1:
        return []
    try:
        return [json.loads(texts[0]), texts[0]]
    except ValueError:
        return [texts[0]]


_MAX_RESULTS: Final = 1000  # maximum number of cached results
# Notification → methods whose results may have changed.
_CHANGED: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}


class ResultCache:
    """Cache of results for one client, for use in the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Json]] = OrderedDict()

    def find(self, method: str, params: Json | None) -> Json | None:
        """Return the unexpired result of an equal request, or None."""
        kept = self._kept.get(_key(method, params))
        return copy.deepcopy(kept[1]) if kept is not None and self._clock() < kept[0] else None

    def keep(self, method: str, params: Json | None, result: Json) -> None:
        """Store a result for the time in `ttlMs`."""
        lifetime = result.get("ttlMs")
        if not isinstance(lifetime, int | float) or not lifetime > 0 or result.get("resultType") != "complete":
            return
        key = _key(method, params)
        self._kept[key] = (self._clock() + lifetime / 1000, copy.deepcopy(result))
        self._kept.move_to_end(key)
        if len(self._kept) > _MAX_RESULTS:
            self._kept.popitem(last=False)

    def notified(self, method: str, params: Json) -> None:
        """Remove the cached results that a notification invalidates."""
        if method == UPDATED:
            self._kept.pop(_key("resources/read", {"uri": params.get("uri")}), None)
        methods = _CHANGED.get(method, ())
        for key in [key for key in self._kept if key[0] in methods]:
            del self._kept[key]

    def ended(self, error: Exception | None) -> None:
        """Remove all results."""
        self._kept.clear()


def _key(method: str, params: Json | None) -> tuple[str, str]:
    given = {name: value for name, value in (params or {}).items() if name != "_meta"}
    return method, json.dumps(given, sort_keys=True, default=str)
