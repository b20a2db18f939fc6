"""Schemas as a model should read them: without what only documentation needs, and with few definitions.

`Library.close` makes a schema stand alone: definitions that are used once, or are tiny, are put in their place; the
rest goes to `$defs`; what would exceed the budget is left open, outermost definitions first to stay.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from mcpfactory_codegen.inputs import definition
from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.text.prose import one_line
from mcpfactory_codegen.text.tokens import compact

__all__ = ["BUDGET", "Library", "subschemas"]

BUDGET: Final = 24_000
"""Bytes of definitions that one tool may bring along: some 6,000 tokens."""

SINGLE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})

_DROPPED: Final = frozenset(
    {"title", "example", "examples", "externalDocs", "xml", "discriminator", "$comment", "$schema", "$id", "$anchor"}
    | {"writeOnly", "readOnly", "contentMediaType", "contentEncoding", "nullable", "collectionFormat"}
)
_ANNOTATIONS: Final = frozenset({"description", "default", "deprecated", "title"})
_DESCRIPTION: Final = (400, 300, 160)  # characters, by depth
_DEPTH: Final = 40
_TINY: Final = 64
_MOST_DEFAULT: Final = 200


class Library:
    """The shared definitions of an API, cleaned once each and then handed out to every tool that needs them."""

    def __init__(self, schemas: dict[str, JsonSchema]) -> None:
        self._schemas = schemas
        self._cleaned: dict[str, JsonSchema] = {}
        self._refs: dict[str, Counter[str]] = {}
        self._sizes: dict[str, int] = {}

    def clean(self, schema: JsonSchema, depth: int = 0) -> JsonSchema:
        """Return the schema without documentation-only keywords, its descriptions shortened. Data keywords are untouched."""
        if not isinstance(schema, dict):
            return schema
        if depth > _DEPTH:
            return {}
        cleaned: dict[str, Any] = {}
        for key, value in schema.items():
            kept = self._keyword(key, value, depth)
            if kept is not None:
                cleaned[key] = kept
        return _merged_single(cleaned)

    def _keyword(self, key: str, value: Any, depth: int) -> Any:
        """Return the cleaned value of one keyword; None drops it."""
        if key in _DROPPED or key.startswith("x-"):
            return None
        if key == "description":
            return one_line(value, _DESCRIPTION[min(depth, 2)]) or None if isinstance(value, str) else None
        if key in SINGLE and isinstance(value, dict):
            return self.clean(value, depth + 1)
        if key in LISTS and isinstance(value, list):
            return [self.clean(item, depth + 1) for item in value] or None
        if key in MAPS and isinstance(value, dict):
            return {name: self.clean(item, depth + 1) for name, item in value.items()}
        if key == "pattern":
            return value if isinstance(value, str) and _compiles(value) else None
        if key == "default":
            return value if value is None or len(compact(value)) <= _MOST_DEFAULT else None
        if (key == "additionalProperties" and value is True) or (key == "required" and not value):
            return None
        return None if value is False and key in {"deprecated", "uniqueItems"} else value

    def definition(self, name: str) -> JsonSchema:
        """Return the cleaned definition; `{}` for one that does not exist."""
        if name not in self._cleaned:
            cleaned = self.clean(self._schemas.get(name, {}), 1)
            self._cleaned[name] = {} if cleaned is True else cleaned
            self._refs[name] = Counter(references(cleaned))
            self._sizes[name] = len(compact(cleaned))
        return self._cleaned[name]

    def close(self, schema: dict[str, Any], budget: int = BUDGET) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a cleaned schema with everything that it refers to, and the names of definitions left open for size."""
        uses = Counter(references(schema))
        kept: set[str] = set()
        cut: list[str] = []
        waiting = deque(uses)
        while waiting:
            name = waiting.popleft()
            if name in kept or name in cut:
                continue
            self.definition(name)
            if self._sizes[name] > budget:
                cut.append(name)
                continue
            budget -= self._sizes[name]
            kept.add(name)
            uses += self._refs[name]
            waiting.extend(self._refs[name])
        if not uses:
            return schema, ()
        shared = {name for name in kept if uses[name] > 1 and not self._tiny(name)}
        expand = _Expansion(self, shared, kept)
        closed = expand(schema)
        defs = {name: expand(self.definition(name)) for name in sorted(shared)}
        if defs:
            closed["$defs"] = defs
        return closed, tuple(cut)

    def _tiny(self, name: str) -> bool:
        return self._sizes[name] <= _TINY and not self._refs[name]


class _Expansion:
    """Replaces references: to shared definitions by `$defs`, to the others by their text, to cut ones by anything."""

    def __init__(self, library: Library, shared: set[str], kept: set[str]) -> None:
        self.library = library
        self.shared = shared
        self.kept = kept

    def __call__(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return _mapped(schema, self)
        siblings = _mapped({key: value for key, value in schema.items() if key != "$ref"}, self)
        name = definition(ref)
        if name in self.shared:
            return {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1"), **siblings}
        if name not in self.kept:
            return siblings or {"description": f"{name}: see the documentation of the API."}
        target = self(self.library.definition(name))
        if not siblings:
            return target
        if isinstance(target, dict) and (siblings.keys() <= _ANNOTATIONS or not siblings.keys() & target.keys()):
            return {**target, **siblings}
        return {"allOf": [target], **siblings}


def _mapped(schema: dict[str, Any], change: Any) -> dict[str, Any]:
    """Return the schema with `change` applied to each direct subschema."""
    result = dict(schema)
    for key, value in schema.items():
        if key in SINGLE and isinstance(value, dict):
            result[key] = change(value)
        elif key in LISTS and isinstance(value, list):
            result[key] = [change(item) for item in value]
        elif key in MAPS and isinstance(value, dict):
            result[key] = {name: change(item) for name, item in value.items()}
    return result


def subschemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the direct subschemas that are objects."""
    for key, value in schema.items():
        if key in SINGLE and isinstance(value, dict):
            yield value
        elif key in LISTS and isinstance(value, list):
            yield from (item for item in value if isinstance(item, dict))
        elif key in MAPS and isinstance(value, dict):
            yield from (item for item in value.values() if isinstance(item, dict))


def references(schema: JsonSchema) -> Iterator[str]:
    """Yield the names of definitions that a schema refers to, as often as it does."""
    stack = [schema] if isinstance(schema, dict) else []
    while stack:
        node = stack.pop()
        if isinstance(node.get("$ref"), str):
            yield definition(node["$ref"])
        stack.extend(subschemas(node))


def _merged_single(schema: dict[str, Any]) -> dict[str, Any]:
    """`allOf` of one, as OpenAPI 3.0 writes a described reference, put into the schema itself where nothing clashes."""
    parts = schema.get("allOf")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
        return schema
    others = {key: value for key, value in schema.items() if key != "allOf"}
    if others.keys() & parts[0].keys() - _ANNOTATIONS or ("$ref" in parts[0] and not others.keys() <= _ANNOTATIONS):
        return schema
    return {**parts[0], **others}


@lru_cache(maxsize=4096)
def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
