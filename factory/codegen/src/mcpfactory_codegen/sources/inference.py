"""JSON Schemas of what was seen: the types of samples, merged, and no more than they show.

A schema of an answer has to hold for answers that nobody saw: everything in it may be null, whole numbers may have a fraction, and
only what stood in each of several samples is required.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["infer"]

_DEPTH: Final = 12
_MEMBERS: Final = 200
_ITEMS: Final = 50
_NODES: Final = 20_000
_MAP: Final = 8
_ENOUGH: Final = 2
"""Samples from which on it says something that all of them have a member."""
_DATA: Final = re.compile(r"\d+|[0-9a-fA-F]{8,}|[0-9a-fA-F-]{32,}|\d{4}-\d{2}(-\d{2}.*)?|[^\s@]+@[^\s@]+")
_TYPES: Final = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (dict, "object"),
    (list, "array"),
)


def infer(samples: Sequence[Any], *, answer: bool = False) -> dict[str, Any]:
    """Return the schema of values of which these are some; {} (anything) when there are none."""
    return _Inference(answer).of(list(samples), 0)


class _Inference:
    def __init__(self, answer: bool) -> None:
        self._answer = answer
        self._left = _NODES

    def of(self, samples: list[Any], depth: int) -> dict[str, Any]:
        self._left -= 1
        kinds = {_kind(one) for one in samples}
        if not kinds - {"null"} or depth > _DEPTH or self._left < 0:
            return {}
        if self._answer and "integer" in kinds:
            kinds = kinds - {"integer"} | {"number"}
        if {"integer", "number"} <= kinds:
            kinds.discard("integer")
        kinds |= {"null"} if self._answer else set()
        schema: dict[str, Any] = {"type": sorted(kinds, key=lambda kind: (kind == "null", kind))}
        if len(kinds) == 1:
            schema["type"] = next(iter(kinds))
        if "object" in kinds:
            schema |= self._members([one for one in samples if isinstance(one, dict)], depth)
        if "array" in kinds:
            items = [item for one in samples if isinstance(one, list) for item in one[:_ITEMS]]
            schema["items"] = self.of(items[: _ITEMS * 4], depth + 1)
        return schema

    def _members(self, samples: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        names = dict.fromkeys(name for one in samples for name in one)
        if len(names) > _MEMBERS or (len(names) >= _MAP and all(_DATA.fullmatch(name) for name in names)):
            values = [value for one in samples for value in one.values()]
            return {"additionalProperties": self.of(values[: _ITEMS * 4], depth + 1)}
        properties = {name: self.of([one[name] for one in samples if name in one], depth + 1) for name in names}
        everywhere = [name for name in names if all(name in one for one in samples)]
        needed = everywhere if len(samples) >= _ENOUGH else []
        return {"properties": properties} | ({"required": needed} if needed else {})


def _kind(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")
