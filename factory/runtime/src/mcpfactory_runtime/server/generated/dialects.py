"""Dialects for clients with limits, and pure functions that convert tools to them.

Arguments are checked against a tool's own schema in every dialect; only the list differs. The rules:

1. A reference is replaced by its target. If that would never end, or grow too large, the type and a note remain.
2. Combined schemas become one that permits the same values, and more if that cannot be decided; a note reports it.
3. Omissions never make a schema stricter, so the server still validates everything that a client sends.
4. A name that is too long keeps its beginning, and a digest makes it unique and deterministic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mcpfactory_runtime.server.registry import Tool
from mcpfactory_runtime.server.schema.references import SchemaReferences, UnusableSchemaError
from mcpfactory_runtime.types import Json


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a client.

    Attributes:
        combinators: permitted positions of `anyOf`, `oneOf`, `allOf`, `not` and the like; "below" is anywhere but in
            the root.
        types: True if `type` may be a list.
        name: maximum length of a tool's name. Many clients prepend the server's name and permit 64 characters for
            both.
    """

    combinators: Literal["anywhere", "below", "nowhere"]
    types: bool
    name: int


DIALECTS: Final[dict[str, Limits | None]] = {
    "standard": None,  # unchanged JSON Schema 2020-12
    "plain": Limits("below", types=True, name=64),
    "flat": Limits("nowhere", types=False, name=40),
}
"""No `$ref` and no `$defs` in any but "standard"."""

_PARTS: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "items",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTS: Final = frozenset({"prefixItems"})
_MAPS: Final = frozenset({"properties", "patternProperties"})
_CHOICES: Final = ("anyOf", "oneOf")
_DROPPED: Final = frozenset({"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "$dynamicRef"})
_COMBINING: Final = _DROPPED | {*_CHOICES, "allOf"}
_IGNORED: Final = frozenset({"$defs", "definitions", "$id", "$anchor", "$dynamicAnchor", "$schema", "$comment"})
_TEXTS: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
_MAX_SCHEMAS: Final = 3_000  # schemas in one tool
_MAX_DEPTH: Final = 24  # schemas inside each other
_SHOWN: Final = 6
_DIGEST: Final = 6


def adapt_tool(wire: Json, limits: Limits) -> Json:
    """Return the Tool object of tools/list within these limits; an output schema that would have to be changed is left out."""
    schema, notes = _flattened(wire["inputSchema"], limits)
    done = {**wire, "inputSchema": schema}
    if notes:
        done["description"] = "\n".join(filter(None, (wire.get("description", ""), *notes)))
    if "outputSchema" in wire and adapt_schema(wire["outputSchema"], limits) != wire["outputSchema"]:
        del done["outputSchema"]
    return done


def adapt_schema(schema: Any, limits: Limits) -> Any:
    """One schema within these limits."""
    return _flattened(schema, limits)[0]


def _flattened(schema: Any, limits: Limits) -> tuple[Any, list[str]]:
    """Return the flattened schema, and notes about its root.

    An unreadable schema stays unchanged: such a tool cannot be called.
    """
    if not isinstance(schema, Mapping):
        return schema, []
    try:
        return _Flattener(schema, limits).root(schema)
    except UnusableSchemaError:
        return schema, []


def shorten_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Name → the same name of at most `longest` characters, unique and independent of the other names' order."""
    return {name: name if len(name) <= longest else _cut(name, longest) for name in names}


def _cut(name: str, longest: int) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: longest - _DIGEST - 1].rstrip('_-.')}_{digest}"


