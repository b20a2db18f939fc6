"""Values on and just outside a schema's bounds, and near a sample: the inputs of tool tests.

All values follow from the schema's simple keywords and are deterministic. The tool's whole schema decides if a value is
really inside or outside (its caller checks it), because combined schemas can require more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_runtime.schemas.sample import FORMATS, MOST_ITEMS, NOTHING, count, highest, lowest, sample
from mcpfactory_runtime.schemas.walk import items_of, required_of, resolve, types_of

_LONGEST_EDGE: Final = 500  # characters of a text made here
_STRANGE: Final = {"mcpfactory": ["no", "such", "value"]}  # fits no scalar


def neighbors(value: Any, schema: Any, root: Mapping[str, Any], step: int) -> Iterator[Any]:
    """Yield other values of the schema, likeliest first. `step` selects the distance, so that several values differ."""
    schema = resolve(schema, root)
    kinds = schema if isinstance(schema, dict) else {}
    enum = kinds.get("enum")
    if isinstance(enum, list):
        others = [one for one in enum if one is not None and one != value]
        yield from others[(step - 1) % len(others) :] if others else ()
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + step, value - step, value + 1)
    elif isinstance(value, float):
        yield from (value + step, value - step)
    elif isinstance(value, str):
        yield from _other_texts(value, kinds.get("format", ""), step)


def _other_texts(value: str, kind: str, step: int) -> Iterator[str]:
    digits = list(re.finditer(r"\d", value))
    if kind in FORMATS or not kind:
        if digits:  # a date, a UUID, an address: the last digit counts on
            last = digits[-1]
            yield value[: last.start()] + str((int(last[0]) + step) % 10) + value[last.end() :]
        if kind in {"", "uri", "url", "iri", "uri-reference", "json-pointer"}:
            yield f"{value}{step}"
        if "@" in value:
            yield f"{step}{value}"
    yield f"{value}-{step}"
    yield chr(ord("a") + step % 26) + value[1:]


def two_items(value: list[Any], schema: Any, root: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield arrays with a second item, if `value` has one: only several items show how an array is written."""
    items = items_of(resolve(schema, root))
    if len(value) == 1:
        yield from ([value[0], other] for other in neighbors(value[0], items, root, 1))


def _bound(schema: Mapping[str, Any], *, low: bool, integer: bool) -> Any:
    bound, exclusive = lowest(schema) if low else highest(schema)
    if abs(bound) > 2**53 or (exclusive and not integer):
        return NOTHING
    if exclusive:
        return math.floor(bound) + 1 if low else math.ceil(bound) - 1
    return (math.ceil(bound) if low else math.floor(bound)) if integer else bound


def invalid_values(schema: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values just outside of the schema: beyond a bound or length, not in its enumeration, or of another type."""
    schema = resolve(schema, root)
    if not isinstance(schema, dict):
        return
    enum, kind = schema.get("enum"), _one_kind(schema)
    if isinstance(enum, list) or "const" in schema:
        yield "mcpfactory-no-such-value"
    if kind in {"integer", "number"}:
        lowest, highest = (_bound(schema, low=low, integer=kind == "integer") for low in (True, False))
        yield from (value + step for value, step in ((lowest, -1), (highest, 1)) if value is not NOTHING)
        yield "no number"
    elif kind == "string":
        yield from _invalid_texts(schema)
    elif kind == "array":
        yield from _invalid_arrays(schema, root)
    elif kind == "boolean":
        yield "perhaps"
    elif kind == "object":
        if required_of(schema):
            yield {}
        yield "no object"
    if kind not in {"", "object"}:
        yield _STRANGE


def _invalid_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    shortest, longest = count(schema, "minLength", 0), count(schema, "maxLength", _LONGEST_EDGE)
    if 0 < shortest <= _LONGEST_EDGE:
        yield "a" * (shortest - 1)
    if longest < _LONGEST_EDGE:
        yield "a" * (longest + 1)
    if isinstance(schema.get("pattern"), str):
        yield from ("\u00a7 \u00a7", "a a", "")


def _invalid_arrays(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    fewest, most = count(schema, "minItems", 0), count(schema, "maxItems", MOST_ITEMS)
    value = sample(items_of(schema), root, 2)
    if value is not NOTHING:
        if 0 < fewest <= MOST_ITEMS:
            yield [value] * (fewest - 1)
        if most < MOST_ITEMS:
            yield [value] * (most + 1)
    yield from ([one] for one in invalid_values(items_of(schema), root))


def _one_kind(schema: Mapping[str, Any]) -> str:
    kinds = [kind for kind in types_of(schema) if kind != "null"] or types_of(schema)
    return kinds[0] if len(set(kinds)) == 1 else ""
