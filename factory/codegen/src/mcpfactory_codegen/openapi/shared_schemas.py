"""Shared schemas: detection of different forms for requests and responses, and the name of each form.

`readOnly` properties are removed from request schemas, and `writeOnly` properties from response schemas (OpenAPI 3.1
§4.8.24, JSON Schema validation 9.4). A shared schema needs a separate form for a direction only if the schema, or a
schema that it references, hides a property in that direction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi.context import Direction
from mcpfactory_codegen.openapi.keywords import DROPPED
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError
from mcpfactory_runtime.schemas.walk import (
    APPLICATORS,
    IN_PLACE,
    children,
    definition,
    definition_reference,
    subschemas_of,
    unescape,
)

_FLAGS: Final[dict[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}
_FLAG_LEVELS: Final = 10  # maximum levels of references and `allOf` to search for the flag of a property


class HiddenProperties:
    """Hidden properties of one document, by direction."""

    def __init__(self, references: References, raws: Iterator[bytes]) -> None:
        """Prepare the scan for flags that occur in the bytes `raws` of the document's parts."""
        self._references = references
        text = list(raws)
        self._used: frozenset[Direction] = frozenset(
            direction for direction, flag in _FLAGS.items() if any(flag.encode() in raw for raw in text)
        )
        self._differs: dict[Location, set[Direction]] = {}

    def hides(self, schema: Any, location: Location, direction: Direction) -> bool:
        """Return True if `direction` hides a property with this schema."""
        return direction in self._used and self._flagged(schema, location, _FLAGS[direction], _FLAG_LEVELS)

    def hidden_in(self, schema: Any, location: Location, direction: Direction) -> frozenset[str]:
        """Return the names of hidden properties of a schema, its `allOf` and its references."""
        if direction not in self._used:
            return frozenset()
        names: set[str] = set()
        self._collect(schema, location, direction, names, _FLAG_LEVELS)
        return frozenset(names)

    def has_separate_form(self, target: LocatedNode, direction: Direction) -> bool:
        """Return True if this shared schema has a separate form for this direction."""
        if direction not in self._used:
            return False
        if target.location not in self._differs:
            self._scan(target)
        return direction in self._differs[target.location]

    def _flagged(self, schema: Any, location: Location, flag: str, levels: int) -> bool:
        if not isinstance(schema, dict) or levels == 0:
            return False
        if schema.get(flag) is True:
            return True
        if isinstance(schema.get("$ref"), str):
            target = self._target(schema, location)
            return target is not None and self._flagged(*target, flag, levels - 1)
        return any(self._flagged(*part, flag, levels - 1) for part in LocatedNode(schema, location).parts("allOf"))

    def _collect(self, schema: Any, location: Location, direction: Direction, names: set[str], levels: int) -> None:
        if not isinstance(schema, dict) or levels == 0:
            return
        if isinstance(schema.get("$ref"), str):
            if (target := self._target(schema, location)) is not None and self.has_separate_form(target, direction):
                self._collect(*target, direction, names, levels - 1)
            return
        properties, at = self._references.mapping(schema.get("properties"), location.down("properties"))
        if isinstance(properties, dict):
            for name, value in properties.items():
                if self._flagged(value, at.down(name), _FLAGS[direction], _FLAG_LEVELS):
                    names.add(name)
        for part in LocatedNode(schema, location).parts("allOf"):
            self._collect(*part, direction, names, levels - 1)

    def _scan(self, first: LocatedNode) -> None:
        """Scan all unscanned schemas below `first`.

        A schema that refers to a schema with a separate form needs a separate form itself.
        """
        users: dict[Location, list[Location]] = {}
        flowing: list[tuple[Location, Direction]] = []
        waiting = [first]
        while waiting:
            target = waiting.pop()
            if target.location in self._differs:
                continue
            self._differs[target.location] = set()
            for kind, found in self._walk(target):
                if kind != "":
                    flowing.append((target.location, kind))
                    continue
                users.setdefault(found.location, []).append(target.location)
                flowing.extend((target.location, direction) for direction in self._differs.get(found.location, ()))
                if found.location not in self._differs:
                    waiting.append(found)
        while flowing:
            location, direction = flowing.pop()
            if direction not in self._differs[location]:
                self._differs[location].add(direction)
                flowing.extend((user, direction) for user in users.get(location, ()))

    def _walk(self, target: LocatedNode) -> Iterator[tuple[Direction, LocatedNode]]:
        """Yield each hidden property of a schema as (direction, _), and each reference as ("", target)."""
        stack: list[LocatedNode] = [target]
        while stack:
            node, location = stack.pop()
            if not isinstance(node, dict):
                continue
            if isinstance(node.get("$ref"), str) and (found := self._target(node, location)) is not None:
                yield "", found
            for key, value in node.items():
                holds = None if key in DROPPED else APPLICATORS.get(key)
                if holds == "one":
                    stack.append(LocatedNode(value, location.down(key)))
                elif holds == "list":
                    stack.extend(LocatedNode(node, location).parts(key))
                elif holds == "map" and isinstance(value, dict):
                    schemas, at = self._references.mapping(value, location.down(key))
                    for name, one in schemas.items() if isinstance(schemas, dict) else ():
                        child = at.down(name)
                        stack.append(LocatedNode(one, child))
                        if key == "properties":
                            yield from (
                                (way, target)
                                for way in self._used
                                if self._flagged(one, child, _FLAGS[way], _FLAG_LEVELS)
                            )

    def _target(self, node: dict[str, Any], location: Location) -> LocatedNode | None:
        try:
            return self._references.resolve(node["$ref"], location)
        except UnresolvedError:
            return None  # the error is reported when the schema is converted


