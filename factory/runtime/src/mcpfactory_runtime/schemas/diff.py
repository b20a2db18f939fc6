"""Differences of two schemas: values that are no longer accepted, and values that are newly accepted.

A difference is `(code, path, message)`, with a path such as `address.street` or `tags[]`. Changes of keywords such as
`not` or `if` have the code "schema-changed", because their meaning is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_runtime.schemas.merge import enum_values
from mcpfactory_runtime.schemas.walk import (
    TYPES,
    definitions_of,
    items_schema_of,
    map_schema,
    properties_of,
    required_of,
    resolve_definition,
    subschemas_of,
    types_of,
)
from mcpfactory_runtime.types import Json

_Found = tuple[str, str, str]
_Defs = tuple[Mapping[str, Any], Mapping[str, Any]]

_DEPTH: Final = 12  # maximum nesting of compared values
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_ONLY: Final = ("pattern", "format", "multipleOf", "uniqueItems", "contentEncoding", "contentMediaType")
_TEXTS: Final = ("title", "description", "examples", "example", "deprecated", "$comment")
_BRANCHES: Final = ("anyOf", "oneOf")
_OTHER: Final = (
    *("allOf", "not", "if", "then", "else", "prefixItems", "contains", "minContains", "maxContains", "propertyNames"),
    *("patternProperties", "dependentSchemas", "dependentRequired", "unevaluatedItems", "unevaluatedProperties"),
)
_SHOWN: Final = 6  # maximum values in a message


def property_changes(old: Json, new: Json) -> Iterator[_Found]:
    """Yield the differences between the properties of two objects, including nested properties."""
    definitions = definitions_of(old), definitions_of(new)
    # Compare the JSON texts, because 1 == True in Python.
    if _compact([old, definitions[0]]) != _compact([new, definitions[1]]):
        yield from _members(old, new, "", definitions, frozenset())


def removed_or_retyped_properties(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of values that were removed or have another type. An empty new schema permits all values."""
    if not isinstance(old, dict) or not isinstance(new, dict) or not new:
        return
    if old.get("type") != new.get("type") and "type" in old:
        yield path or "their type"
    before, after = properties_of(old), properties_of(new)
    for member, one in before.items() if after else ():
        inner = f"{path}.{member}" if path else member
        if member not in after:
            yield inner
        else:
            yield from removed_or_retyped_properties(one, after[member], inner)
    yield from removed_or_retyped_properties(items_schema_of(old), items_schema_of(new), f"{path}[]")


def _compare(old: Any, new: Any, path: str, defs: _Defs, above: frozenset[tuple[str, ...]]) -> Iterator[_Found]:
    pair = tuple(str(one.get("$ref", "")) if isinstance(one, dict) else "" for one in (old, new))
    if (any(pair) and pair in above) or path.count(".") + path.count("[") > _DEPTH:
        return  # a cycle, because a caller already compares both schemas
    above |= {pair} if any(pair) else set()
    before, after = _resolved(old, defs[0]), _resolved(new, defs[1])
    yield from _types(before, after, path)
    yield from _enums(before, after, path)
    yield from _bounds(before, after, path)
    yield from _only(before, after, path)
    yield from _members(before, after, path, defs, above)
    if "items" in before or "items" in after:
        yield from _compare(items_schema_of(before), items_schema_of(after), path + "[]", defs, above)
    for keyword in _BRANCHES:
        yield from _branches(keyword, before, after, path, defs)
    plain = [
        _plain({key: schema[key] for key in _OTHER if key in schema}, one)
        for schema, one in zip((before, after), defs, strict=True)
    ]
    changed = [key for key in _OTHER if plain[0].get(key) != plain[1].get(key)]
    if changed:
        yield "schema-changed", path, f"{', '.join(changed)} changed"
    texts = [key for key in _TEXTS if before.get(key) != after.get(key)]
    if texts:
        yield "text-changed", path, f"{', '.join(texts)} changed"


def _resolved(schema: Any, defs: Mapping[str, Any]) -> Json:
    found = resolve_definition(schema, defs)
    return found if isinstance(found, dict) else {"not": {}} if found is False else {}


def _types(old: Json, new: Json, path: str) -> Iterator[_Found]:
    before, after = _kinds(old), _kinds(new)
    if before == after:
        return
    change = f"{_words(before)} → {_words(after)}"
    if after < before:
        yield "type-narrowed", path, change
    elif after > before:
        yield "type-widened", path, change
    else:
        yield "type-changed", path, change


def _kinds(schema: Json) -> frozenset[str]:
    kinds = frozenset(types_of(schema)) or TYPES
    return kinds | {"integer"} if "number" in kinds else kinds


def _words(kinds: frozenset[str]) -> str:
    if kinds == TYPES:
        return "anything"
    return " or ".join(sorted(kinds - {"integer"} if "number" in kinds else kinds))


