"""All schemas of one document: translates those of operations at once and the shared ones that they reach afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import JsonSchema, Problems
from mcpfactory_codegen.openapi.keywords import INPLACE
from mcpfactory_codegen.openapi.reading import Direction, SpecVersion
from mcpfactory_codegen.openapi.references import Location, References, UnresolvedError
from mcpfactory_codegen.openapi.sharing import SchemaNames, SharedSchemas, Visibility
from mcpfactory_codegen.openapi.translate import Spot, Translator

__all__ = ["Schemas", "break_cycles"]


class Schemas:
    """The schemas of one document; `shared` is what `Api.schemas` will be."""

    def __init__(self, spec: SpecVersion, references: References, visibility: Visibility, problems: Problems) -> None:
        try:
            named = references.resolve(f"#{spec.schemas}", Location("", "")).node
        except UnresolvedError:
            named = {}  # a document may well have none
        self._names = SchemaNames(named, spec.schemas)
        self._problems = problems
        self._named = SharedSchemas(self._names, visibility)
        self._translator = Translator(spec, references, visibility, problems, self._named)
        self._shared: dict[str, JsonSchema] = {}
        self._inline: dict[tuple[Location, Direction], JsonSchema] = {}

    def translate(self, node: Any, location: Location, direction: Direction) -> JsonSchema:
        """Return the schema of a parameter, body or response. One location gives one (shared, not to be changed) result."""
        key = (location, direction)
        if key not in self._inline:
            self._inline[key] = self._translator.schema(node, Spot(location, direction))
        return self._inline[key]

    def shared(self) -> dict[str, JsonSchema]:
        """Every schema that was referred to, by name, in the order of the names. Call it once, when all is translated."""
        while self._named.waiting:
            name, target, direction = self._named.waiting.pop()
            self._shared[name] = self._translator.schema(target.node, Spot(target.location, direction))
        break_cycles(self._shared, lambda name: self._names.variant_of(name, "base"), self._report_cycle)
        return dict(sorted(self._shared.items()))

    def _report_cycle(self, name: str) -> None:
        location = self._named.locations.get(name)
        message = (
            f"the schema {name!r} is defined by itself without end; the reference that closes the circle was dropped"
        )
        self._problems.add(
            "schema-cycle", str(location) if location else "", message, "one of the schemas has to be written out"
        )


# --- References that apply schemas to the same value in a circle: no validator would ever finish with them ---
#
# A cycle through `properties` or `items` is fine (the value gets smaller on the way). One through `$ref`, `allOf`, `oneOf`
# and the like is not. The usual one is inheritance written twice: Pet has `oneOf: [Cat, Dog]`, and Cat has
# `allOf: [Pet, …]`. What Cat means is Pet's own properties, so it is given Pet without the choice (`Pet_base`); any
# other cycle loses the reference that closes it.


_PREFIX: Final = "#/$defs/"
Definitions = dict[str, JsonSchema]


def break_cycles(schemas: Definitions, new_name: Callable[[str], str], report: Callable[[str], None]) -> None:
    """Change `schemas` in place. `new_name` names the base of a schema; `report` takes the name of the schema that lost a reference."""
    _separate_bases(schemas, new_name)
    for name, use in _back_references(schemas):
        use.holder.pop("$ref", None)  # a base shares parts with the schema that it was made from
        if use.negated:
            use.holder["not"] = {}  # under `not`, accepting nothing is what accepts anything
        report(name)


class _Use(NamedTuple):
    """A reference that applies to the same value: the object that holds it, what it names, and how it is applied."""

    holder: dict[str, Any]
    target: str
    keyword: str  # the outermost one, "$ref" for the schema's own
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
            use.holder["$ref"] = _PREFIX + bases[target]


def _inplace(schema: JsonSchema) -> Iterator[_Use]:
    stack: list[tuple[Any, str, bool]] = [(schema, "", False)]
    while stack:
        node, keyword, negated = stack.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(reference := node.get("$ref"), str):
            yield _Use(node, reference.removeprefix(_PREFIX), keyword or "$ref", negated)
        for key, value in node.items():
            if key == "$ref" or key not in INPLACE:
                continue
            parts = value.values() if key == "dependentSchemas" else value if isinstance(value, list) else [value]
            stack.extend((part, keyword or key, negated != (key == "not")) for part in parts)


def _components(schemas: Definitions) -> dict[str, int]:
    """Return the schemas that lie on a cycle, each with the number of its strongly connected component (Kosaraju)."""
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
    """Return the nodes in the order in which a search depth first leaves them."""
    order: list[str] = []
    seen: set[str] = set()
    for start, first in graph.items():
        path = [] if start in seen else [(start, iter(first))]
        seen.add(start)
        while path:
            name, targets = path[-1]
            target = next((one for one in targets if one not in seen), None)
            if target is None:
                order.append(name)
                path.pop()
            else:
                seen.add(target)
                path.append((target, iter(graph[target])))
    return order


def _back_references(schemas: Definitions) -> list[tuple[str, _Use]]:
    """Return the references that close a cycle, seen depth first."""
    back_references: list[tuple[str, _Use]] = []
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
