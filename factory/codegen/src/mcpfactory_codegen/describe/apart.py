"""Whether the branches of a `oneOf` exclude each other. Pure.

A `oneOf` admits what fits exactly one branch, and most authors mean at least one: where an object fits two branches that have
no required member in common, no call would be right. So a list shows `oneOf` only where nothing fits two branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

from mcpfactory_codegen.ir import JsonSchema, lookup
from mcpfactory_codegen.text import compact

__all__ = ["are_apart"]

_ALL: Final = frozenset({"string", "number", "boolean", "null", "array", "object"})
_DEPTH: Final = 4  # of compositions that are looked into
_MOST: Final = 64  # branches that are compared with each other


@dataclass(slots=True)
class _Facts:
    """What holds of every value of a schema. `values` are None where any are permitted; `members` those of required members."""

    kinds: frozenset[str] = _ALL
    values: frozenset[str] | None = None
    required: set[str] = field(default_factory=set)
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    closed: list[frozenset[str]] = field(default_factory=list)


def are_apart(branches: Sequence[JsonSchema], schemas: dict[str, JsonSchema]) -> bool:
    """Whether no value fits two of these schemas; False where nothing says so."""
    if len(branches) > _MOST:
        return False
    facts = [_facts(branch, schemas) for branch in branches]
    return all(_exclude(*pair) for pair in combinations(facts, 2))


def _exclude(one: _Facts, other: _Facts) -> bool:
    if one.kinds.isdisjoint(other.kinds):
        return True
    if one.values is not None and other.values is not None and one.values.isdisjoint(other.values):
        return True
    if one.kinds != {"object"} or other.kinds != {"object"}:  # of another kind, members do not count
        return False
    told = one.members.keys() & other.members.keys() & one.required & other.required
    if any(one.members[name].isdisjoint(other.members[name]) for name in told):
        return True
    return _refuses(one, other) or _refuses(other, one)


def _refuses(one: _Facts, other: _Facts) -> bool:
    """Whether one has no place for what the other demands."""
    return any(not other.required <= known for known in one.closed)


def _facts(schema: JsonSchema, schemas: dict[str, JsonSchema]) -> _Facts:
    facts = _Facts()
    for part in _all_of(schema, schemas, 0):
        kind = part.get("type")
        if kind is not None:
            kinds = frozenset(kind if isinstance(kind, list) else [kind])
            facts.kinds &= frozenset("number" if one == "integer" else one for one in kinds)
        if (values := _values(part)) is not None:
            facts.values = values if facts.values is None else facts.values & values
        properties = part.get("properties") or {}
        facts.required |= set(part.get("required") or ())
        for name, member in properties.items():
            found = [one for inner in _all_of(member, schemas, 0) if (one := _values(inner)) is not None]
            if found:
                facts.members[name] = frozenset.intersection(*found, facts.members.get(name, found[0]))
        if part.get("additionalProperties") is False and not part.get("patternProperties"):
            facts.closed.append(frozenset(properties))
    return facts


def _all_of(schema: JsonSchema, schemas: dict[str, JsonSchema], depth: int) -> Iterator[dict[str, Any]]:
    """Yield the schema, and all that its values satisfy beside it."""
    found = lookup(schema, schemas)
    if isinstance(found, dict) and depth < _DEPTH:
        yield found
        for part in found.get("allOf") or ():
            yield from _all_of(part, schemas, depth + 1)


def _values(schema: dict[str, Any]) -> frozenset[str] | None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return frozenset(map(compact, values)) if isinstance(values, list) else None
