"""Schemas for models: input schemas without documentation-only keywords, and output schemas.

`SharedDefinitions.close` makes an input schema self-contained. Tiny definitions, and definitions used once, are
inlined. Definitions that are larger and used several times move to `$defs`. If the definitions exceed the token budget,
the innermost definitions become an outline or a schema that accepts any value.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, Final

from mcpfactory_codegen.curation import OUTPUT_TOKENS, OutputMode
from mcpfactory_codegen.describe.schema_values import EXAMPLE_DEPTH, constant_title, enum_meanings, example_of
from mcpfactory_codegen.ir import ApiOperation, JsonSchema, Response, carries_json, is_structured
from mcpfactory_codegen.text import dump_json, one_line
from mcpfactory_runtime.schemas.merge import common_types, enum_values, intersect_schemas, unite_schemas
from mcpfactory_runtime.schemas.walk import (
    APPLICATORS,
    TYPES,
    definition,
    definition_reference,
    items_schema_of,
    map_schema,
    properties_of,
    references,
    required_of,
    resolve_definition,
    subschemas_of,
    types_of,
)
from mcpfactory_runtime.upstream.encoding import media_type

BUDGET: Final = 24_000
"""Maximum bytes of the definitions of one tool, about 6,000 tokens."""


_DROPPED: Final = frozenset(
    {"title", "example", "examples", "externalDocs", "xml", "discriminator", "$comment", "$schema", "$id", "$anchor"}
    | {"unevaluatedItems", "unevaluatedProperties"}  # the runtime does not check these keywords
    | {"writeOnly", "readOnly", "contentMediaType", "contentEncoding", "nullable", "collectionFormat"}
)
_ANNOTATIONS: Final = frozenset({"description", "default", "deprecated", "title"})
# maximum characters of a description at the top level, one level deeper, and on all deeper levels
_DESCRIPTION: Final = (400, 300, 160)
_DEPTH: Final = 40
_TINY: Final = 64
_MOST_DEFAULT: Final = 200
_OUTLINED: Final = 12  # maximum number of required members to list for an omitted definition
_OUTLINE_LEVELS: Final = 3  # maximum nesting of required members and items in an outline
_OUTLINE_BYTES: Final = 2_000  # a larger outline gets fewer levels
_CHOICES: Final = 24


class SharedDefinitions:
    """The shared definitions of an API, each cleaned once for all tools."""

    def __init__(self, schemas: dict[str, JsonSchema]) -> None:
        self._schemas = schemas
        self._cleaned: dict[str, JsonSchema] = {}
        self._refs: dict[str, Counter[str]] = {}
        self._sizes: dict[str, int] = {}
        self._outlines: dict[str, dict[str, Any]] = {}

    def clean(self, schema: JsonSchema, depth: int = 0) -> JsonSchema:
        """Remove documentation-only keywords from the schema, and shorten descriptions."""
        if not isinstance(schema, dict):
            return schema
        if depth > _DEPTH:
            return {}
        inner = map_schema(schema, partial(self.clean, depth=depth + 1))
        kept = ((key, self._keyword(key, value, depth)) for key, value in inner.items())
        cleaned = {key: value for key, value in kept if value is not None}
        return _merged_single({**_any_of(cleaned), **_values(schema, depth)})

    def _keyword(self, key: str, value: Any, depth: int) -> Any:
        """Return the cleaned value of one keyword, or None to remove the keyword."""
        if key in _DROPPED or key.startswith("x-"):
            return None
        if key == "description":
            return one_line(value, _DESCRIPTION[min(depth, 2)]) or None if isinstance(value, str) else None
        if APPLICATORS.get(key) == "list":
            return value or None
        if key == "pattern":
            return value if isinstance(value, str) and _compiles(value) else None
        if key == "default":
            return value if value is None or len(dump_json(value)) <= _MOST_DEFAULT else None
        if (key == "additionalProperties" and value is True) or (key == "required" and not value):
            return None
        return None if value is False and key in {"deprecated", "uniqueItems"} else value

    def definition(self, name: str) -> JsonSchema:
        """Return the cleaned definition, or {} if the definition does not exist."""
        if name not in self._cleaned:
            cleaned = self.clean(self._schemas.get(name, {}), 1)
            self._cleaned[name] = {} if cleaned is True else cleaned
            self._refs[name] = Counter(references(cleaned))
            self._sizes[name] = len(dump_json(cleaned))
        return self._cleaned[name]

    def close(self, schema: dict[str, Any], budget: int = BUDGET) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Clean a schema and add its definitions. Also return the names of definitions above the budget."""
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
        shared = {name for name in kept if uses[name] > 1 and not (self._sizes[name] <= _TINY and not self._refs[name])}
        expand = partial(self._expanded, shared=shared, kept=kept)
        closed = expand(schema)
        defs = {name: expand(self.definition(name)) for name in sorted(shared)}
        if defs:
            closed["$defs"] = defs
        return closed, tuple(cut)

    def _expanded(self, schema: Any, *, shared: set[str], kept: set[str]) -> Any:
        """Replace the references in a schema.

        References to `shared` definitions point into `$defs`. A definition that is only in `kept` replaces its
        references. An outline replaces every remaining reference.
        """
        if not isinstance(schema, dict):
            return schema
        expand = partial(self._expanded, shared=shared, kept=kept)
        siblings = map_schema({key: value for key, value in schema.items() if key != "$ref"}, expand)
        if not isinstance(schema.get("$ref"), str):
            return siblings
        name = definition(schema["$ref"])
        if name in shared:
            return {"$ref": definition_reference(name), **siblings}
        if name not in kept:
            if outline := self.outline(name):
                return {**outline, **siblings}
            return siblings or {"description": f"{name}: see the documentation of the API."}
        target = expand(self.definition(name))
        if not siblings:
            return target
        if isinstance(target, dict) and (siblings.keys() <= _ANNOTATIONS or not siblings.keys() & target.keys()):
            return {**target, **siblings}
        return {"allOf": [target], **siblings}

    def outline(self, name: str) -> dict[str, Any]:
        """Return an outline of a definition: its required members with types and enums, or {}."""
        if name not in self._outlines:
            self._outlines[name] = self._outline(name)
        return self._outlines[name]

    def _outline(self, name: str) -> dict[str, Any]:
        whole = self.definition(name)
        if not isinstance(whole, dict) or whole.get("type") != "object":
            return {}
        text = f"{name}: what else it has is in the documentation of the API."
        for levels in range(_OUTLINE_LEVELS, 0, -1):
            shown = self._outlined(whole, levels)
            if isinstance(shown, dict) and len(dump_json(shown)) <= _OUTLINE_BYTES:
                return {**shown, "description": text} if properties_of(shown) else {}
        return {}

    def _outlined(self, schema: JsonSchema, levels: int) -> JsonSchema:
        """Return type, values, items and required members of a schema, which callers need to fill it."""
        if isinstance(schema, dict) and (name := definition(schema.get("$ref"))):
            schema = self.definition(name)
        if not isinstance(schema, dict):
            return schema
        short: dict[str, Any] = {key: schema[key] for key in ("type", "const") if key in schema}
        choices = schema.get("enum")
        if isinstance(choices, list) and len(choices) <= _CHOICES:
            short["enum"] = choices
        if levels and (items := items_schema_of(schema)) is not True:
            short["items"] = self._outlined(items, levels - 1)
        members = properties_of(schema)
        if levels and (required := [one for one in required_of(schema) if one in members]):
            shown = {one: self._outlined(members[one], levels - 1) for one in required[:_OUTLINED]}
            short |= {"properties": shown, "required": required}
        return short


