"""References that apply schemas to the same value in a circle: no validator would ever finish with them.

A cycle through `properties` or `items` is fine (the value gets smaller on the way). One through `$ref`, `allOf`, `oneOf`
and the like is not. The usual one is inheritance written twice: Pet has `oneOf: [Cat, Dog]`, and Cat has
`allOf: [Pet, …]`. What Cat means is Pet's own properties, so it is given Pet without the choice (`Pet_base`); any
other cycle loses the reference that closes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi.keywords import INPLACE

__all__ = ["break_cycles"]

_PREFIX: Final = "#/$defs/"
Schemas = dict[str, JsonSchema]


def break_cycles(schemas: Schemas, new_name: Callable[[str], str], report: Callable[[str], None]) -> None:
    """Change `schemas` in place. `new_name` names the base of a schema; `report` is told the schema that lost a reference."""
    _separate_bases(schemas, new_name)
    for name, use in _closing(schemas):
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


def _separate_bases(schemas: Schemas, new_name: Callable[[str], str]) -> None:
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


def _components(schemas: Schemas) -> dict[str, int]:
    """Return the schemas that lie on a cycle, each with the number of its strongly connected component (Tarjan, iterative)."""
    graph = {
        name: [use.target for use in _inplace(schema) if use.target in schemas] for name, schema in schemas.items()
    }
    search = _Tarjan(graph)
    for name in graph:
        search.visit(name)
    return search.found


class _Tarjan:
    def __init__(self, graph: dict[str, list[str]]) -> None:
        self.graph = graph
        self.found: dict[str, int] = {}
        self._index: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self._path: list[str] = []
        self._on_path: set[str] = set()
        self._work: list[tuple[str, Iterator[str]]] = []

    def visit(self, start: str) -> None:
        if start not in self._index:
            self._enter(start)
        while self._work:
            name, targets = self._work[-1]
            for target in targets:
                if target not in self._index:
                    self._enter(target)
                    break
                if target in self._on_path:
                    self._low[name] = min(self._low[name], self._index[target])
            else:
                self._leave(name)

    def _enter(self, name: str) -> None:
        self._index[name] = self._low[name] = len(self._index)
        self._path.append(name)
        self._on_path.add(name)
        self._work.append((name, iter(self.graph[name])))

    def _leave(self, name: str) -> None:
        self._work.pop()
        if self._work:
            above = self._work[-1][0]
            self._low[above] = min(self._low[above], self._low[name])
        if self._low[name] != self._index[name]:
            return
        members = [self._path.pop()]
        while members[-1] != name:
            members.append(self._path.pop())
        self._on_path.difference_update(members)
        if len(members) > 1 or name in self.graph[name]:
            self.found.update(dict.fromkeys(members, self._index[name]))


def _closing(schemas: Schemas) -> list[tuple[str, _Use]]:
    """Return the references that close a cycle, seen depth first."""
    closing: list[tuple[str, _Use]] = []
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
                    closing.append((name, use))
                elif use.target in schemas and use.target not in done:
                    open_.add(use.target)
                    work.append((use.target, _inplace(schemas[use.target])))
                    break
            else:
                work.pop()
                open_.discard(name)
                done.add(name)
    return closing
