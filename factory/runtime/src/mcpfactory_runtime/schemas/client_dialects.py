"""Conversion of tools to a dialect, which is a set of limits of clients (`client_limits`). Pure.

A dialect only affects the list of tools. The server always validates arguments against a tool's original schema. Rules:

1. A reference is replaced by its target. In a cycle, or if the schema would become too large, only the target's type
   and a note remain.
2. Combined schemas become one schema that permits at least the same values. A note describes the difference.
3. A conversion never makes a schema stricter, except that it removes empty values from `enum`. A note names them, unless
   such a value is the default.
4. The end of a long name is replaced by a digest, so that shortened names are unique and deterministic.
5. Output schemas stay unchanged, because clients do not send them to a vendor.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any, Final

from pydantic_core import to_json

from mcpfactory_runtime.schemas.client_refusals import enum_faults, pattern_faults
from mcpfactory_runtime.schemas.merge import distinct, intersect_schemas, unite_schemas
from mcpfactory_runtime.schemas.references import SchemaReferences, UnusableSchemaError
from mcpfactory_runtime.schemas.walk import (
    APPLICATORS,
    COMBINATORS,
    items_schema_of,
    map_schema,
    properties_of,
    required_of,
    subschemas_of,
    types_of,
    unescape,
    walk,
)
from mcpfactory_runtime.types import Json

_CHOICES: Final = ("anyOf", "oneOf")
_DROPPED: Final = frozenset({"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "$dynamicRef"})
_COMBINING: Final = _DROPPED | {*COMBINATORS}
_IGNORED: Final = frozenset({"$defs", "definitions", "$id", "$anchor", "$dynamicAnchor", "$schema", "$comment"})
_TEXTS: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
_MAX_SCHEMAS: Final = 3_000  # maximum schemas in one tool
_MAX_LEVELS: Final = 24  # maximum nesting of schemas if no client has a limit
_SHOWN: Final = 6  # maximum number of alternatives that a note lists
_SHOWN_ONCE: Final = 400  # bytes; a larger definition is only shown once
_SHOWN_VALUES: Final = 50  # maximum number of values that a note lists
_LONGEST_PATTERN: Final = 100  # maximum characters of a pattern that a note shows
_DIGEST: Final = 6  # characters of the digest in a shortened name


def adapt_tool(wire: Json, limits: Mapping[str, Any]) -> Json:
    """Adapt a Tool object to the limits of a dialect, which `dialect_limits` returns."""
    if not limits:
        return wire
    schema, notes = _flattened(wire["inputSchema"], limits)
    done = {**wire, "inputSchema": schema}
    text, added = str(wire.get("description", "")), "\n".join(filter(None, notes))
    room = max(limits.get("tool_description", math.inf) - len(added) - 1, 0)  # notes replace constraints, so keep them
    text = text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"
    if text or added:
        done["description"] = "\n".join(filter(None, (text, added)))
    return done


def _flattened(schema: Any, limits: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the flattened schema, and notes about its root."""
    if not isinstance(schema, Mapping):
        return schema, []
    try:
        return _Flattener(schema, limits).convert()
    except UnusableSchemaError:
        return schema, []