class _Flattener:
    def __init__(self, root: Mapping[str, Any], limits: Limits) -> None:
        self._references = SchemaReferences(root)
        self._limits = limits
        self._left = _MAX_SCHEMAS

    def root(self, schema: Mapping[str, Any]) -> tuple[Json, list[str]]:
        notes: list[str] = []
        done = self._node(schema, (), 0, notes, merge=self._limits.combinators != "anywhere")
        if not isinstance(done, dict):
            done = {}
        done = {"type": "object", **done}
        if done.get("additionalProperties") == {}:
            del done["additionalProperties"]
        return done, notes

    def _node(self, schema: Any, inside: tuple[str, ...], depth: int, outer: list[str] | None, *, merge: bool) -> Any:
        """One schema. `inside`: the references that led here. Notes go to `outer`, or into its description."""
        if not isinstance(schema, Mapping):
            return schema
        self._left -= 1
        notes: list[str] = []
        done = self._followed(schema, inside, depth, notes, merge=merge)
        if merge and not _COMBINING.isdisjoint(done):
            done = _without_combinators(done, notes)
        if not self._limits.types and isinstance(done.get("type"), list):
            done = _one_type(done, notes)
        if outer is not None:
            outer += notes
        elif notes:
            done["description"] = " ".join(filter(None, (str(done.get("description", "")), *notes)))
        return done

    def _followed(
        self, schema: Mapping[str, Any], inside: tuple[str, ...], depth: int, notes: list[str], *, merge: bool
    ) -> Json:
        """Return the schema with its reference replaced, and all that is in it done."""
        own = {key: value for key, value in schema.items() if key not in _IGNORED and key != "$ref"}
        if not isinstance(schema.get("$ref"), str):
            return self._parts(own, inside, depth)
        place, target = self._references.follow(schema)
        name = place.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping):
            return self._parts(own, inside, depth)
        if place in inside or self._left < 0 or depth > _MAX_DEPTH:
            why = "holds itself" if place in inside else "is too large to show"
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
            combining = key in _COMBINING and key != "dependentRequired"
            merge = everywhere or (combining and depth == 0 and self._limits.combinators == "below")

            def one(part: Any, merge: bool = merge) -> Any:
                return self._node(part, inside, depth + 1, None, merge=merge)

            if isinstance(value, Mapping) and (key in _MAPS or key == "dependentSchemas"):
                done[key] = {name: one(part) for name, part in value.items()}
            elif isinstance(value, list) and (key in _LISTS or key in {"allOf", *_CHOICES}):
                done[key] = [one(part) for part in value]
            elif isinstance(value, Mapping) and (key in _PARTS or combining):
                done[key] = one(value)
            else:
                done[key] = value
        return done


# --- several schemas as one ---


def _without_combinators(schema: Json, notes: list[str]) -> Json:
    """Without combinators: what all of `allOf` say, what any of the alternatives permits."""
    done = {key: value for key, value in schema.items() if key not in _COMBINING}
    for part in schema.get("allOf", ()):
        if isinstance(part, Mapping):
            done = _intersection(done, part)
    for keyword in _CHOICES:
        branches = [branch for branch in schema.get(keyword, ()) if branch is not False]
        if branches:
            done = _intersection(done, _union(branches, notes))
    if not _DROPPED.isdisjoint(schema):
        notes.append("Some combinations of values are not permitted.")
    return done


