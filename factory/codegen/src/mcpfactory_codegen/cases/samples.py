"""Deterministic sample values for schemas.

The author's own example, default or enumeration comes first, then the smallest value that the schema's formats and
bounds allow. Cyclic schemas terminate: below a few levels only required members are filled in, and then nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

from mcpfactory_codegen.cases.patterns import LONGEST, is_judged, matches, texts
from mcpfactory_codegen.ir import JsonSchema, lookup


class _Nothing:
    """No value can be made."""


NOTHING: Final = _Nothing()

_DEPTH: Final = 8
_OPTIONAL_DEPTH: Final = 2
_MOST_PARTS: Final = 200
_MOST_ITEMS: Final = 20
_MOST: Final = 5_000
"""Schemas that one sample may look at, and values that it may have: each can ask for all others again, eight levels deep."""
_left: ContextVar[int] = ContextVar("left", default=0)
_lenient: ContextVar[bool] = ContextVar("lenient", default=False)
FORMATS: Final = {
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


def sample(schema: JsonSchema, schemas: dict[str, JsonSchema], depth: float = 0) -> Any:
    """Return a value for the schema, or `NOTHING` when none is known (`false`, or a cycle of required properties)."""
    if isinstance(schema, bool):
        return "value" if schema else NOTHING
    left = _left.get() if depth else _MOST
    _left.set(left - 1)
    if depth > _DEPTH or left < 0:
        return NOTHING
    schema = lookup(schema, schemas)
    if isinstance(schema, bool):
        return sample(schema, schemas, depth)
    given = _author_value(schema)
    if given is not NOTHING:
        return given
    for key in ("oneOf", "anyOf"):
        if schema.get(key):
            return _branch(schema, key, schemas, depth)
    if schema.get("allOf"):
        return _all_of(schema, schemas, depth)
    return _MAKERS[_kind(schema)](schema, schemas, depth)


def lenient_sample(schema: JsonSchema, schemas: dict[str, JsonSchema]) -> Any:
    """Return a value for a schema that has to have one: patterns that no server judges by do not count."""
    token = _lenient.set(True)
    try:
        return sample(schema, schemas)
    finally:
        _lenient.reset(token)


def _author_value(schema: dict[str, Any]) -> Any:
    """Return the author's value: `const`, an example, the first enum value, or a default."""
    if "const" in schema:
        return schema["const"]
    enum = schema.get("enum")
    if isinstance(enum, list) and enum:
        fitting = [value for value in enum if _has_type(value, schema)] or enum
        chosen = next((value for value in fitting if value is not None), None)
        if chosen is not None or "null" in schema.get("type", "null"):
            return chosen  # else null is listed, and ruled out by another part of the schema
    for value in _examples(schema):
        if value is not None and _fits_plainly(value, schema):
            return value
    if schema.get("default") is not None and _fits_plainly(schema["default"], schema):
        return schema["default"]
    return NOTHING


def _examples(schema: dict[str, Any]) -> list[Any]:
    examples = schema.get("examples")
    return [
        *(examples[:1] if isinstance(examples, list) else []),
        *([schema["example"]] if "example" in schema else []),
    ]


def _fits_plainly(value: Any, schema: dict[str, Any]) -> bool:
    """Return True if an author's example has one of the schema's types and keeps its simple bounds.

    Many examples do not.
    """
    if not _has_type(value, schema):
        return False
    if isinstance(value, dict | list):  # a composed example must fit composed schemas: not worth the risk
        return False
    if isinstance(value, str):
        longest = schema.get("maxLength", LONGEST)
        if not schema.get("minLength", 0) <= len(value) <= longest:
            return False
        return not isinstance(schema.get("pattern"), str) or matches(schema["pattern"], value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(_low(schema)[0] <= value <= _high(schema)[0])
    return True


def _has_type(value: Any, schema: dict[str, Any]) -> bool:
    kinds = _types(schema.get("type", []))
    return not kinds or any(_is(value, kind) for kind in kinds)


def _types(kinds: Any) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int):
        return kind in {"integer", "number"}
    types = {"string": str, "number": float, "array": list, "object": dict, "null": type(None)}
    return isinstance(value, types.get(kind, ()))