Variant = str
"""Form of a schema: complete, for requests, for responses, or the base that `break_cycles` creates."""

_GENERIC: Final = frozenset(
    {
        "allOf", "anyOf", "oneOf", "items", "properties", "schema", "schemas", "content", "components", "definitions", "$defs",
        "paths", "parameters", "responses", "requestBody", "requestBodies", "headers", "additionalProperties",
    }
)  # fmt: skip


class SchemaNames:
    """Unique names of schemas, by (location, variant)."""

    def __init__(self, named: Any, pointer: str) -> None:
        """Reserve the names in `named`, the document's map of schemas at `pointer`."""
        self._names: dict[tuple[Location, Variant], str] = {}
        self._taken: set[str] = set()
        if isinstance(named, dict):
            for key in named:
                location = Location("", pointer).down(key)
                self._names[location, ""] = self._unique(str(key))

    def assign_name(self, location: Location, variant: Variant) -> str:
        """Return the name of a schema, chosen at the first call."""
        if (known := self._names.get((location, variant))) is not None:
            return known
        wanted = f"{self.assign_name(location, '')}_{variant}" if variant else _wanted_name(location)
        name = self._names[location, variant] = self._unique(wanted)
        return name

    def variant_of(self, name: str, variant: Variant) -> str:
        """Return a new unique name that is derived from the original name."""
        return self._unique(f"{name}_{variant}")

    def _unique(self, wanted: str) -> str:
        name = wanted = re.sub(r"[^A-Za-z0-9._-]+", "_", wanted).strip("_")[:100] or "schema"
        number = 2
        while name in self._taken:
            name = f"{wanted}_{number}"
            number += 1
        self._taken.add(name)
        return name


def _wanted_name(location: Location) -> str:
    tokens = [unescape(token) for token in location.pointer.split("/")[1:]]
    telling = [token for token in tokens if token not in _GENERIC and "/" not in token and not token.isdigit()]
    if telling:
        return "_".join(telling[-2:]) if tokens[0] == "paths" else telling[-1]
    file = unquote(location.part).rstrip("/").rpartition("/")[2]
    return file.partition("?")[0].rpartition(".")[0] or file or "schema"


class SharedSchemaQueue:
    """Names of all referenced schemas, and the queue of schemas to translate."""

    def __init__(self, names: SchemaNames, visibility: HiddenProperties) -> None:
        self._names = names
        self._visibility = visibility
        self.waiting: list[tuple[str, LocatedNode, Direction]] = []
        self.locations: dict[str, Location] = {}

    def name(self, target: LocatedNode, direction: Direction) -> str:
        """Return the `$defs` name of a schema in a direction."""
        variant: Direction = direction if self._visibility.has_separate_form(target, direction) else ""
        name = self._names.assign_name(target.location, variant)
        if name not in self.locations:
            self.locations[name] = target.location
            self.waiting.append((name, target, variant))
        return name


# --- reference cycles that never descend into the value ---
#
# Such a cycle would send a validator into an endless recursion.
# A cycle through `properties` or `items` is allowed, because each step descends into the value.
# A cycle through `$ref`, `allOf`, `oneOf` and similar keywords is not allowed.
# The usual case is inheritance in both directions: Pet has `oneOf: [Cat, Dog]`, and Cat has `allOf: [Pet, …]`.
# Cat needs only the properties of Pet, so Cat gets a reference to a copy of Pet without the `oneOf` (`Pet_base`).
# Any other cycle loses the reference that closes the cycle.


Definitions = dict[str, JsonSchema]


