"""Values at the edges of a schema, just beyond them, and beside a sample: what tests of a tool are made of.

Everything follows from the schema's plain keywords, and is the same on every machine and on every day. Whether a value is
in truth inside or outside is for the tool's whole schema to say (`cases` asks it), as combined schemas can ask for more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from mcpfactory_codegen.cases.samples import FORMATS, NOTHING, sample
from mcpfactory_codegen.inputs import lookup
from mcpfactory_codegen.ir import JsonSchema

__all__ = ["edge", "several", "unlike", "wrong"]

_LONGEST: Final = 500  # characters of a text made here
_MOST_ITEMS: Final = 20
_STRANGE: Final = {"mcpfactory": ["no", "such", "value"]}  # fits no scalar


def unlike(value: Any, schema: JsonSchema, schemas: dict[str, JsonSchema], step: int) -> Iterator[Any]:
    """Values of the schema other than `value`, likeliest first: the `step`-th neighbour, so that many differ from each other."""
    schema = lookup(schema, schemas)
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


def several(value: list[Any], schema: JsonSchema, schemas: dict[str, JsonSchema]) -> Iterator[list[Any]]:
    """Arrays with one more item than `value`, which has one: only several items show how an array is written."""
    schema = lookup(schema, schemas)
    items = schema.get("items", {}) if isinstance(schema, dict) else {}
    if len(value) == 1:
        yield from ([value[0], other] for other in unlike(value[0], items, schemas, 1))


def edge(schema: JsonSchema, schemas: dict[str, JsonSchema], which: Literal["lowest", "highest"]) -> Any:
    """Return the smallest or the largest value that the schema's bounds, lengths or enumeration allow; NOTHING without any."""
    schema = lookup(schema, schemas)
    if not isinstance(schema, dict) or "const" in schema:
        return NOTHING
    low = which == "lowest"
    enum = schema.get("enum")
    if isinstance(enum, list):
        values = [one for one in enum if one is not None]
        return NOTHING if not values else values[0] if low else values[-1]
    kind = _kind(schema)
    if kind == "boolean":
        return not low
    if kind in {"integer", "number"}:
        return _number(schema, low=low, integer=kind == "integer")
    if kind == "string" and "pattern" not in schema and "format" not in schema:
        length = schema.get("minLength") if low else schema.get("maxLength")
        return "a" * max(length, 1) if isinstance(length, int) and length <= _LONGEST else NOTHING
    if kind == "array" and not schema.get("uniqueItems") and "prefixItems" not in schema:
        count = schema.get("minItems") if low else schema.get("maxItems")
        value = sample(schema.get("items", {}), schemas, 2)
        fits = isinstance(count, int) and 0 < count <= _MOST_ITEMS and value is not NOTHING
        return [value] * count if fits and isinstance(count, int) else NOTHING
    return NOTHING


def _number(schema: dict[str, Any], *, low: bool, integer: bool) -> Any:
    keyword, exclusive = ("minimum", "exclusiveMinimum") if low else ("maximum", "exclusiveMaximum")
    bound, beyond = schema.get(keyword), schema.get(exclusive)
    if isinstance(beyond, int | float) and not isinstance(beyond, bool):
        if not integer:
            return NOTHING
        bound = math.floor(beyond) + 1 if low else math.ceil(beyond) - 1
    if not isinstance(bound, int | float) or isinstance(bound, bool) or abs(bound) > 2**53:
        return NOTHING
    return (math.ceil(bound) if low else math.floor(bound)) if integer else bound


def wrong(schema: JsonSchema, schemas: dict[str, JsonSchema]) -> Iterator[Any]:
    """Values just outside of the schema: beyond each bound and length, none of the enumeration, and of no type of its."""
    schema = lookup(schema, schemas)
    if not isinstance(schema, dict):
        return
    enum, kind = schema.get("enum"), _kind(schema)
    if isinstance(enum, list) or "const" in schema:
        yield "mcpfactory-no-such-value"
    if kind in {"integer", "number"}:
        lowest, highest = (_number(schema, low=low, integer=kind == "integer") for low in (True, False))
        yield from (value + step for value, step in ((lowest, -1), (highest, 1)) if value is not NOTHING)
        yield "no number"
    elif kind == "string":
        yield from _wrong_texts(schema)
    elif kind == "array":
        yield from _wrong_arrays(schema, schemas)
    elif kind == "boolean":
        yield "perhaps"
    elif kind == "object":
        required = schema.get("required")
        if isinstance(required, list) and required:
            yield {}
        yield "no object"
    if kind not in {"", "object"}:
        yield _STRANGE


def _wrong_texts(schema: dict[str, Any]) -> Iterator[str]:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", _LONGEST)
    if isinstance(shortest, int) and 0 < shortest <= _LONGEST:
        yield "a" * (shortest - 1)
    if isinstance(longest, int) and longest < _LONGEST:
        yield "a" * (longest + 1)
    if isinstance(schema.get("pattern"), str):
        yield from ("\u00a7 \u00a7", "a a", "")


def _wrong_arrays(schema: dict[str, Any], schemas: dict[str, JsonSchema]) -> Iterator[Any]:
    fewest, most = schema.get("minItems", 0), schema.get("maxItems", _MOST_ITEMS)
    value = sample(schema.get("items", {}), schemas, 2)
    if value is not NOTHING:
        if isinstance(fewest, int) and 0 < fewest <= _MOST_ITEMS:
            yield [value] * (fewest - 1)
        if isinstance(most, int) and most < _MOST_ITEMS:
            yield [value] * (most + 1)
    yield from ([one] for one in wrong(schema.get("items", {}), schemas))


def _kind(schema: dict[str, Any]) -> str:
    """Return the one type of a schema; "" for several, or none."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((kind for kind in kinds if kind != "null"), "") if len(set(kinds) - {"null"}) == 1 else ""
    return kinds if isinstance(kinds, str) else ""
