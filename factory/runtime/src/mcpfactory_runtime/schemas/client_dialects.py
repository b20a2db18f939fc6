"""Dialects for clients with limits, and pure functions that convert tools to a dialect.

A dialect only affects the list of tools. The server always validates arguments against a tool's original schema. Rules:

1. A reference is replaced by its target. In a cycle, or if the schema would become too large, only the target's type
   and a note remain.
2. Combined schemas become one schema that permits at least the same values. A note describes the difference.
3. A conversion never makes a schema stricter.
4. The end of a long name is replaced by a digest, so that shortened names are unique and deterministic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, Literal

from mcpfactory_runtime.schemas.merge import intersect_schemas, unite_schemas
from mcpfactory_runtime.schemas.references import SchemaReferences, UnusableSchemaError
from mcpfactory_runtime.schemas.walk import (
    COMBINATORS,
    items_schema_of,
    map_schema,
    properties_of,
    required_of,
    subschemas_of,
    types_of,
    unescape,
)
from mcpfactory_runtime.types import Json


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The limits of a client.

    `combinators` are the positions where the client supports `anyOf`, `oneOf`, `allOf`, `not` and similar keywords.
    `types` is True if `type` may be a list. `name` is the maximum number of characters of a tool's name. Many clients
    prepend the server's name, and permit 64 characters in total.
    """

    combinators: Literal["below", "nowhere"]
    types: bool
    name: int


DIALECTS: Final[dict[str, ClientLimits | None]] = {
    "standard": None,  # unchanged JSON Schema 2020-12
    "plain": ClientLimits("below", types=True, name=64),
    "flat": ClientLimits("nowhere", types=False, name=40),
}
"""Dialects other than "standard" have neither `$ref` nor `$defs`."""

