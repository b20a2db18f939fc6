"""Deterministic sample values of a schema: a valid value, alternatives, and invalid values.

The schema's own example, default or enum value comes first. Otherwise, a sample is the smallest value that formats and
bounds permit. To end cycles, deep optional members are omitted, and still deeper schemas have no sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final

from mcpfactory_runtime.schemas.merge import common_types, intersect_schemas
from mcpfactory_runtime.schemas.patterns import MAX_TEXT_LENGTH, is_enforced, matches, matching_texts
from mcpfactory_runtime.schemas.value_validation import has_json_type, is_number
from mcpfactory_runtime.schemas.walk import (
    COMBINATORS,
    DATA,
    items_schema_of,
    properties_of,
    required_of,
    resolve,
    subschemas_of,
    types_of,
)
from mcpfactory_runtime.types import Json


class _Nothing:
    """Type of `NOTHING`."""


NOTHING: Final = _Nothing()
"""The value that `sample` returns if no sample can be created."""

_DEPTH: Final = 8  # maximum nesting of schemas
_OPTIONAL_DEPTH: Final = 2  # nesting level from which optional members are omitted
_MAX_PARTS: Final = 200  # maximum parts of a merged `allOf`
_MAX_ITEMS: Final = 20  # maximum items of an array
# Maximum visits for one sample. Each array item counts as a visit.
_MAX_VISITS: Final = 5_000
_MAX_EXACT: Final = 2**53  # every integer up to this value is exact as a float
_LONGEST_INVALID: Final = 500  # maximum characters of a sample that exceeds `maxLength`
_OTHER_TYPE: Final = {"mcpfactory": ["no", "such", "value"]}  # an object, invalid for schemas of scalars and arrays
_SHAPING: Final = frozenset({"properties", "required", "items", "type", *COMBINATORS})
_PLAIN: Final = ("string", "number", "integer", "boolean")
_FORMATS: Final = {
    "date": "2024-01-31",
    "date-time": "2024-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "reader@example.com",
    "idn-email": "reader@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "uri-reference": "/a",
    "iri": "https://example.com/a",
    "uuid": "6f1ed002-ab5d-4a3f-9d3e-3f6a5b0c1d2e",
    "byte": "YWJj",
    "json-pointer": "/a",
    "regex": "a",
}


def sample(
    schema: Any, root: Mapping[str, Any], depth: float = 0, *, minimal: bool = False, lenient: bool = False
) -> Any:
    """Return a value for the schema, or `NOTHING` if no value is known, such as for `false`.

    At a deep `depth`, optional members are omitted. A `minimal` value has only required members and items, and is not
    checked. A `lenient` value ignores patterns that servers do not enforce.
    """
    return _Sampler(root, minimal=minimal, lenient=lenient).of(schema, depth)


def author_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the author's values in a schema, those of the most restrictive keyword first."""
    for keyword in ("const", "enum", "examples", "example", "default"):
        value = schema.get(keyword)
        if keyword in {"enum", "examples"}:
            yield from value[:1] if isinstance(value, list) else ()
        elif keyword in schema:
            yield value


def alternative_values(value: Any, schema: Any, root: Mapping[str, Any], step: int) -> Iterator[Any]:
    """Yield other values of the schema than `value`, most likely valid ones first."""
    schema = resolve(schema, root)
    schema = schema if isinstance(schema, dict) else {}
    enum = schema.get("enum")
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
        yield from _other_texts(value, str(schema.get("format", "")), step)