def _intersection(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Return a schema satisfied by all values that satisfy both; of two bounds of a kind the first counts."""
    done = dict(one)
    for key, value in other.items():
        if key == "properties" and isinstance(done.get(key), Mapping):
            mine = done[key]
            merged = {
                name: _intersection(mine[name], part) if _are_schemas(mine.get(name), part) else part
                for name, part in value.items()
            }
            done[key] = {**mine, **merged}
        elif key == "required" and isinstance(done.get(key), list):
            done[key] = list(dict.fromkeys([*done[key], *value]))
        elif key == "additionalProperties" and done.get(key) != value and key in done:
            done[key] = True  # one schema may permit members that the other does not know
        elif key not in done:
            done[key] = value
    if done.get("additionalProperties") is False and ("properties" in one) and ("properties" in other):
        del done["additionalProperties"]
    return done


def _are_schemas(*values: Any) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _union(branches: list[Any], notes: list[str]) -> Json:
    """One schema that permits what any of them does, and a note of what each was."""
    nulls = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") == "null"]
    rest = [branch for branch in branches if branch not in nulls]
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        notes.append("May be null.")
        return dict(rest[0])
    if not all(isinstance(branch, Mapping) for branch in rest) or not rest:
        return {}
    summaries = list(dict.fromkeys(_summary(branch) for branch in rest))
    more = ", …" if len(summaries) > _SHOWN else ""
    notes.append(f"One of: {'; '.join(summaries[:_SHOWN])}{more}{' (or null)' if nulls else ''}.")
    kinds = {str(branch.get("type")) for branch in rest}
    done: Json = (
        {"type": kinds.pop()} if len(kinds) == 1 and all(isinstance(one.get("type"), str) for one in rest) else {}
    )
    values = [branch.get("enum", [branch["const"]] if "const" in branch else None) for branch in rest]
    if all(isinstance(value, list) for value in values):
        done["enum"] = _distinct(value for each in values for value in each)
    if done.get("type") == "object" or all("properties" in branch for branch in rest):
        done |= _any_object(rest)
    if done.get("type") == "array":
        items = [branch.get("items") for branch in rest]
        if all(isinstance(item, Mapping) for item in items):
            done["items"] = items[0] if all(item == items[0] for item in items) else _union(items, [])
    return done


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, for clients refuse an enum that repeats one; `1` and `true` are two."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _any_object(branches: list[Any]) -> Json:
    properties: Json = {}
    for branch in branches:
        for name, part in branch.get("properties", {}).items():
            known = properties.get(name, part)
            either = _union([known, part], []) if _are_schemas(known, part) else {}
            properties[name] = part if known == part else either
    required = [
        name for name in branches[0].get("required", ()) if all(name in one.get("required", ()) for one in branches)
    ]
    done: Json = {"properties": properties} if properties else {}
    return done | ({"required": required} if required else {})


def _summary(branch: Mapping[str, Any]) -> str:
    if isinstance(branch.get("title"), str):
        return str(branch["title"])[:60]
    if "const" in branch:
        return str(branch["const"])[:60]
    if isinstance(branch.get("required"), list) and branch["required"]:
        return "with " + " and ".join(map(str, branch["required"][:_SHOWN]))
    kind = branch.get("type", "any value")
    if kind == "array" and isinstance(branch.get("items"), Mapping):
        return f"array of {branch['items'].get('type', 'any')}"
    if isinstance(branch.get("properties"), Mapping) and branch["properties"]:
        return "object with " + ", ".join(list(branch["properties"])[:_SHOWN])
    return str(kind) if isinstance(kind, str) else " or ".join(map(str, kind))


def _one_type(schema: Json, notes: list[str]) -> Json:
    """`type` as one name: null is noted; of several others none is kept."""
    kinds = [kind for kind in schema["type"] if kind != "null"]
    if len(kinds) < len(schema["type"]):
        notes.append("May be null.")
        values = schema.get("enum")
        if kinds and isinstance(values, list) and any(value is not None for value in values):
            schema = {**schema, "enum": [value for value in values if value is not None]}  # as the type says
    if len(kinds) == 1:
        return {**schema, "type": kinds[0]}
    if kinds:
        notes.append(f"One of: {'; '.join(map(str, kinds))}.")
    return {key: value for key, value in schema.items() if key != "type"}


# --- tools ---


def tool_in_dialect(tool: Tool, name: str, limits: Limits) -> Tool:
    """Return the tool under another name and with another look; it does what the tool does, and checks as it does."""

    def load(view: Tool) -> None:
        if tool.load is not None:
            tool.load(tool)
        view.handler, view.bind, view.convert = tool.handler, tool.bind, tool.convert
        view.context, view.is_async, view.load = tool.context, tool.is_async, None

    view = Tool(name, {**adapt_tool(tool.wire, limits), "name": name}, load)
    view.scopes = tool.scopes
    return view
