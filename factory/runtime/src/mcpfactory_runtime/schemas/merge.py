"""Merging of two schemas into their intersection or union."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcpfactory_runtime.schemas.value_validation import json_key
from mcpfactory_runtime.schemas.walk import properties_of, required_of, subschemas_of, types_of
from mcpfactory_runtime.types import Json

Combine = Callable[[Any, Any], Any]


def merge_all_of(first: Any, second: Any) -> Any:
    """Return a schema that combines two schemas by `allOf`."""
    return {"allOf": [first, second]}


def intersect_schemas(first: Mapping[str, Any], second: Mapping[str, Any], inner: Combine = merge_all_of) -> Json:
    """Return the intersection of two schemas. In conflicts, keywords of the first schema take precedence.

    `inner` combines the two schemas of a property or of the items.
    """
    done = dict(first)
    for key, value in second.items():
        mine = done.get(key, value)
        if key == "required":
            done[key] = list(dict.fromkeys([*required_of(done), *required_of(second)]))
        elif key == "allOf":
            done[key] = [*subschemas_of(done, key), *subschemas_of(second, key)]
        elif _is_same(mine, value):
            done[key] = mine
        elif key == "properties":
            done[key] = merge_properties(properties_of(done), properties_of(second), inner)
        elif key == "items":
            done[key] = inner(mine, value)
        elif key == "type":
            done[key] = _type_value(common_types(first, second)) or mine
        elif key == "enum" and isinstance(mine, list) and isinstance(value, list):
            permitted = {json_key(one) for one in value}
            done[key] = [one for one in mine if json_key(one) in permitted] or mine
        elif key in {"anyOf", "oneOf"}:
            done["allOf"] = [*subschemas_of(done, "allOf"), {key: value}]
    return done


def unite_schemas(first: Mapping[str, Any], second: Mapping[str, Any], inner: Combine) -> Json:
    """Return a schema that permits all values of both schemas, with only types, values, properties and items."""
    if not first or not second:
        return {}
    if _is_same(first, second):
        return dict(first)
    done: Json = {}
    kinds = dict.fromkeys([*types_of(first), *types_of(second)])
    if types_of(first) and types_of(second):
        done["type"] = _type_value([kind for kind in kinds if not (kind == "integer" and "number" in kinds)])
    mine, theirs = properties_of(first), properties_of(second)
    if (mine or theirs) and all(types_of(one) or properties_of(one) for one in (first, second)):
        done["properties"] = merge_properties(mine, theirs, inner)
    items = [one.get("items", {}) for one in (first, second) if "array" in types_of(one)]
    if items and (shared := items[0] if len(items) == 1 else inner(*items)):
        done["items"] = shared
    values = [enum_values(one) for one in (first, second)]
    if all(one is not None for one in values):
        done["enum"] = distinct(value for one in values for value in one or ())
    needed = required_of(second)
    if required := [name for name in required_of(first) if name in needed]:
        done["required"] = required
    return done


def enum_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the values of `const` or `enum`, or None if the schema has neither."""
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) else None


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values without duplicates, where `1` and `true` are different."""
    return list({json_key(value): value for value in values}.values())


def common_types(first: Any, second: Any) -> list[str]:
    """Return the types that both schemas allow."""
    both_types = types_of(first), types_of(second)
    wide = [{*kinds, "integer"} if "number" in kinds else {*kinds} for kinds in both_types]
    return list(dict.fromkeys(kind for kinds in both_types for kind in kinds if kind in wide[0] & wide[1]))


def _is_same(first: Any, second: Any) -> bool:
    """Return True if two JSON values are equal, where `1` and `true` are different."""
    # first compare with `==`, which is fast, but for which `1 == True`
    return bool(first == second) and json_key(first) == json_key(second)


def _type_value(kinds: list[str]) -> str | list[str]:
    return kinds[0] if len(kinds) == 1 else kinds


def merge_properties(mine: Mapping[str, Any], theirs: Mapping[str, Any], inner: Combine = merge_all_of) -> Json:
    """Return the properties of two schemas."""
    shared = {
        name: inner(mine[name], one) for name, one in theirs.items() if name in mine and not _is_same(mine[name], one)
    }
    return {**mine, **theirs, **shared}