def _branch(schema: dict[str, Any], key: str, schemas: dict[str, JsonSchema], depth: float) -> Any:
    rest = {name: value for name, value in schema.items() if name != key}
    for branch in schema[key]:
        inner = lookup(branch, schemas)
        if not isinstance(inner, dict) or inner.get("type") == "null":
            continue
        if {"type"} <= rest.keys() & inner.keys() and not _common_types(rest["type"], inner["type"]):
            continue
        value = sample({"allOf": [rest, inner]} if rest.keys() & _SHAPING else inner, schemas, _beside(depth))
        if value is not NOTHING:
            return value
    nullable = any(isinstance(one, dict) and one.get("type") == "null" for one in schema[key])
    return None if nullable and (not rest.get("type") or "null" in rest["type"]) else NOTHING


def _beside(depth: float) -> float:
    """Return the depth for a schema of the same value.

    It grows by less than a full level, so that deeply composed schemas still get a sample.
    """
    return depth + (1 if depth < _OPTIONAL_DEPTH else 0.25)


_SHAPING: Final = frozenset({"properties", "required", "items", "type", "allOf", "anyOf", "oneOf"})


_PLAIN: Final = ("string", "number", "integer", "boolean")


def _describes_object(schema: dict[str, Any], schemas: dict[str, JsonSchema], levels: int = 3) -> bool:
    if schema.get("type") == "object" or "properties" in schema:
        return True
    parts = [lookup(part, schemas) for part in schema.get("allOf", ())] if levels else []
    return any(isinstance(part, dict) and _describes_object(part, schemas, levels - 1) for part in parts)


