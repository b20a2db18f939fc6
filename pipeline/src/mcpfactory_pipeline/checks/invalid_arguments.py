"""Arguments that violate one keyword of an inputSchema, for each keyword that a plain value can violate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.checks.samples import sample_value
from mcpfactory_runtime.schemas.sample import invalid_values
from mcpfactory_runtime.schemas.value_validation import is_number
from mcpfactory_runtime.schemas.walk import (
    items_schema_of,
    properties_of,
    required_of,
    types_of,
    without_null,
)
from mcpfactory_runtime.types import Json

_MAX_DEPTH: Final = 3  # levels of nested objects and arrays
_MAX_TRIED: Final = 200  # maximum number of violations of one schema to choose from
_MAX_SETS: Final = 30  # maximum number of argument sets per tool
_LONGEST: Final = 500  # characters; a longer text is not sent
_MOST_ITEMS: Final = 20
_WORD: Final = "mcpfactory"  # part of each text, so that a tool that uses the text can repeat it
_OBJECT: Final[Json] = {_WORD: []}
# Type → values that no library converts to this type. Libraries unwrap arrays of one item, so a pair is used.
_OTHER_TYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": (_OBJECT, [_WORD, _WORD]),
    "number": (_OBJECT, _WORD),
    "integer": (_OBJECT, _WORD),
    "boolean": (_OBJECT,),
    "array": (_OBJECT,),
    "object": (_WORD,),
}


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Arguments that violate `keyword`. `optional` is True if the call would be valid without the changed argument."""

    title: str
    arguments: Json
    keyword: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class _Violation:
    keyword: str
    value: Any  # new value of the place that the violation is in
    title: str
    optional: bool = False
    sort: tuple[Any, ...] = ()  # most servers treat violations of equal sorts alike


def invalid_arguments(schema: Any, made: Mapping[str, Any]) -> list[InvalidArguments]:
    """Return variations of the valid arguments `made`; [] if `made` or the schema is invalid.

    The first violation of each sort comes first, and required arguments come before optional arguments.
    """
    if not isinstance(schema, dict) or schema_error(schema) or instance_error(made, schema):
        return []
    seen: Counter[tuple[Any, ...]] = Counter()
    ranked: list[tuple[int, bool, _Violation]] = []
    for one in islice(_object_violations(schema, made, schema, "", 0), _MAX_TRIED):
        if instance_error(one.value, schema):
            ranked.append((seen[one.sort], one.optional, one))
            seen[one.sort] += 1
    ranked.sort(key=lambda one: one[:2])
    return [InvalidArguments(one.title, one.value, one.keyword, one.optional) for _, _, one in ranked[:_MAX_SETS]]


def _object_violations(
    schema: Mapping[str, Any], value: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> Iterator[_Violation]:
    needed = required_of(schema)
    for key in needed:
        if key in value:
            rest = {name: one for name, one in value.items() if name != key}
            yield _Violation("required", rest, f"without {_join(path, key)!r}", sort=("required", depth))
    for key, part in properties_of(schema).items():
        base = value[key] if key in value else sample_value(part, root)
        for one in _violations(part, base, root, _join(path, key), depth):
            yield replace(one, value={**value, key: one.value}, optional=one.optional or key not in needed)
    if schema.get("additionalProperties") is False:
        title = f"with the undeclared {_join(path, _WORD)!r}"
        sort = ("additionalProperties", depth)
        yield _Violation("additionalProperties", {**value, _WORD: _WORD}, title, sort=sort)


def _violations(part: Any, value: Any, root: Mapping[str, Any], path: str, depth: int) -> Iterator[_Violation]:
    """Yield the violations of one value, the value itself first, then its members and items."""
    part = without_null(part, root)
    kinds = [kind for kind in types_of(part) if kind != "null"] if isinstance(part, dict) else []
    if len(kinds) > 1 or not isinstance(part, dict):
        return
    kind = kinds[0] if kinds else ""
    for keyword, values in _VALUES.items():
        for number, wrong in enumerate(values(part, kind, value, root)):
            shown = "an object" if isinstance(wrong, dict) else json.dumps(wrong, ensure_ascii=False)[:60]
            sort = (keyword, kind, number, depth > 0)
            yield _Violation(keyword, wrong, f"with {shown} as {path!r} ({keyword})", sort=sort)
    if depth >= _MAX_DEPTH:
        return
    if kind == "object" and isinstance(value, dict):
        yield from _object_violations(part, value, root, path, depth + 1)
    elif kind == "array" and isinstance(value, list):
        items = items_schema_of(part)
        first = value[0] if value else sample_value(items, root)
        for one in _violations(items, first, root, f"{path}[0]", depth + 1):
            yield replace(one, value=[one.value, *value[1:]])


_Values = Callable[[Mapping[str, Any], str, Any, Mapping[str, Any]], Iterator[Any]]
"""Function of a schema, its type, a valid value and the root schema that yields invalid values, or nothing."""


def _unlisted(part: Mapping[str, Any], kind: str, _value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    listed = part.get("enum")
    if isinstance(listed, list) and listed:
        yield 987_654_321 if all(map(is_number, listed)) else f"{_WORD}-no-such-value"


def _inconstant(part: Mapping[str, Any], kind: str, _value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    if "const" in part and kind in ("", "string"):
        yield f"{_WORD}-no-such-value"


def _unmatched(part: Mapping[str, Any], _kind: str, _value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part.get("pattern"), str):
        texts = (f"{_WORD} \u00a7", "\u00a7 \u00a7", "")
        yield from islice((one for one in texts if instance_error(one, {"pattern": part["pattern"]})), 1)


def _outside(part: Mapping[str, Any], kind: str, _value: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    if kind in ("integer", "number"):
        yield from filter(is_number, invalid_values({**part, "enum": None}, root))


def _short(part: Mapping[str, Any], kind: str, _value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    fewest = part.get("minLength")
    if kind == "string" and is_number(fewest) and 0 < fewest <= _LONGEST:
        yield "m" * (int(fewest) - 1)


def _long(part: Mapping[str, Any], kind: str, _value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    most = part.get("maxLength")
    if kind == "string" and is_number(most) and 0 <= most < _LONGEST:
        yield "m" * (int(most) + 1)


def _few(part: Mapping[str, Any], kind: str, value: Any, _root: Mapping[str, Any]) -> Iterator[Any]:
    fewest = part.get("minItems")
    if kind == "array" and isinstance(value, list) and is_number(fewest) and 0 < fewest <= _MOST_ITEMS:
        yield value[: int(fewest) - 1]


def _many(part: Mapping[str, Any], kind: str, value: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    most = part.get("maxItems")
    if kind == "array" and isinstance(value, list) and is_number(most) and 0 <= most < _MOST_ITEMS:
        item = value[0] if value else sample_value(items_schema_of(part), root)
        yield [item] * (int(most) + 1)


_VALUES: Final[Mapping[str, _Values]] = {
    "type": lambda _part, kind, _value, _root: iter(_OTHER_TYPES.get(kind, ())),
    "enum": _unlisted,
    "const": _inconstant,
    "pattern": _unmatched,
    "minLength": _short,
    "minItems": _few,
    "bounds": _outside,
    "maxLength": _long,
    "maxItems": _many,
}


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
