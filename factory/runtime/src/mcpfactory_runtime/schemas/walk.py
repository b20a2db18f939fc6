"""Traversal of JSON Schema: keywords that contain schemas, readers of one schema, and references in a document.

Schemas may come from unknown servers, so `types_of` and the other readers accept any value, and `walk` uses no
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

Steps = tuple[str | int, ...]
"""Location in a schema. Each level has a keyword, and often a name or an index below the keyword."""

APPLICATORS: Final[dict[str, Literal["one", "list", "map"]]] = {
    **dict.fromkeys(("additionalItems", "additionalProperties", "contains", "contentSchema"), "one"),
    **dict.fromkeys(("else", "if", "items", "not", "propertyNames", "then"), "one"),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), "one"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "list"),
    **dict.fromkeys(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"), "map"),
}
"""Keywords that contain a schema, a list of schemas, or schemas by name."""
COMBINATORS: Final = ("allOf", "anyOf", "oneOf")
IN_PLACE: Final = frozenset({"$ref", *COMBINATORS, "not", "if", "then", "else", "dependentSchemas"})
"""Keywords that apply a schema to the same value, so that a reference cycle through only these never ends."""
DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords that contain data, not schemas."""
TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_HOPS: Final = 12  # maximum references to follow in a chain
_PREFIX: Final = "#/$defs/"


def children(schema: Any) -> Iterator[tuple[Steps, Any]]:
    """Yield the direct subschemas of a schema, with their locations. Before 2020-12, `items` may be a list."""
    for keyword, value in schema.items() if isinstance(schema, Mapping) else ():
        holds = APPLICATORS.get(keyword)
        if holds == "map":
            yield from (((keyword, name), part) for name, part in value.items()) if isinstance(value, Mapping) else ()
        elif isinstance(value, list) and (holds == "list" or keyword == "items"):
            yield from (((keyword, index), part) for index, part in enumerate(value))
        elif holds == "one":
            yield (keyword,), value


def walk(schema: Any) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    """Yield a schema and all its subschemas with their locations, outer schemas first. References are not followed."""
    waiting: list[tuple[Steps, Any]] = [((), schema)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, Mapping):
            yield place, part
            waiting += reversed([((*place, *steps), child) for steps, child in children(part)])


def map_schema(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the schema with `change` applied to each direct subschema."""
    done = dict(schema)
    for keyword, value in schema.items():
        holds = APPLICATORS.get(keyword)
        if holds == "map" and isinstance(value, Mapping):
            done[keyword] = {name: change(part) for name, part in value.items()}
        elif isinstance(value, list) and (holds == "list" or keyword == "items"):
            done[keyword] = [change(part) for part in value]
        elif holds == "one":
            done[keyword] = change(value)
    return done


# --- keywords of one schema; {} or [] if missing or invalid ---


def types_of(schema: Any) -> list[str]:
    """Return the types in the keyword `type`."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return [one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str)]


def properties_of(schema: Any) -> Mapping[str, Any]:
    """Return the schemas of the declared properties."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def required_of(schema: Any) -> list[str]:
    """Return the names of the required properties."""
    found = schema.get("required") if isinstance(schema, Mapping) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def items_schema_of(schema: Any) -> Any:
    """Return the schema of an array's items, or True if any item is valid."""
    return schema.get("items", True) if isinstance(schema, Mapping) else True


def subschemas_of(schema: Any, *keywords: str) -> list[Any]:
    """Return the schemas in the lists under the given keywords."""
    lists = (schema.get(keyword) for keyword in keywords) if isinstance(schema, Mapping) else ()
    return [part for found in lists if isinstance(found, list) for part in found]


def definitions_of(schema: Any) -> Mapping[str, Any]:
    """Return the definitions in `$defs`."""
    found = schema.get("$defs") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


# --- JSON pointers (RFC 6901) and references ---


def escape(token: str) -> str:
    """Escape a name as a reference token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def unescape(token: str) -> str:
    """Return the name that a token of a JSON pointer encodes."""
    return token.replace("~1", "/").replace("~0", "~")


def pointer(steps: Iterable[str | int]) -> str:
    """Return a location as a JSON pointer."""
    return "".join(f"/{escape(str(step))}" for step in steps)


def definition_reference(name: str) -> str:
    """Return the reference to a definition."""
    return _PREFIX + escape(name)


def definition(reference: Any) -> str:
    """Return the name in a reference `#/$defs/<name>`, or "" for any other value."""
    known = isinstance(reference, str) and reference.startswith(_PREFIX)
    return unescape(reference.removeprefix(_PREFIX)) if known else ""


def resolve(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow `$ref`s at the top of a schema in the document `root`. Keywords next to `$ref` take precedence.

    A dangling, remote or circular reference gives {}.
    """
    for _ in range(_HOPS + 1):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str):
            return schema
        target = _at(root, reference)
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **siblings} if siblings and isinstance(target, Mapping) else target
    return {}


def resolve_definition(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Follow `$ref`s at the top of a schema to their targets in `definitions`."""
    return resolve(schema, {"$defs": definitions})


def _at(root: Any, reference: str) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        return {}
    for step in reference.split("/")[1:]:
        key = unescape(step)
        if isinstance(root, list) and key.isdecimal() and int(key) < len(root):
            root = root[int(key)]
        else:
            root = root.get(key, {}) if isinstance(root, Mapping) else {}
    return root


def without_null(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema with the keywords of its only branch of `anyOf` or `oneOf` that is not null.

    Libraries write optional values in this way. References are followed. Other schemas are returned unchanged.
    """
    schema = resolve(schema, root)
    branches = [resolve(branch, root) for branch in subschemas_of(schema, "anyOf", "oneOf")]
    others = [branch for branch in branches if types_of(branch) != ["null"]]
    return {**schema, **others[0]} if len(others) == 1 and isinstance(others[0], Mapping) else schema


def references(schema: Any) -> Iterator[str]:
    """Yield the name of the definition for each reference in a schema, with repetitions."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("$ref"), str):
                yield definition(part["$ref"])
            waiting += [child for _, child in children(part)]


def reachable_definitions(schemas: Iterable[Any], definitions: Mapping[str, Any]) -> set[str]:
    """Return the names of the definitions that schemas refer to, even indirectly."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        new = {name for name in references(schema) if name in definitions} - found
        found |= new
        waiting += [definitions[name] for name in new]
    return found