def shorten_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Return a unique name of at most `longest` characters for each name, independent of the other names."""
    return {name: name if len(name) <= longest else _cut(name, longest) for name in names}


def _cut(name: str, longest: int) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: longest - _DIGEST - 1].rstrip('_-.')}_{digest}"


class _Flattener:
    def __init__(self, root: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
        self._root = root
        self._limits = limits
        self._levels = limits.get("levels", _MAX_LEVELS)
        self._left = _MAX_SCHEMAS
        self._shown: set[str] = set()  # large definitions that a list shows once

    # Most schemas have no references, so that both properties are computed at the first one.
    @cached_property
    def _references(self) -> SchemaReferences:
        return SchemaReferences(self._root)

    @cached_property
    def _uses(self) -> Counter[str]:
        return Counter(part["$ref"] for _, part in walk(self._root) if isinstance(part.get("$ref"), str))

    def convert(self) -> tuple[Json, list[str]]:
        """Return the converted schema, and notes about its root."""
        notes: list[str] = []
        done = {"type": "object", **self._node(self._root, (), 1, notes, merge="root" in self._limits)}
        if done.get("additionalProperties") == {}:
            del done["additionalProperties"]
        return done, notes

    def _node(self, schema: Any, inside: tuple[str, ...], level: int, outer: list[str] | None, *, merge: bool) -> Any:
        """Return a converted schema. `inside` are the enclosing references, and the root has the level 1."""
        if not isinstance(schema, Mapping):
            return schema
        self._left -= 1
        notes: list[str] = []
        done = self._resolved(schema, inside, level, notes, merge=merge)
        for part in subschemas_of(done, "allOf") if "allOf" in done else ():
            done = _intersection({key: value for key, value in done.items() if key != "allOf"}, part)
        if merge and not _COMBINING.isdisjoint(done):
            done = _without_combinators(done, notes)
        if "types" in self._limits and isinstance(done.get("type"), list):
            done = _one_type(done, notes)
        done = self._within(done, notes)
        if outer is not None:
            outer += notes
        elif notes:
            done["description"] = " ".join(filter(None, (str(done.get("description", "")), *notes)))
        return done

    def _resolved(
        self, schema: Mapping[str, Any], inside: tuple[str, ...], level: int, notes: list[str], *, merge: bool
    ) -> Json:
        own = {key: value for key, value in schema.items() if key not in _IGNORED and key != "$ref"}
        if not isinstance(schema.get("$ref"), str):
            return self._parts(own, inside, level, notes)
        place, target = self._references.follow(schema)
        name = unescape(place.rpartition("/")[2])
        if not isinstance(target, Mapping):
            return self._parts(own, inside, level, notes)
        if place in inside or place in self._shown or self._left < 0:
            why = "contains itself" if place in inside else "is too large to show"
            missing = f"Any {name}, which {why}." if name else f"It {why}."
            notes.append(f"Like {name} above." if place in self._shown.difference(inside) else missing)
            kind = target.get("type")
            return {**({"type": kind} if isinstance(kind, str) else {}), **self._parts(own, inside, level, notes)}
        referred: Json = self._node(target, (*inside, place), level, None, merge=merge)
        if name and not merge and self._uses[schema["$ref"]] > 1 and len(to_json(referred)) > _SHOWN_ONCE:
            self._shown.add(place)
            referred["title"] = name
        added = self._parts(own, inside, level, notes)
        if own.keys() <= _TEXTS or not own.keys() & referred.keys():
            return {**referred, **added}
        merged: Json = _intersection(added, referred)
        return merged

    def _parts(self, schema: Json, inside: tuple[str, ...], level: int, notes: list[str]) -> Json:
        """Convert the subschemas of a schema without reference."""
        if not _DROPPED.isdisjoint(schema):
            notes.append("Some combinations of values are not permitted.")
            schema = {key: value for key, value in schema.items() if key not in _DROPPED}
        if "anyOf" in schema or "oneOf" in schema:
            schema = self._with_usable_choices(schema, notes)
        if level + 1 >= self._levels and not APPLICATORS.keys().isdisjoint(schema):
            notes.append("Deeper levels are not shown.")
            kind = {"type": "object"} if "properties" in schema else {}
            return {**kind, **{key: value for key, value in schema.items() if key not in APPLICATORS}}
        done = dict(schema)
        for key in (key for key in schema if key in APPLICATORS):
            merge = "combinators" in self._limits or (key in _COMBINING and level == 1 and "root" in self._limits)
            part = partial(self._node, inside=inside, level=level + 1, outer=None, merge=merge)
            done |= map_schema({key: schema[key]}, part)
        return done

    def _with_usable_choices(self, schema: Json, notes: list[str]) -> Json:
        """Replace `oneOf`, which would become stricter, and remove choices that only differ in `required`."""
        if "oneOf" in schema:
            key = "allOf" if "anyOf" in schema else "anyOf"
            choices = subschemas_of(schema, "oneOf")
            added = [*subschemas_of(schema, "allOf"), {"anyOf": choices}] if key == "allOf" else choices
            schema = {**{name: value for name, value in schema.items() if name != "oneOf"}, key: added}
        choices = subschemas_of(schema, "anyOf")
        if any(
            isinstance(one, Mapping) and "required" in one and one.keys() <= {"required", *_TEXTS} for one in choices
        ):
            notes.append(_choices_note(choices))
            schema = {key: value for key, value in schema.items() if key != "anyOf"}
        return schema

    def _within(self, schema: Json, notes: list[str]) -> Json:
        """Return a schema, whose parts are converted, with only keywords that the clients permit."""
        limits = self._limits
        if "items" in limits and "array" in types_of(schema) and not isinstance(schema.get("items"), Mapping):
            schema = {**schema, "items": {}}
        if "properties" in schema and any(part is True for part in properties_of(schema).values()):
            shown = {name: {} if part is True else part for name, part in properties_of(schema).items()}
            schema = {**schema, "properties": shown}
        if "required" in limits and any(name not in properties_of(schema) for name in required_of(schema)):
            required = [name for name in required_of(schema) if name in properties_of(schema)]
            schema = {key: value for key, value in schema.items() if key != "required"}
            schema |= {"required": required} if required else {}
        if "enum" in schema and "enum" in limits:
            if self._separates_null(schema):
                kinds = [kind for kind in types_of(schema) if kind != "null"]
                rest = {key: value for key, value in schema.items() if key not in {"type", *_TEXTS}}
                rest |= {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
                rest["enum"] = [value for value in schema["enum"] if value is not None]
                texts = {key: value for key, value in schema.items() if key in _TEXTS}
                return {**texts, "anyOf": [self._within(rest, notes), {"type": "null"}]}
            schema = _with_values(schema, notes, limits["enum"])
        return self._with_patterns(schema, notes) if "pattern" in limits else schema

    def _separates_null(self, schema: Json) -> bool:
        """Return True if null must move from `enum` to `anyOf`: clients refuse it in `enum`, and it is not the default."""
        if "anyOf" in schema or not self._limits.keys().isdisjoint({"types", "combinators"}):
            return False
        apart = None in schema["enum"] and any(value is not None for value in schema["enum"])
        return apart and schema.get("default", "") is not None and bool(enum_faults([None], self._limits["enum"]))

    def _with_patterns(self, schema: Json, notes: list[str]) -> Json:
        faulty = self._limits["pattern"]
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and pattern_faults(pattern, faulty):
            notes += [f"Pattern: {pattern}"] if len(pattern) <= _LONGEST_PATTERN else []
            schema = {key: value for key, value in schema.items() if key != "pattern"}
        keyed = schema.get("patternProperties")
        if isinstance(keyed, Mapping) and any(pattern_faults(one, faulty) for one in keyed):
            # Without this pattern, `additionalProperties` would also apply to the matching names.
            schema = {key: value for key, value in schema.items() if key != "additionalProperties"}
            schema["patternProperties"] = {key: one for key, one in keyed.items() if not pattern_faults(key, faulty)}
        return schema


def _with_values(schema: Json, notes: list[str], faulty: frozenset[str]) -> Json:
    """Return the schema without empty values in `enum`, or without `enum` if the other values are faulty."""
    values = distinct(schema["enum"])
    rest = {key: value for key, value in schema.items() if key != "enum"}
    lost = [value for value in ("", None) if value in values and enum_faults([value], faulty)]
    permitted = [value for value in values if value not in lost]
    if permitted and enum_faults(permitted, faulty):
        shown = ", ".join(str(to_json(value), "utf-8") for value in values[:_SHOWN_VALUES])
        notes.append(f"One of: {shown}{', …' if len(values) > _SHOWN_VALUES else ''}.")
        return rest
    if permitted and rest.get("default", values) in lost:
        lost.remove(rest.pop("default"))  # a caller omits the argument to get its default
    if lost:
        names = ("null" if value is None else "empty" for value in lost)
        notes.append(f"{'May be' if permitted else 'Always'} {' or '.join(names)}.")
    if not permitted:
        return rest
    texts = all(isinstance(value, str) for value in permitted)
    kind = {"type": "string"} if texts and "type" not in schema and None not in values else {}
    return {**kind, **rest, "enum": permitted}


# --- merging ---


def _without_combinators(schema: Json, notes: list[str]) -> Json:
    """Merge `allOf` and alternatives into the other keywords of a schema."""
    done = {key: value for key, value in schema.items() if key not in _COMBINING}
    for part in subschemas_of(schema, "allOf"):
        done = _intersection(done, part)
    for keyword in _CHOICES:
        if branches := [branch for branch in subschemas_of(schema, keyword) if branch is not False]:
            done = _intersection(done, _union(branches, notes))
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
    notes.append(_choices_note(rest, " (or null)" if nulls else ""))
    done: Json = reduce(partial(unite_schemas, inner=lambda *pair: _union(pair, [])), rest)
    if isinstance(done.get("type"), list):
        return {"enum": done["enum"]} if "enum" in done else {}
    return done


def _choices_note(branches: Iterable[Any], end: str = "") -> str:
    summaries = list(dict.fromkeys(_summary(branch) for branch in branches if isinstance(branch, Mapping)))
    return f"One of: {'; '.join(summaries[:_SHOWN])}{', …' if len(summaries) > _SHOWN else ''}{end}."


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
    return " or ".join(kinds) or str(branch.get("description", "any value"))[:60].rstrip(".")


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