def break_cycles(schemas: Definitions, new_name: Callable[[str], str], report: Callable[[str], None]) -> None:
    """Break the cycles in `schemas`, in place.

    `new_name` returns the name for the base of a schema. `report` is called with each schema that loses a reference.
    """
    _separate_bases(schemas, new_name)
    for name, use in _back_references(schemas):
        # the reference may already be missing, because a base and its original schema share parts
        use.holder.pop("$ref", None)
        if use.negated:
            use.holder["not"] = {}  # `{"not": {}}` accepts nothing, so that a `not` around it accepts every value
        report(name)
    _drop_implied_parts(schemas)


def _drop_implied_parts(schemas: Definitions) -> None:
    """Drop `allOf` references to schemas that another part also applies, because each reference would be validated."""
    applied: dict[str, frozenset[str]] = {}
    for name in _finished({name: _applied_to_all(schema) for name, schema in schemas.items()}):
        schema = schemas[name]
        targets = _applied_to_all(schema)
        implied = frozenset().union(*(applied.get(target, frozenset()) for target in targets))
        applied[name] = implied | {*targets}
        parts = subschemas_of(schema, "allOf")
        kept = [part for part in parts if not (_is_reference(part) and definition(part["$ref"]) in implied)]
        if isinstance(schema, dict) and len(kept) < len(parts):
            schema["allOf"] = kept


def _applied_to_all(schema: JsonSchema) -> list[str]:
    """Return the schemas to which every value of this schema conforms."""
    return [definition(part["$ref"]) for part in subschemas_of(schema, "allOf") if _is_reference(part)]


def _is_reference(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() == {"$ref"}


class _AppliedReference(NamedTuple):
    """A reference, and the object `holder` that contains the `$ref`."""

    holder: dict[str, Any]
    target: str
    keyword: str  # outermost keyword on the way to the reference, or "$ref" if the schema is only a reference
    negated: bool


def _separate_bases(schemas: Definitions, new_name: Callable[[str], str]) -> None:
    component = _components(schemas)
    bases: dict[str, str] = {}
    for name in list(schemas):
        schema = schemas[name]
        if not isinstance(schema, dict) or name not in component:
            continue
        for use in list(_inplace(schema)):
            target = use.target
            parent = schemas.get(target)
            if use.keyword != "allOf" or component.get(target) != component[name] or not isinstance(parent, dict):
                continue
            choices = [key for key in ("oneOf", "anyOf") if key in parent]
            if not choices:
                continue
            if target not in bases:
                bases[target] = new_name(target)
                schemas[bases[target]] = {key: value for key, value in parent.items() if key not in choices}
            use.holder["$ref"] = definition_reference(bases[target])


def _inplace(schema: JsonSchema) -> Iterator[_AppliedReference]:
    stack: list[tuple[Any, str, bool]] = [(schema, "", False)]
    while stack:
        node, keyword, negated = stack.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(reference := node.get("$ref"), str):
            yield _AppliedReference(node, definition(reference), keyword or "$ref", negated)
        for (key, *_), part in children(node):
            if key in IN_PLACE:
                stack.append((part, keyword or str(key), negated != (key == "not")))


def _components(schemas: Definitions) -> dict[str, int]:
    """Return the number of the strongly connected component of each schema on a cycle, by Kosaraju's algorithm."""
    graph = {
        name: [use.target for use in _inplace(schema) if use.target in schemas] for name, schema in schemas.items()
    }
    users: dict[str, list[str]] = {name: [] for name in graph}
    for name, targets in graph.items():
        for target in targets:
            users[target].append(name)
    component: dict[str, int] = {}
    for number, start in enumerate(reversed(_finished(graph))):
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in component:
                component[name] = number
                waiting += users[name]
    sizes = Counter(component.values())
    return {name: number for name, number in component.items() if sizes[number] > 1 or name in graph[name]}


def _finished(graph: dict[str, list[str]]) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    for start, first in graph.items():
        path = [] if start in seen else [(start, iter(first))]
        seen.add(start)
        while path:
            name, targets = path[-1]
            target = next((one for one in targets if one not in seen and one in graph), None)
            if target is None:
                order.append(name)
                path.pop()
            else:
                seen.add(target)
                path.append((target, iter(graph[target])))
    return order


def _back_references(schemas: Definitions) -> list[tuple[str, _AppliedReference]]:
    """Return the references that close a cycle, in the order of a depth-first search."""
    back_references: list[tuple[str, _AppliedReference]] = []
    done: set[str] = set()
    for start in schemas:
        if start in done:
            continue
        open_: set[str] = {start}
        work = [(start, _inplace(schemas[start]))]
        while work:
            name, uses = work[-1]
            for use in uses:
                if use.target in open_:
                    back_references.append((name, use))
                elif use.target in schemas and use.target not in done:
                    open_.add(use.target)
                    work.append((use.target, _inplace(schemas[use.target])))
                    break
            else:
                work.pop()
                open_.discard(name)
                done.add(name)
    return back_references
