"""Bounds that no value keeps: a schema with one would be a tool that nobody can call. Pure functions on one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["MOST", "keep_satisfiable", "spread_enum"]

MOST: Final = 1_000_000
"""Characters, items or properties that a schema may ask for at least: no call carries more."""
_PAIRS: Final = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
    ("minimum", "maximum"),
)

Report = Callable[[str, str, str], None]
"""code, keyword, message"""


def keep_satisfiable(out: dict[str, Any], report: Report) -> None:
    """Drop a lower bound that no call reaches, and a pair of bounds with nothing in between."""
    for low, high in _PAIRS:
        least, most = out.get(low), out.get(high)
        if least is None:
            continue
        if low != "minimum" and least > MOST:
            del out[low]
            report("schema-bounds", low, f"{low} asks for more than {MOST:,}, which no call carries; dropped")
        elif most is not None and least > most:
            del out[low], out[high]
            report("schema-bounds", low, f"{low} is more than {high}, so no value is left; both were dropped")


def spread_enum(out: dict[str, Any], report: Report) -> None:
    """Give values that are listed beside `type: array` to its items: the array itself is none of them."""
    values, items = out.get("enum"), out.get("items", {})
    if out.get("type") in ("array", ["array"]) and isinstance(values, list) and isinstance(items, dict):
        if any(isinstance(value, list) or value is None for value in values):
            return
        del out["enum"]
        if "$ref" not in items and "enum" not in items and values:
            out["items"] = {**items, "enum": values}
        report("schema-enum", "enum", "the values are listed beside the type array; read as those of its items")