def _any_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace `oneOf` by `anyOf`, because a value often matches several branches."""
    if "oneOf" not in schema:
        return schema
    choice = {"anyOf": subschemas_of(schema, "oneOf")}
    if "anyOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "oneOf"}
        return {**rest, "allOf": [*subschemas_of(rest, "allOf"), choice]}
    return {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}


def _values(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    meaning = enum_meanings(schema) or constant_title(schema)
    if meaning:
        text = schema["description"] if isinstance(schema.get("description"), str) else ""
        return {"description": " ".join(filter(None, (one_line(text, _DESCRIPTION[min(depth, 2)]), meaning)))}
    example = example_of(schema) if depth <= EXAMPLE_DEPTH else None
    return {} if example is None else {"examples": [example]}


def _merged_single(schema: dict[str, Any]) -> dict[str, Any]:
    """Merge an `allOf` of one schema into its parent if no keywords conflict."""
    parts = subschemas_of(schema, "allOf")
    if len(parts) != 1 or not isinstance(parts[0], dict):
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


# --- output schemas, derived from the documented success responses ---
#
# Clients validate results against this schema, but documents often describe responses incorrectly.
# Therefore the schema is reduced to a plain form with the possible types of each value:
#
# - The schema keeps `type` (with null if documented), `properties`, `items`, and a schema in `additionalProperties`.
# - References are resolved, and all branches of `allOf`, `anyOf` and `oneOf` are merged.
# - Formats, patterns, bounds and lengths are left out, because APIs often violate them.
# - The mode "loose" also leaves out `required`, `enum` and `additionalProperties: false`.
# - The mode "loose" keeps small enumerations as `examples`.
# - The mode "declared" keeps `required`, `enum` and `additionalProperties: false`.
#
# The root must be an object in every MCP revision with structured content.
# The runtime and the schema put responses of other types into the member `result` of an object.
# A schema is cut at the depth that fits the token limit.
# If the first level of a schema exceeds the limit, the schema is left out with a reason.


_BYTES_A_TOKEN: Final = 4
_OUTPUT_DEPTH: Final = 6  # maximum levels of properties; deeper schemas allow any value
_OUTLINE: Final = 3  # maximum nesting of the properties that `shape` returns
_MOST_EXAMPLES: Final = 8
_LONGEST_EXAMPLES: Final = 100
_MOST_PROPERTIES: Final = 500
_MERGED: Final = ("properties", "items", "type", "enum", "examples", "required")
_NAMES: Final = {
    str: "string",
    float: "number",
    int: "integer",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}

Shape = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """Output schema of an operation, or None with the reason.

    `reason` is "" if the document does not describe the response.
    """

    schema: dict[str, Any] | None = None
    reason: str = ""


class OutputSchemas:
    """Output schemas of one API.

    The comment above describes the modes. `tokens` is the maximum size of one schema.
    """

    def __init__(self, schemas: dict[str, JsonSchema], mode: OutputMode, tokens: int = OUTPUT_TOKENS) -> None:
        self._schemas = schemas
        self._mode = mode
        self._room = tokens * _BYTES_A_TOKEN
        self._strict = mode == "declared"
        self._known: dict[tuple[str, int], Shape] = {}
        self._active: set[tuple[str, int]] = set()
        # keys contain the id() of schemas, which are unique because the API keeps the schemas alive
        self._done: dict[tuple[tuple[int, ...], bool], OutputSchema] = {}

    def of(self, operation: ApiOperation) -> OutputSchema:
        """Return one output schema for all successful JSON responses of an operation."""
        if self._mode == "none":
            return OutputSchema()
        success = [one for one in operation.responses if one.status.startswith("2")]
        schemas = [one.schema for one in success if one.schema is not None and self._carries_json(one)]
        key = tuple(map(id, schemas)), len(schemas) < len(success)
        if schemas and key not in self._done:
            self._done[key] = self._fitting(schemas, len(schemas) < len(success))
        if schemas:
            return self._done[key]
        others = [
            media_type(one.content_type)
            for one in success
            if one.schema is not None and is_structured(resolve_definition(one.schema, self._schemas))
        ]
        return OutputSchema(reason=f"its answer is {others[0]}") if others else OutputSchema()

    def has_json_response(self, operation: ApiOperation) -> bool:
        """Return True if a successful response can be JSON."""
        success = [one for one in operation.responses if one.status.startswith("2")]
        return any(one.schema is not None and self._carries_json(one) for one in success)

    def _carries_json(self, response: Response) -> bool:
        return carries_json(response.content_type, response.schema, self._schemas)

    def shape(self, operation: ApiOperation) -> dict[str, Any]:
        """Return the plain form of the first successful JSON response, to a limited depth."""
        found = (one.schema for one in operation.responses if one.status.startswith("2") and self._carries_json(one))
        # GraphQL responses have one more level: `data`
        levels = _OUTLINE + (operation.body is not None and bool(operation.body.graphql))
        return next((self._shape(one, levels) for one in found if one is not None), {})

    def _fitting(self, schemas: list[JsonSchema], perhaps_empty: bool) -> OutputSchema:
        fitting: Shape = {}
        for depth in range(1, _OUTPUT_DEPTH + 1):
            shape = reduce(_either, [self._shape(schema, depth) for schema in schemas])
            if perhaps_empty:
                shape = {key: value for key, value in shape.items() if key != "required"}
            if not shape:
                return OutputSchema()
            root = self._root(shape)
            if root == fitting:  # the previous depth already contained the whole schema
                break
            if _size(root, self._room) > self._room:
                break
            fitting = root
        if not fitting:
            return OutputSchema(reason=f"its first level alone is more than {self._room // _BYTES_A_TOKEN} tokens")
        return OutputSchema(fitting)

    def _root(self, shape: Shape) -> Shape:
        if shape.get("type") == "object":
            return shape
        # at run time, objects become the root, and values of other types become the member `result`
        if "object" in shape.get("type", ()):
            members = properties_of(shape)
            return {"type": "object", "properties": members} if members else {"type": "object"}
        wrapped: Shape = {"type": "object", "properties": {"result": shape}}
        return {**wrapped, "required": ["result"]} if self._strict else wrapped

    # --- plain form; {} means anything ---

    def _shape(self, schema: JsonSchema, depth: int) -> Shape:
        if not isinstance(schema, dict):
            return {}
        shape = self._own(schema, depth)
        if isinstance(schema.get("$ref"), str):
            shape = _both(shape, self._shared(definition(schema["$ref"]), depth))
        for part in subschemas_of(schema, "allOf"):
            shape = _both(shape, self._shape(part, depth))
        for key in ("anyOf", "oneOf"):
            if branches := [self._shape(part, depth) for part in subschemas_of(schema, key)]:
                shape = _both(shape, reduce(_either, branches))
        return shape

    def _shared(self, name: str, depth: int) -> Shape:
        key = (name, depth)
        if key not in self._known:
            if key in self._active:  # the definition refers to itself without an object between the references
                return {}
            self._active.add(key)
            try:
                self._known[key] = self._shape(self._schemas.get(name, {}), depth)
            finally:
                self._active.discard(key)
        return self._known[key]

    def _own(self, schema: dict[str, Any], depth: int) -> Shape:
        shape: Shape = {}
        values = enum_values(schema)
        kinds = _kinds(schema, values)
        if not kinds:
            return shape
        shape["type"] = kinds[0] if len(kinds) == 1 else kinds
        if values is not None:
            self._values(shape, values)
        if "object" in kinds and depth > 0:
            self._members(shape, schema, depth)
        if "array" in kinds and "prefixItems" not in schema and (items := self._shape(items_schema_of(schema), depth)):
            shape["items"] = items
        return shape

    def _values(self, shape: Shape, values: list[Any]) -> None:
        if self._strict:
            shape["enum"] = values
        elif len(values) <= _MOST_EXAMPLES and len(dump_json(values)) <= _LONGEST_EXAMPLES:
            shown = [one for one in values if isinstance(one, str)]
            if len(shown) > 1:
                shape["examples"] = shown

    def _members(self, shape: Shape, schema: dict[str, Any], depth: int) -> None:
        if properties := properties_of(schema):
            names = list(properties)[:_MOST_PROPERTIES]
            shape["properties"] = {name: self._shape(properties[name], depth - 1) for name in names}
            required = [name for name in required_of(schema) if name in names]
            if self._strict and required:
                shape["required"] = required
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and (inner := self._shape(more, depth - 1)):
            shape["additionalProperties"] = inner
        elif more is False and self._strict and "patternProperties" not in schema:
            shape["additionalProperties"] = False


def _size(value: Any, most: int) -> int:
    """Return the length of the compact JSON, counted only until the length exceeds `most`."""
    if isinstance(value, dict):
        size = 2
        for key, one in value.items():
            size += len(key) + 4 + _size(one, most - size)
            if size > most:
                break
        return size
    if isinstance(value, list):
        return 1 + sum(_size(one, most) + 1 for one in value)
    return len(dump_json(value)) if not isinstance(value, str) else len(value) + 2


def _kinds(schema: dict[str, Any], values: Any) -> list[str]:
    """Return the types of a schema, where [] means any type."""
    kinds = [one for one in types_of(schema) if one in TYPES]
    if not kinds and "properties" in schema:
        kinds = ["object"]
    if not kinds and isinstance(items_schema_of(schema), dict):
        kinds = ["array"]
    if values is not None:
        seen = [_NAMES[type(one)] for one in values if type(one) in _NAMES]
        if not kinds:
            kinds = list(dict.fromkeys(seen))
        elif "null" in seen and "null" not in kinds:
            kinds.append("null")
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    return kinds


def _both(first: Shape, second: Shape) -> Shape:
    """Return a shape for values that match both shapes, as `allOf` requires.

    If the shapes have no common type, the result accepts values of either shape.
    """
    if not first or not second:
        return first or second
    if not common_types(first, second):
        return _either(first, second)
    return _kept(intersect_schemas(first, second, _both))


def _either(first: Shape, second: Shape) -> Shape:
    """Return a shape that accepts every value of both shapes, and possibly further values."""
    return first if first == second else _kept(unite_schemas(first, second, _either))


def _kept(merged: Shape) -> Shape:
    """Remove `additionalProperties` from a merged shape, because each part excludes properties of the other part."""
    return {key: merged[key] for key in _MERGED if key in merged}