_CHOICES: Final = ("anyOf", "oneOf")
_DROPPED: Final = frozenset({"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "$dynamicRef"})
_COMBINING: Final = _DROPPED | {*COMBINATORS}
_IGNORED: Final = frozenset({"$defs", "definitions", "$id", "$anchor", "$dynamicAnchor", "$schema", "$comment"})
_TEXTS: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
_MAX_SCHEMAS: Final = 3_000  # maximum schemas in one tool
_MAX_DEPTH: Final = 24  # maximum nesting of schemas
_SHOWN: Final = 6  # maximum number of alternatives that a note lists
_DIGEST: Final = 6  # characters of the digest in a shortened name


def adapt_tool(wire: Json, limits: ClientLimits) -> Json:
    """Adapt a Tool object to the limits of a client, and omit an output schema that exceeds the limits."""
    schema, notes = _flattened(wire["inputSchema"], limits)
    done = {**wire, "inputSchema": schema}
    if notes:
        done["description"] = "\n".join(filter(None, (wire.get("description", ""), *notes)))
    if "outputSchema" in wire and _flattened(wire["outputSchema"], limits)[0] != wire["outputSchema"]:
        del done["outputSchema"]
    return done


def _flattened(schema: Any, limits: ClientLimits) -> tuple[Any, list[str]]:
    """Return the flattened schema, and notes about its root."""
    if not isinstance(schema, Mapping):
        return schema, []
    try:
        return _Flattener(schema, limits).root(schema)
    except UnusableSchemaError:
        return schema, []


def shorten_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Return a unique name of at most `longest` characters for each name, independent of the other names."""
    return {name: name if len(name) <= longest else _cut(name, longest) for name in names}


def _cut(name: str, longest: int) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: longest - _DIGEST - 1].rstrip('_-.')}_{digest}"


class _Flattener:
    def __init__(self, root: Mapping[str, Any], limits: ClientLimits) -> None:
        self._references = SchemaReferences(root)
        self._limits = limits
        self._left = _MAX_SCHEMAS

    def root(self, schema: Mapping[str, Any]) -> tuple[Json, list[str]]:
        notes: list[str] = []
        done = self._node(schema, (), 0, notes, merge=True)
        if not isinstance(done, dict):
            done = {}
        done = {"type": "object", **done}
        if done.get("additionalProperties") == {}:
            del done["additionalProperties"]
        return done, notes

    def _node(self, schema: Any, inside: tuple[str, ...], depth: int, outer: list[str] | None, *, merge: bool) -> Any:
        """Return a converted schema. `inside` are the enclosing references."""
        if not isinstance(schema, Mapping):
            return schema
        self._left -= 1
        notes: list[str] = []
        done = self._resolved(schema, inside, depth, notes, merge=merge)
        if merge and not _COMBINING.isdisjoint(done):
            done = _without_combinators(done, notes)
        if not self._limits.types and isinstance(done.get("type"), list):
            done = _one_type(done, notes)
        if outer is not None:
            outer += notes
        elif notes:
            done["description"] = " ".join(filter(None, (str(done.get("description", "")), *notes)))
        return done

    def _resolved(
        self, schema: Mapping[str, Any], inside: tuple[str, ...], depth: int, notes: list[str], *, merge: bool
    ) -> Json:
        own = {key: value for key, value in schema.items() if key not in _IGNORED and key != "$ref"}
        if not isinstance(schema.get("$ref"), str):
            return self._parts(own, inside, depth)
        place, target = self._references.follow(schema)
        name = unescape(place.rpartition("/")[2])
        if not isinstance(target, Mapping):
            return self._parts(own, inside, depth)
        if place in inside or self._left < 0 or depth > _MAX_DEPTH:
            why = "contains itself" if place in inside else "is too large to show"
            notes.append(f"Any {name}, which {why}." if name else f"It {why}.")
            kind = target.get("type")
            return {**({"type": kind} if isinstance(kind, str) else {}), **self._parts(own, inside, depth)}
        referred = self._node(target, (*inside, place), depth + 1, None, merge=merge)
        if own.keys() <= _TEXTS or not own.keys() & referred.keys():
            return {**referred, **self._parts(own, inside, depth)}
        return {"allOf": [referred, self._parts(own, inside, depth)]}

    def _parts(self, schema: Json, inside: tuple[str, ...], depth: int) -> Json:
        everywhere = self._limits.combinators == "nowhere"
        done: Json = {}
        for key, value in schema.items():
            merge = everywhere or (key in _COMBINING and depth == 0)
            part = partial(self._node, inside=inside, depth=depth + 1, outer=None, merge=merge)
            done |= map_schema({key: value}, part)
        return done


# --- merging ---


def _without_combinators(schema: Json, notes: list[str]) -> Json:
    """Merge `allOf` and alternatives into the other keywords of a schema."""
    done = {key: value for key, value in schema.items() if key not in _COMBINING}
    for part in subschemas_of(schema, "allOf"):
        done = _intersection(done, part)
    for keyword in _CHOICES:
        if branches := [branch for branch in subschemas_of(schema, keyword) if branch is not False]:
            done = _intersection(done, _union(branches, notes))
    if not _DROPPED.isdisjoint(schema):
        notes.append("Some combinations of values are not permitted.")
    return done


def _intersection(one: Any, other: Any) -> Any:
    """Return a schema that permits all values that satisfy both schemas, with the bounds of the first schema."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other if one is True else one
    done = intersect_schemas(one, other, _intersection)
    if done.get("additionalProperties") is False and {"properties"} <= one.keys() & other.keys():
        # This keyword would forbid properties that only one of the schemas declares.
        del done["additionalProperties"]
    return done


def _union(branches: Sequence[Any], notes: list[str]) -> Json:
    nulls = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") == "null"]
    rest = [branch for branch in branches if branch not in nulls]
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        notes += ["May be null."] if nulls else []
        return dict(rest[0])
    if not all(isinstance(branch, Mapping) for branch in rest) or not rest:
        return {}
    summaries = list(dict.fromkeys(_summary(branch) for branch in rest))
    more = ", …" if len(summaries) > _SHOWN else ""
    notes.append(f"One of: {'; '.join(summaries[:_SHOWN])}{more}{' (or null)' if nulls else ''}.")
    done: Json = reduce(partial(unite_schemas, inner=lambda *pair: _union(pair, [])), rest)
    if isinstance(done.get("type"), list):
        return {"enum": done["enum"]} if "enum" in done else {}
    return done


def _summary(branch: Mapping[str, Any]) -> str:
    if isinstance(branch.get("title"), str):
        return str(branch["title"])[:60]
    if "const" in branch:
        return str(branch["const"])[:60]
    if needed := required_of(branch):
        return "with " + " and ".join(needed[:_SHOWN])
    kinds, items = types_of(branch), items_schema_of(branch)
    if kinds == ["array"] and isinstance(items, Mapping):
        return f"array of {items.get('type', 'any')}"
    if names := list(properties_of(branch)):
        return "object with " + ", ".join(names[:_SHOWN])
    return " or ".join(kinds) or "any value"


def _one_type(schema: Json, notes: list[str]) -> Json:
    """Return the schema with at most one type."""
    kinds = [kind for kind in schema["type"] if kind != "null"]
    if len(kinds) < len(schema["type"]):
        notes.append("May be null.")
        values = schema.get("enum")
        if kinds and isinstance(values, list) and any(value is not None for value in values):
            # Remove null from the values, because the single type excludes null.
            schema = {**schema, "enum": [value for value in values if value is not None]}
    if len(kinds) == 1:
        return {**schema, "type": kinds[0]}
    if kinds:
        notes.append(f"One of: {'; '.join(map(str, kinds))}.")
    return {key: value for key, value in schema.items() if key != "type"}
