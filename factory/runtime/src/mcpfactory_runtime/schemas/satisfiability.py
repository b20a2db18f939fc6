"""Search for schemas that no value satisfies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_runtime.schemas.merge import common_types, enum_values
from mcpfactory_runtime.schemas.value_validation import json_key
from mcpfactory_runtime.schemas.walk import (
    definition,
    items_schema_of,
    properties_of,
    required_of,
    subschemas_of,
    types_of,
)

_DEPTH: Final = 40  # maximum nesting of schemas; deeper schemas count as satisfiable
_VISITS: Final = 5_000  # maximum schemas to check, because branches can multiply; later schemas count as satisfiable


def is_unsatisfiable(schema: Any, definitions: Mapping[str, Any]) -> bool:
    """Return True if no value satisfies a schema. Return False if this is unknown.

    Contradictions of types, values, required properties and items are found, and members that require themselves.
    `definitions` has the schemas in `$defs`.
    """
    return _Search(definitions).fails(schema, frozenset(), 0)


class _Search:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._satisfiable: set[str] = set()
        self._left = _VISITS

    def fails(self, schema: Any, active: frozenset[str], depth: int) -> bool:
        """Return True if no finite value satisfies a schema, where `active` has the enclosing definitions."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            return schema is False
        names: set[str] = set()
        parts = list(self._parts(schema, names))
        if depth > _DEPTH or (len(schema) == 1 and "$ref" in schema and names <= self._satisfiable):
            return False
        if names & active or self._fails(parts, active | names, depth):
            return True
        self._satisfiable |= names
        return False

    def _parts(self, schema: Any, names: set[str]) -> Iterator[Any]:
        """Yield the schemas that apply to the same value, and add the names of their definitions to `names`."""
        yield schema
        if not isinstance(schema, Mapping):
            return
        if (name := definition(schema.get("$ref"))) and name not in names:
            names.add(name)
            yield from self._parts(self._definitions.get(name, True), names)
        for part in subschemas_of(schema, "allOf"):
            yield from self._parts(part, names)

    def _fails(self, parts: list[Any], active: frozenset[str], depth: int) -> bool:
        if any(part is False for part in parts):
            return True
        parts = [part for part in parts if isinstance(part, Mapping)]
        if any(part.get("not") in (True, {}) for part in parts):
            return True
        typed = [types_of(part) for part in parts if types_of(part)]
        kinds = typed[0] if typed else []
        for other in typed[1:]:
            kinds = common_types({"type": kinds}, {"type": other})
        listed = [{json_key(one) for one in values} for part in parts if (values := enum_values(part)) is not None]
        if (typed and not kinds) or (listed and not set.intersection(*listed)):
            return True
        branches = [subschemas_of(part, key) for part in parts for key in ("anyOf", "oneOf") if part.get(key)]
        if any(all(self.fails(one, active, depth + 1) for one in several) for several in branches):
            return True
        inner: Iterator[Any] = iter(())
        if kinds == ["object"]:
            needed = dict.fromkeys(name for part in parts for name in required_of(part))
            known = [properties_of(part) for part in parts]
            inner = (_all_of([one[name] for one in known if name in one]) for name in needed)
        elif kinds == ["array"] and any(part.get("minItems") for part in parts):
            inner = iter([_all_of([items_schema_of(part) for part in parts])])
        return any(self.fails(one, active, depth + 1) for one in inner)


def _all_of(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"allOf": schemas}
