"""The result of a tool as a value of a type that one asks for: what is structured, checked by pydantic. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

from mcpfactory_runtime.client.channel import ResultError

T = TypeVar("T")


def typed_result(result: Json, kind: type[T]) -> T:
    """Return a tool's result as a `kind`: a model, a dataclass, `list[str]` and so on.

    Structured content comes first. If it is an object whose only member is `result` (servers wrap other values this
    way), that member is used if the whole does not fit. Without structured content, the single text is used, parsed
    as JSON if possible.

    Raises:
        ResultError: the tool failed (with its message), or the result has another type.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - takes 150 ms; only for those who ask for types

    texts = [str(block.get("text", "")) for block in result.get("content") or () if block.get("type") == "text"]
    if result.get("isError"):
        raise ResultError("\n".join(texts) or "the tool failed without a word")
    adapter: TypeAdapter[T] = TypeAdapter(kind)
    reasons = []
    for value in _readings(result.get("structuredContent"), texts):
        try:
            # As JSON, in which a strict model takes text for what JSON has no form for.
            return adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            reasons.append(str(error))
    raise ResultError(f"the answer is no {kind!r}: {reasons[-1] if reasons else 'it has no value'}")


def _readings(structured: Any, texts: list[str]) -> list[Any]:
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