def two_item_arrays(value: list[Any], schema: Any, root: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield arrays of two items if `value` has one item, because only several items show how an array is serialized."""
    items = items_schema_of(resolve(schema, root))
    if len(value) == 1:
        yield from ([value[0], other] for other in alternative_values(value[0], items, root, 1))


def invalid_values(schema: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values that barely violate the schema, for example by exceeding a bound by 1."""
    schema = resolve(schema, root)
    if not isinstance(schema, dict):
        return
    enum, kind = schema.get("enum"), _one_kind(schema)
    if isinstance(enum, list) or "const" in schema:
        yield "mcpfactory-no-such-value"
    if kind in {"integer", "number"}:
        bounds = (_bound(schema, low=low, integer=kind == "integer") for low in (True, False))
        yield from (bound + step for bound, step in zip(bounds, (-1, 1), strict=True) if bound is not NOTHING)
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
        yield _OTHER_TYPE


class _Sampler:
    def __init__(self, root: Mapping[str, Any], *, minimal: bool, lenient: bool) -> None:
        self._root = root
        self._minimal = minimal
        self._lenient = lenient
        self._left = _MAX_VISITS

    def of(self, schema: Any, depth: float) -> Any:
        if isinstance(schema, bool):
            return "value" if schema else NOTHING
        self._left -= 1
        if depth > _DEPTH or self._left < -1:
            return NOTHING
        schema = resolve(schema, self._root)
        if not isinstance(schema, Mapping):
            return self.of(schema is not False, depth)
        given = next(author_values(schema), NOTHING) if self._minimal else _author_value(schema)
        if given is not NOTHING:
            return given
        for keyword in ("oneOf", "anyOf"):
            if branches := subschemas_of(schema, keyword):
                return self._branch(schema, keyword, branches, depth)
        if parts := subschemas_of(schema, "allOf"):
            return self._all_of(schema, parts, depth)
        return _MAKERS[_kind(schema)](self, schema, depth)

    def _branch(self, schema: Mapping[str, Any], keyword: str, branches: list[Any], depth: float) -> Any:
        rest = {name: value for name, value in schema.items() if name != keyword}
        for branch in branches:
            inner = resolve(branch, self._root)
            if not isinstance(inner, dict) or inner.get("type") == "null":
                continue
            if types_of(rest) and types_of(inner) and not common_types(rest, inner):
                continue
            value = self.of({"allOf": [rest, inner]} if rest.keys() & _SHAPING else inner, _part_depth(depth))
            if value is not NOTHING:
                return value
        nullable = any(types_of(branch) == ["null"] for branch in branches)
        return None if nullable and "null" in (types_of(rest) or ["null"]) else NOTHING

    def _all_of(self, schema: Mapping[str, Any], written: list[Any], depth: float) -> Any:
        own = {key: value for key, value in schema.items() if key != "allOf"}
        parts = [inner for part in written if isinstance(inner := resolve(part, self._root), dict)]
        # A value cannot be both an object and a scalar, so drop the scalar parts.
        if any(self._describes_object(part) for part in parts):
            parts = [part for part in parts if part.get("type", "object") not in _PLAIN]
        merged: Json = reduce(intersect_schemas, parts, own)
        if members := properties_of(merged):
            names = dict.fromkeys(name for part in (*reversed(parts), own) for name in properties_of(part))
            merged["properties"] = {name: members[name] for name in names}
        return self.of(merged, _part_depth(depth)) if len(subschemas_of(merged, "allOf")) <= _MAX_PARTS else NOTHING

    def _describes_object(self, schema: Mapping[str, Any], levels: int = 3) -> bool:
        if schema.get("type") == "object" or "properties" in schema:
            return True
        parts = [resolve(part, self._root) for part in subschemas_of(schema, "allOf")] if levels else []
        return any(isinstance(part, dict) and self._describes_object(part, levels - 1) for part in parts)

    # --- methods, one for each type ---

    def object(self, schema: Mapping[str, Any], depth: float) -> Any:
        # Use a dict, because the order of a set is not deterministic.
        required = dict.fromkeys(required_of(schema))
        properties = dict(properties_of(schema))
        extra = schema.get("additionalProperties")
        for name in required:
            properties.setdefault(name, extra if isinstance(extra, dict) else {"type": "string"})
        deep = self._minimal or depth >= _OPTIONAL_DEPTH
        built = {}
        for name, inner in properties.items():
            if name not in required and deep:
                continue
            value = self.of(inner, depth + 1)
            if value is NOTHING and name in required:
                return NOTHING
            if value is not NOTHING:
                built[name] = value
        if not built and isinstance(extra, dict) and not deep:
            value = self.of(extra, depth + 1)
            names = resolve(schema.get("propertyNames", {}), self._root)
            name = self.of({"type": "string", **(names if isinstance(names, dict) else {})}, depth + 1)
            if value is not NOTHING and isinstance(name, str):
                built = {name if "propertyNames" in schema else "key": value}
        return built

    def array(self, schema: Mapping[str, Any], depth: float) -> Any:
        fewest = _count(schema, "minItems", 0)
        made = (self.of(one, depth + 1) for one in subschemas_of(schema, "prefixItems"))
        first = [value for value in made if value is not NOTHING]
        if first and fewest <= len(first):
            return first
        if fewest > _MAX_ITEMS or _count(schema, "maxItems", 1) < 1 or (self._minimal and fewest == 0):
            return [] if fewest == 0 else NOTHING
        before = self._left
        value = self.of(items_schema_of(schema), depth + 1)
        # Each further item needs as many visits as the first, because arrays can be nested.
        more = (before - self._left) * max(0, fewest - 1)
        if more > max(0, self._left):
            return NOTHING
        self._left -= more
        # At the nesting limit, the item is None.
        if fewest == 0 and (value is NOTHING or value is None):
            return []
        if value is NOTHING:
            return NOTHING
        if schema.get("uniqueItems") and fewest > 1:
            return _distinct(resolve(items_schema_of(schema), self._root), value, fewest)
        return [value] * max(1, fewest)

    def string(self, schema: Mapping[str, Any], _depth: float) -> Any:
        shortest, longest = _count(schema, "minLength", 0), _count(schema, "maxLength", MAX_TEXT_LENGTH)
        if shortest > MAX_TEXT_LENGTH:
            return NOTHING
        known = _FORMATS.get(str(schema.get("format", "")))
        candidates = [*([known] if known else []), "value", "a1", "1", "a", "A", "2024-01-31", "AB", "ab-1", "YWJj"]
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            candidates += [*matching_texts(pattern), "a" * shortest, "1" * shortest, "A" * shortest]
        for candidate in candidates:
            text = candidate if len(candidate) >= shortest or pattern else candidate + "a" * (shortest - len(candidate))
            text = text[:longest] if not schema.get("format") else text
            if text and shortest <= len(text) <= longest and (not isinstance(pattern, str) or matches(pattern, text)):
                return text
        if isinstance(pattern, str) and not self._minimal and not (self._lenient and not is_enforced(pattern)):
            return NOTHING
        return ("value" + "a" * max(shortest - 5, 0))[: max(longest, 0)]

    def integer(self, schema: Mapping[str, Any], _depth: float) -> Any:
        (low, above), (high, below) = _lowest(schema), _highest(schema)
        written = schema.get("multipleOf", 1)
        step = int(written) if is_number(written) and 1 <= written <= _MAX_EXACT and written == int(written) else 1
        least = 1 if low == -math.inf else math.ceil(low) + (1 if above and low == math.ceil(low) else 0)
        # Use integers, because division of floats is inexact.
        value = -(-max(least, 1 if least <= 1 and high >= 1 else least) // step) * step
        if value > high or (below and value == high):
            most = math.floor(high) - (1 if below and high == math.floor(high) else 0)
            value = most // step * step
        return value

    def number(self, schema: Mapping[str, Any], depth: float) -> Any:
        (low, above), (high, below) = _lowest(schema), _highest(schema)
        if "multipleOf" not in schema:
            for value in (1.5, 0.5, low + 1, high - 1, (low + high) / 2):
                if (
                    low <= value <= high
                    and not ((above and value == low) or (below and value == high))
                    and abs(value) < math.inf
                ):
                    return value
        return self.integer(schema, depth)


_MAKERS: Final[Mapping[str, Callable[[_Sampler, Mapping[str, Any], float], Any]]] = {
    "object": _Sampler.object,
    "array": _Sampler.array,
    "string": _Sampler.string,
    "integer": _Sampler.integer,
    "number": _Sampler.number,
    "boolean": lambda _sampler, _schema, _depth: True,
    "null": lambda _sampler, _schema, _depth: None,
}


def _part_depth(depth: float) -> float:
    """Return the depth of a part of a composed schema, which adds less than a level at deep levels."""
    return depth + (1 if depth < _OPTIONAL_DEPTH else 0.25)


def _author_value(schema: Mapping[str, Any]) -> Any:
    """Return the author's value if it has the right type and is within the simple bounds."""
    if DATA.isdisjoint(schema):  # most schemas, for which the checks below take longer
        return NOTHING
    if "const" in schema:
        return schema["const"]
    enum = schema.get("enum")
    if isinstance(enum, list) and enum:
        fitting = [value for value in enum if _has_type(value, schema)] or enum
        chosen = next((value for value in fitting if value is not None), None)
        if chosen is not None or "null" in (types_of(schema) or ["null"]):
            return chosen  # null is not chosen if `type` excludes null
    stated = author_values({key: value for key, value in schema.items() if key != "enum"})
    return next((value for value in stated if value is not None and _fits_simple_bounds(value, schema)), NOTHING)


def _fits_simple_bounds(value: Any, schema: Mapping[str, Any]) -> bool:
    if not _has_type(value, schema):
        return False
    if isinstance(value, dict | list):  # objects and arrays would need a full validator
        return False
    if isinstance(value, str):
        if not _count(schema, "minLength", 0) <= len(value) <= _count(schema, "maxLength", MAX_TEXT_LENGTH):
            return False
        return not isinstance(schema.get("pattern"), str) or matches(schema["pattern"], value)
    if is_number(value):
        return bool(_lowest(schema)[0] <= value <= _highest(schema)[0])
    return True


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = types_of(schema)
    return not kinds or (has_json_type(value, kinds) and ("number" in kinds or not isinstance(value, float)))


def _kind(schema: Mapping[str, Any]) -> str:
    named = [kind for kind in types_of(schema) if kind in _MAKERS]
    if named:
        return next((kind for kind in named if kind != "null"), "null")
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if {"minimum", "maximum", "multipleOf"} & schema.keys() else "string"


def _distinct(items: Any, value: Any, number: int) -> Any:
    enum = items.get("enum") if isinstance(items, dict) else None
    if isinstance(enum, list):
        return enum[:number] if len(enum) >= number else NOTHING
    if isinstance(value, int) and not isinstance(value, bool):
        return [value + i for i in range(number)]
    return [f"{value}{i}" for i in range(number)] if isinstance(value, str) else NOTHING


def _count(schema: Mapping[str, Any], keyword: str, default: int) -> int:
    value = schema.get(keyword)
    return int(value) if is_number(value) and 0 <= value < math.inf else default


def _lowest(schema: Mapping[str, Any]) -> tuple[float, bool]:
    """Return the lower bound of numbers, and True if the bound is exclusive."""
    low, above = _limit(schema, "minimum", -math.inf), _limit(schema, "exclusiveMinimum", -math.inf)
    return max(low, above), schema.get("exclusiveMinimum") is True or -math.inf < above >= low


def _highest(schema: Mapping[str, Any]) -> tuple[float, bool]:
    """Return the upper bound of numbers, and True if the bound is exclusive."""
    high, below = _limit(schema, "maximum", math.inf), _limit(schema, "exclusiveMaximum", math.inf)
    return min(high, below), schema.get("exclusiveMaximum") is True or math.inf > below <= high


def _limit(schema: Mapping[str, Any], keyword: str, default: float) -> float:
    value: float = schema.get(keyword, default)
    return value if is_number(value) and abs(value) < math.inf else default


def _bound(schema: Mapping[str, Any], *, low: bool, integer: bool) -> Any:
    bound, exclusive = _lowest(schema) if low else _highest(schema)
    if abs(bound) > _MAX_EXACT or (exclusive and not integer):
        return NOTHING
    if exclusive:
        return math.floor(bound) + 1 if low else math.ceil(bound) - 1
    return (math.ceil(bound) if low else math.floor(bound)) if integer else bound


def _other_texts(value: str, kind: str, step: int) -> Iterator[str]:
    digits = list(re.finditer(r"\d", value))
    if kind in _FORMATS or not kind:
        if digits:  # change the last digit of a date, a UUID or an address
            last = digits[-1]
            yield value[: last.start()] + str((int(last[0]) + step) % 10) + value[last.end() :]
        if kind in {"", "uri", "url", "iri", "uri-reference", "json-pointer"}:
            yield f"{value}{step}"
        if "@" in value:
            yield f"{step}{value}"
    yield f"{value}-{step}"
    yield chr(ord("a") + step % 26) + value[1:]


def _invalid_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    shortest, longest = _count(schema, "minLength", 0), _count(schema, "maxLength", _LONGEST_INVALID)
    if 0 < shortest <= _LONGEST_INVALID:
        yield "a" * (shortest - 1)
    if longest < _LONGEST_INVALID:
        yield "a" * (longest + 1)
    if isinstance(schema.get("pattern"), str):
        yield from ("\u00a7 \u00a7", "a a", "")


def _invalid_arrays(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    fewest, most = _count(schema, "minItems", 0), _count(schema, "maxItems", _MAX_ITEMS)
    value = sample(items_schema_of(schema), root, 2)
    if value is not NOTHING:
        if 0 < fewest <= _MAX_ITEMS:
            yield [value] * (fewest - 1)
        if most < _MAX_ITEMS:
            yield [value] * (most + 1)
    yield from ([one] for one in invalid_values(items_schema_of(schema), root))


def _one_kind(schema: Mapping[str, Any]) -> str:
    kinds = [kind for kind in types_of(schema) if kind != "null"] or types_of(schema)
    return kinds[0] if len(set(kinds)) == 1 else ""
