"""References that apply schemas to the same value in a circle: no validator would ever finish with them.

A cycle through `properties` or `items` is fine (the value gets smaller on the way). One through `$ref`, `allOf`, `oneOf`
and the like is not. The usual one is inheritance written twice: Pet has `oneOf: [Cat, Dog]`, and Cat has
`allOf: [Pet, …]`. What Cat means is Pet's own properties, so it is given Pet without the choice (`Pet_base`); any
other cycle loses the reference that closes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi.keywords import INPLACE

__all__ = ["break_cycles"]

_PREFIX: Final = "#/$defs/"
Schemas = dict[str, JsonSchema]


def break_cycles(schemas: Schemas, new_name: Callable[[str], str], report: Callable[[str], None]) -> None:
    """Change `schemas` in place. `new_name` names the base of a schema; `report` is told the schema that lost a reference."""
    _separate_bases(schemas, new_name)
    for name, holder in _closing(schemas):
        holder.pop("$ref", None)  # a base shares parts with the schema that it was made from
        report(name)


def _separate_bases(schemas: Schemas, new_name: Callable[[str], str]) -> None:
    component = _components(schemas)
    bases: dict[str, str] = {}
    for name in list(schemas):
        schema = schemas[name]
        if not isinstance(schema, dict) or name not in component:
            continue
        for holder, target, keyword in list(_inplace(schema)):
            parent = schemas.get(target)
            if keyword != "allOf" or component.get(target) != component[name] or not isinstance(parent, dict):
                continue
            choices = [key for key in ("oneOf", "anyOf") if key in parent]
            if not choices:
                continue
            if target not in bases:
                bases[target] = new_name(target)
                schemas[bases[target]] = {key: value for key, value in parent.items() if key not in choices}
            holder["$ref"] = _PREFIX + bases[target]


def _inplace(schema: JsonSchema) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every reference that applies to the same value: the object that holds it, its target, and the outermost keyword."""
    stack: list[tuple[Any, str]] = [(schema, "")]
    while stack:
        node, keyword = stack.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(reference := node.get("$ref"), str):
            yield node, reference.removeprefix(_PREFIX), keyword or "$ref"
        for key in INPLACE & node.keys():
            value = node[key]
            if isinstance(value, list):
                stack.extend((one, keyword or key) for one in value)
            elif isinstance(value, dict):
                stack.extend(
                    (one, keyword or key) for one in (value.values() if key == "dependentSchemas" else [value])
                )


def _components(schemas: Schemas) -> dict[str, int]:
    """The schemas that lie on a cycle, each with the number of its strongly connected component (Tarjan, iterative)."""
    graph = {
        name: [target for _, target, _ in _inplace(schema) if target in schemas] for name, schema in schemas.items()
    }
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: dict[str, int] = {}
    for start in graph:
        if start in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []

        def enter(name: str, work: list[tuple[str, Iterator[str]]] = work) -> None:
            index[name] = low[name] = len(index)
            path.append(name)
            on_path.add(name)
            work.append((name, iter(graph[name])))

        enter(start)
        while work:
            name, targets = work[-1]
            for target in targets:
                if target not in index:
                    enter(target)
                    break
                if target in on_path:
                    low[name] = min(low[name], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    members = _leave(name, path, on_path)
                    if len(members) > 1 or name in graph[name]:
                        found.update(dict.fromkeys(members, index[name]))
    return found


def _leave(name: str, path: list[str], on_path: set[str]) -> list[str]:
    members = []
    while True:
        member = path.pop()
        on_path.discard(member)
        members.append(member)
        if member == name:
            return members


def _closing(schemas: Schemas) -> list[tuple[str, dict[str, Any]]]:
    """The references that close a cycle, seen depth first."""
    closing: list[tuple[str, dict[str, Any]]] = []
    done: set[str] = set()
    for start in schemas:
        if start in done:
            continue
        open_: set[str] = {start}
        work = [(start, _inplace(schemas[start]))]
        while work:
            name, references = work[-1]
            for holder, target, _ in references:
                if target in open_:
                    closing.append((name, holder))
                elif target in schemas and target not in done:
                    open_.add(target)
                    work.append((target, _inplace(schemas[target])))
                    break
            else:
                work.pop()
                open_.discard(name)
                done.add(name)
    return closing
