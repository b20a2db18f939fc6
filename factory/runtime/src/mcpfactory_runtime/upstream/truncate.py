"""Truncation of JSON results, and selection of their parts with JMESPath.

Members of an object share the space equally, so that small values stay complete, and a truncated result keeps its
outline.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from mcpfactory_runtime.server.errors import ToolError

_LEAST: Final = 24  # minimum characters of a shortened member; a shorter member is removed


@dataclass(frozen=True, slots=True)
class Truncation:
    """Truncation at `place`, where `kept` of `total` items, members or characters remain."""

    place: str
    kept: int
    total: int
    what: str

    def __str__(self) -> str:
        where = f" of `{self.place}`" if self.place else ""
        return f"{self.kept:,} of {self.total:,} {self.what}{where}"


def dump_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def shorten(value: Any, room: int) -> tuple[Any, list[Truncation]]:
    """Truncate a value to about `room` characters of compact JSON. Return the value and the cuts, outermost first.

    A value that is nested too deeply raises RecursionError.
    """
    cuts: list[Truncation] = []
    return _fit(value, room, "", cuts), cuts


def _fit(value: Any, room: int, place: str, cuts: list[Truncation]) -> Any:
    if isinstance(value, str):
        return _text(value, room, place, cuts)
    if isinstance(value, list):
        return _list(value, room, place, cuts)
    if isinstance(value, dict):
        return _object(value, room, place, cuts)
    return value


def _text(value: str, room: int, place: str, cuts: list[Truncation]) -> str:
    size = len(dump_json(value))
    if size <= room:
        return value
    kept = max(0, (room - 3) * len(value) // size)
    # The beginning may contain more escaped characters than the rest.
    while kept and len(dump_json(value[:kept])) > room - 1:
        kept = kept * 3 // 4
    cuts.append(Truncation(place, kept, len(value), "characters"))
    return value[:kept] + "…"


def _list(value: list[Any], room: int, place: str, cuts: list[Truncation]) -> list[Any]:
    used, kept = 2, 0
    for item in value:
        used += len(dump_json(item)) + 1
        if used > room:
            break
        kept += 1
    if kept == len(value):
        return value
    if len(value) > 1:
        cuts.append(Truncation(place, max(kept, 1), len(value), "items"))
    return value[:kept] if kept else [_fit(value[0], room - 2, f"{place}[0]", cuts)]


def _object(value: dict[str, Any], room: int, place: str, cuts: list[Truncation]) -> dict[str, Any]:
    sizes = {name: len(dump_json(name)) + len(dump_json(one)) + 2 for name, one in value.items()}
    if sum(sizes.values()) + 2 <= room:
        return value
    left = room - 2
    shares: dict[str, int] = {}
    for number, (name, size) in enumerate(sorted(sizes.items(), key=lambda one: one[1])):
        shares[name] = min(size, left // (len(sizes) - number))
        left -= shares[name]
    kept: dict[str, Any] = {}
    inner: list[Truncation] = []
    for name, one in value.items():
        share = shares[name] - len(dump_json(name)) - 2
        if sizes[name] == shares[name]:
            kept[name] = one
        elif share >= _LEAST:
            kept[name] = _fit(one, share, f"{place}.{name}" if place else name, inner)
    if len(kept) < len(value):
        cuts.append(Truncation(place, len(kept), len(value), "members"))
    cuts += inner
    return kept


_LONGEST: Final = 1_000  # maximum characters of an expression


def check_jmespath(expression: Any) -> None:
    """Raise ToolError if a JMESPath expression is invalid."""
    _compiled(expression)


def select(expression: str, value: Any) -> Any:
    """Return the part of a JSON value that an expression selects, or None if it selects nothing.

    An expression that cannot be used on the value raises ToolError.
    """
    try:
        return _compiled(expression).search(value)
    # A JMESPathError is a ValueError.
    except (ArithmeticError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"The API answered, but the expression {expression!r} cannot be applied to the answer: {error}"
        ) from None


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    import jmespath  # type: ignore[import-untyped]  # noqa: PLC0415 - most servers select nothing

    try:
        if len(expression) > _LONGEST:
            raise ValueError(f"the expression has more than {_LONGEST:,} characters")
        return jmespath.compile(expression)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ToolError(
            f"{expression[:200]!r} is not a valid JMESPath expression: {reason}\nhint: write items[].{{id: id, "
            f"name: name}}"
        ) from None