def _all_of(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    """Objects merged; of anything else the parts' keywords together."""
    merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
    parts = [inner for part in schema["allOf"] if isinstance(inner := lookup(part, schemas), dict)]
    # drop scalar parts: no value is both an object and a scalar
    if any(_describes_object(part, schemas) for part in parts):
        parts = [part for part in parts if part.get("type", "object") not in _PLAIN]
    for inner in parts:
        for key, value in inner.items():
            if key == "properties":
                merged[key] = _both(merged.get(key, {}), value)
            elif key == "items" and merged.get(key, value) != value:
                merged[key] = {"allOf": [merged[key], value]}
            elif key == "type" and key in merged:
                merged[key] = _common_types(merged[key], value) or merged[key]
            elif key in {"oneOf", "anyOf"} and merged.get(key, value) != value:
                merged["allOf"] = [*merged.get("allOf", []), {key: value}]
            elif key == "enum" and "enum" in merged:
                merged[key] = [one for one in merged[key] if one in value]
            elif key in {"required", "allOf"}:
                merged[key] = [*merged.get(key, []), *value]
            else:
                merged.setdefault(key, value)
    return sample(merged, schemas, _beside(depth)) if len(merged.get("allOf", ())) <= _MOST_PARTS else NOTHING


def _common_types(one: Any, other: Any) -> list[str]:
    """Return the types that both allow; an integer is a number."""
    both = [_types(one), _types(other)]
    wide = [{*kinds, "integer"} if "number" in kinds else {*kinds} for kinds in both]
    return [kind for kinds in both for kind in kinds if kind in wide[0] & wide[1]]


def _both(one: dict[str, JsonSchema], other: dict[str, JsonSchema]) -> dict[str, JsonSchema]:
    """Return the properties of two objects; what both describe has to be what both say."""
    merged = {**other, **one}
    for name in one.keys() & other.keys():
        if one[name] != other[name]:
            merged[name] = {"allOf": [one[name], other[name]]}
    return merged


def _kind(schema: dict[str, Any]) -> str:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((kind for kind in kinds if kind != "null"), "null")
    if isinstance(kinds, str) and kinds in _MAKERS:
        return kinds
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if {"minimum", "maximum", "multipleOf"} & schema.keys() else "string"


# --- one maker a type ---


def _object(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    # In the document's order: that of a set is another one in each process.
    required = dict.fromkeys(schema.get("required", ()))
    properties: dict[str, JsonSchema] = dict(schema.get("properties", {}))
    extra = schema.get("additionalProperties")
    for name in required:
        properties.setdefault(name, extra if isinstance(extra, dict) else {"type": "string"})
    built = {}
    for name, inner in properties.items():
        if name not in required and depth >= _OPTIONAL_DEPTH:
            continue
        value = sample(inner, schemas, depth + 1)
        if value is NOTHING and name in required:
            return NOTHING
        if value is not NOTHING:
            built[name] = value
    if not built and isinstance(extra, dict) and depth < _OPTIONAL_DEPTH:
        value = sample(extra, schemas, depth + 1)
        names = lookup(schema.get("propertyNames", {}), schemas)
        name = sample({"type": "string", **(names if isinstance(names, dict) else {})}, schemas, depth + 1)
        if value is not NOTHING and isinstance(name, str):
            built = {name if "propertyNames" in schema else "key": value}
    return built


def _array(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    items = schema.get("items", {})
    fewest = schema.get("minItems", 0)
    first = [
        value for one in schema.get("prefixItems", ()) if (value := sample(one, schemas, depth + 1)) is not NOTHING
    ]
    if first and fewest <= len(first):
        return first
    if fewest > _MOST_ITEMS or schema.get("maxItems", 1) < 1:
        return [] if fewest == 0 else NOTHING
    before = _left.get()
    value = sample(items, schemas, depth + 1)
    more = (before - _left.get()) * max(0, fewest - 1)  # each item is written, and arrays are in arrays
    if more > max(0, _left.get()):
        return NOTHING
    _left.set(_left.get() - more)
    if fewest == 0 and (value is NOTHING or value is None):  # null where an object is too deep says nothing
        return []
    if value is NOTHING:
        return NOTHING
    if schema.get("uniqueItems") and fewest > 1:
        return _distinct(lookup(items, schemas), value, fewest)
    return [value] * max(1, fewest)


def _distinct(items: JsonSchema, value: Any, count: int) -> Any:
    enum = items.get("enum") if isinstance(items, dict) else None
    if isinstance(enum, list):
        return enum[:count] if len(enum) >= count else NOTHING
    if isinstance(value, int) and not isinstance(value, bool):
        return [value + i for i in range(count)]
    return [f"{value}{i}" for i in range(count)] if isinstance(value, str) else NOTHING


def _string(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", LONGEST)
    if shortest > LONGEST:
        return NOTHING
    known = FORMATS.get(schema.get("format", ""))
    candidates = [*([known] if known else []), "value", "a1", "1", "a", "A", "2024-01-31", "AB", "ab-1", "YWJj"]
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        candidates += [*texts(pattern), "a" * shortest, "1" * shortest, "A" * shortest]
    for candidate in candidates:
        text = candidate if len(candidate) >= shortest or pattern else candidate + "a" * (shortest - len(candidate))
        text = text[:longest] if not schema.get("format") else text
        if text and shortest <= len(text) <= longest and (not isinstance(pattern, str) or matches(pattern, text)):
            return text
    if isinstance(pattern, str) and not (_lenient.get() and not is_judged(pattern)):
        return NOTHING
    return ("value" + "a" * max(shortest - 5, 0))[: max(longest, 0)]


def _low(schema: dict[str, Any]) -> tuple[float, bool]:
    low, exclusive = schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)
    if isinstance(exclusive, bool):
        return low, exclusive
    return (exclusive, True) if exclusive >= low and exclusive != -math.inf else (low, False)


def _high(schema: dict[str, Any]) -> tuple[float, bool]:
    high, exclusive = schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)
    if isinstance(exclusive, bool):
        return high, exclusive
    return (exclusive, True) if exclusive <= high and exclusive != math.inf else (high, False)


def _integer(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    (low, above), (high, below) = _low(schema), _high(schema)
    step = schema.get("multipleOf", 1)
    step = int(step) if isinstance(step, int | float) and step >= 1 and step == int(step) else 1
    least = 1 if low == -math.inf else math.ceil(low) + (1 if above and low == math.ceil(low) else 0)
    value = -(-max(least, 1 if least <= 1 and high >= 1 else least) // step) * step  # exact, however large
    if value > high or (below and value == high):
        most = math.floor(high) - (1 if below and high == math.floor(high) else 0)
        value = most // step * step
    return value


def _number(schema: dict[str, Any], schemas: dict[str, JsonSchema], depth: float) -> Any:
    (low, above), (high, below) = _low(schema), _high(schema)
    if "multipleOf" not in schema:
        for value in (1.5, 0.5, low + 1, high - 1, (low + high) / 2):
            if (
                low <= value <= high
                and not ((above and value == low) or (below and value == high))
                and abs(value) < math.inf
            ):
                return value
    return _integer(schema, schemas, depth)


_MAKERS: Final[Mapping[str, Callable[..., Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda _schema, _schemas, _depth: True,
    "null": lambda _schema, _schemas, _depth: None,
}


# --- Values on and just outside a schema's bounds, and near a sample: the inputs of tool tests ---
#
# All values follow from the schema's simple keywords and are deterministic. The tool's whole schema decides if a
# value is really inside or outside (`cases` checks it), because combined schemas can require more.


_LONGEST_EDGE: Final = 500  # characters of a text made here
_STRANGE: Final = {"mcpfactory": ["no", "such", "value"]}  # fits no scalar


def neighbours(value: Any, schema: JsonSchema, schemas: dict[str, JsonSchema], step: int) -> Iterator[Any]:
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


def two_items(value: list[Any], schema: JsonSchema, schemas: dict[str, JsonSchema]) -> Iterator[list[Any]]:
    """Arrays with one more item than `value`, which has one: only several items show how an array is written."""
    schema = lookup(schema, schemas)
    items = schema.get("items", {}) if isinstance(schema, dict) else {}
    if len(value) == 1:
        yield from ([value[0], other] for other in neighbours(value[0], items, schemas, 1))


def _bound(schema: dict[str, Any], *, low: bool, integer: bool) -> Any:
    keyword, exclusive = ("minimum", "exclusiveMinimum") if low else ("maximum", "exclusiveMaximum")
    bound, beyond = schema.get(keyword), schema.get(exclusive)
    if isinstance(beyond, int | float) and not isinstance(beyond, bool):
        if not integer:
            return NOTHING
        bound = math.floor(beyond) + 1 if low else math.ceil(beyond) - 1
    if not isinstance(bound, int | float) or isinstance(bound, bool) or abs(bound) > 2**53:
        return NOTHING
    return (math.ceil(bound) if low else math.floor(bound)) if integer else bound


def invalid_values(schema: JsonSchema, schemas: dict[str, JsonSchema]) -> Iterator[Any]:
    """Values just outside of the schema: beyond each bound and length, none of the enumeration, and of no type of its."""
    schema = lookup(schema, schemas)
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
        yield from _invalid_arrays(schema, schemas)
    elif kind == "boolean":
        yield "perhaps"
    elif kind == "object":
        required = schema.get("required")
        if isinstance(required, list) and required:
            yield {}
        yield "no object"
    if kind not in {"", "object"}:
        yield _STRANGE


def _invalid_texts(schema: dict[str, Any]) -> Iterator[str]:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", _LONGEST_EDGE)
    if isinstance(shortest, int) and 0 < shortest <= _LONGEST_EDGE:
        yield "a" * (shortest - 1)
    if isinstance(longest, int) and longest < _LONGEST_EDGE:
        yield "a" * (longest + 1)
    if isinstance(schema.get("pattern"), str):
        yield from ("\u00a7 \u00a7", "a a", "")


def _invalid_arrays(schema: dict[str, Any], schemas: dict[str, JsonSchema]) -> Iterator[Any]:
    fewest, most = schema.get("minItems", 0), schema.get("maxItems", _MOST_ITEMS)
    value = sample(schema.get("items", {}), schemas, 2)
    if value is not NOTHING:
        if isinstance(fewest, int) and 0 < fewest <= _MOST_ITEMS:
            yield [value] * (fewest - 1)
        if isinstance(most, int) and most < _MOST_ITEMS:
            yield [value] * (most + 1)
    yield from ([one] for one in invalid_values(schema.get("items", {}), schemas))


def _one_kind(schema: dict[str, Any]) -> str:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((kind for kind in kinds if kind != "null"), "") if len(set(kinds) - {"null"}) == 1 else ""
    return kinds if isinstance(kinds, str) else ""