def _enums(old: Json, new: Json, path: str) -> Iterator[_Found]:
    before, after = _values(old), _values(new)
    if before is not None and (after is None or set(after) - set(before)):
        added = [] if after is None else [value for value in after if value not in before]
        yield "enum-widened", path, f"also {_list(added)}" if added else "any value"
    if after is not None and (before is None or set(before) - set(after)):
        gone = [] if before is None else [value for value in before if value not in after]
        yield "enum-narrowed", path, f"no longer {_list(gone)}" if gone else f"only {_list(after)}"


def _values(schema: Json) -> list[str] | None:
    values = enum_values(schema)
    return None if values is None else [_compact(value) for value in values]


def _list(values: list[str]) -> str:
    return ", ".join(values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")


def _bounds(old: Json, new: Json, path: str) -> Iterator[_Found]:
    for keyword, sign in [*((key, 1) for key in _UPPER), *((key, -1) for key in _LOWER)]:
        before, after = (_bound(schema.get(keyword), sign) for schema in (old, new))
        if before != after:
            code = "constraint-narrowed" if after < before else "constraint-widened"
            yield code, path, _keyword_change(keyword, old, new)


def _bound(value: Any, sign: int) -> float:
    """Return a bound as a number, which is larger if the bound permits more values."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value * sign if known else float("inf")


def _only(old: Json, new: Json, path: str) -> Iterator[_Found]:
    """Yield the changes of keywords that can only be compared as a whole."""
    for keyword in _ONLY:
        before, after = old.get(keyword) or None, new.get(keyword) or None
        if before != after:
            yield (
                "constraint-widened" if after is None else "constraint-narrowed",
                path,
                _keyword_change(keyword, old, new),
            )


def _keyword_change(keyword: str, old: Json, new: Json) -> str:
    before, after = (_compact(schema[keyword]) if keyword in schema else "none" for schema in (old, new))
    return f"{keyword} {before} → {after}"


def _members(old: Json, new: Json, path: str, defs: _Defs, above: frozenset[tuple[str, ...]]) -> Iterator[_Found]:
    before, after = properties_of(old), properties_of(new)
    needed, needs = set(required_of(old)), set(required_of(new))
    open_before, open_after = (schema.get("additionalProperties", True) for schema in (old, new))
    for name in before:
        if name not in after:
            gone = "argument-removed" if not path or open_after is False else "schema-changed"
            yield gone, _below(path, name), "is gone"
    for name in after:
        inner = _below(path, name)
        if name not in before:
            code = "argument-added-required" if name in needs else "argument-added"
            yield code, inner, "is new and required" if name in needs else "is new"
            continue
        if name in needs - needed:
            yield "argument-required", inner, "is now required"
        if name in needed - needs:
            yield "argument-optional", inner, "is no longer required"
        if not path:  # servers send only top-level defaults
            yield from _default(before[name], after[name], inner)
        yield from _compare(before[name], after[name], inner, defs, above)
    for name in sorted(needs - needed - after.keys()):
        yield "argument-required", _below(path, name), "is now required"
    if not path:
        return
    if open_before is False and open_after is not False:
        yield "constraint-widened", path, "accepts other properties"
    elif open_before is not False and open_after is False:
        yield "constraint-narrowed", path, "accepts no other properties"
    elif isinstance(open_before, dict) or isinstance(open_after, dict):
        yield from _compare(open_before, open_after, f"{path}.*", defs, above)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _default(old: Any, new: Any, path: str) -> Iterator[_Found]:
    before, after = (_compact(one.get("default")) if isinstance(one, dict) else "null" for one in (old, new))
    if before == after:
        return
    if before == "null":
        yield "default-added", path, f"is {after} when it is left out"
    else:
        change = f"{before} → {after}" if after != "null" else f"{before} is gone"
        yield "default-changed", path, f"default {change}"


def _branches(keyword: str, old: Json, new: Json, path: str, defs: _Defs) -> Iterator[_Found]:
    if keyword not in old and keyword not in new:
        return
    before = {_compact(_plain(branch, defs[0])) for branch in subschemas_of(old, keyword)}
    after = {_compact(_plain(branch, defs[1])) for branch in subschemas_of(new, keyword)}
    if before == after or (keyword == "oneOf" and _opened(old, new)):
        return
    if keyword == "anyOf" and _opened(old, new):
        yield "constraint-widened", path, "may fit several of its forms"
    elif keyword == "anyOf" and before and before < after:
        yield "type-widened", path, f"{keyword} has more branches"
    elif keyword == "anyOf" and after and (after < before or not before):
        yield "type-narrowed", path, f"{keyword} has fewer branches" if before else f"{keyword} is new"
    else:
        yield "schema-changed", path, f"{keyword} changed"


def _opened(old: Json, new: Json) -> bool:
    return "oneOf" in old and "oneOf" not in new and "anyOf" in new and "anyOf" not in old


def _plain(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a schema without texts and references, to compare the accepted values."""
    if depth > _DEPTH:
        return None
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = _resolved(schema, defs)
        depth += 4  # each reference counts as four levels, so that a cycle ends soon
    kept = {key: value for key, value in schema.items() if key not in _TEXTS and key != "default"}
    if "required" in kept:
        kept["required"] = sorted(required_of(kept))
    return map_schema(kept, lambda part: _plain(part, defs, depth + 1))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
