"""Read-only and write-only properties: which are hidden in which direction, and which schemas therefore have two forms.

`readOnly` properties are not sent (they go from request schemas), `writeOnly` ones do not come back (OpenAPI 3.1
section 4.8.24, JSON Schema validation 9.4). A shared schema has a form of its own for a direction only if it, or
something that it refers to, hides a property in that direction; that is decided once per schema, in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from mcpfactory_codegen.openapi.keywords import LISTS, MAPS, SCHEMAS
from mcpfactory_codegen.openapi.references import Place, References, Target, UnresolvedError

__all__ = ["Direction", "Visibility"]

Direction = Literal["", "request", "response"]

_FLAGS: Final[dict[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}
_LOOK: Final = 10  # references and allOf levels to look through for the flag of a property


class Visibility:
    """Answers for one document."""

    def __init__(self, references: References, raws: Iterator[bytes]) -> None:
        """`raws`: the bytes of all parts. A document that never says `readOnly` needs no scan for it."""
        self._references = references
        text = list(raws)
        self._used: frozenset[Direction] = frozenset(
            direction for direction, flag in _FLAGS.items() if any(flag.encode() in raw for raw in text)
        )
        self._differs: dict[Place, set[Direction]] = {}

    def hides(self, schema: Any, place: Place, direction: Direction) -> bool:
        """Is a property with this schema left out in this direction?"""
        return direction in self._used and self._flagged(schema, place, _FLAGS[direction], _LOOK)

    def hidden_in(self, schema: Any, place: Place, direction: Direction) -> frozenset[str]:
        """Return the names of properties that a schema hides, also by way of its `allOf` and references."""
        if direction not in self._used:
            return frozenset()
        names: set[str] = set()
        self._collect(schema, place, direction, names, _LOOK)
        return frozenset(names)

    def differs(self, target: Target, direction: Direction) -> bool:
        """Do this shared schema look different in this direction from what is written?"""
        if direction not in self._used:
            return False
        if target.place not in self._differs:
            self._scan(target)
        return direction in self._differs[target.place]

    def _flagged(self, schema: Any, place: Place, flag: str, look: int) -> bool:
        if not isinstance(schema, dict) or look == 0:
            return False
        if schema.get(flag) is True:
            return True
        if isinstance(schema.get("$ref"), str):
            target = self._target(schema, place)
            return target is not None and self._flagged(*target, flag, look - 1)
        return any(
            self._flagged(part, place.down("allOf", index), flag, look - 1)
            for index, part in enumerate(_list(schema.get("allOf")))
        )

    def _collect(self, schema: Any, place: Place, direction: Direction, names: set[str], look: int) -> None:
        if not isinstance(schema, dict) or look == 0:
            return
        if isinstance(schema.get("$ref"), str):
            if (target := self._target(schema, place)) is not None and self.differs(target, direction):
                self._collect(*target, direction, names, look - 1)
            return
        properties, at = self._references.mapping(schema.get("properties"), place.down("properties"))
        if isinstance(properties, dict):
            for name, value in properties.items():
                if self._flagged(value, at.down(name), _FLAGS[direction], _LOOK):
                    names.add(name)
        for index, part in enumerate(_list(schema.get("allOf"))):
            self._collect(part, place.down("allOf", index), direction, names, look - 1)

    def _scan(self, first: Target) -> None:
        """Look at everything that `first` reaches and was not looked at, then let "differs" flow back along references."""
        users: dict[Place, list[Place]] = {}
        flowing: list[tuple[Place, Direction]] = []
        waiting = [first]
        while waiting:
            target = waiting.pop()
            if target.place in self._differs:
                continue
            self._differs[target.place] = set()
            for kind, found in self._walk(target):
                if kind != "":
                    flowing.append((target.place, kind))
                    continue
                users.setdefault(found.place, []).append(target.place)
                flowing.extend((target.place, direction) for direction in self._differs.get(found.place, ()))
                if found.place not in self._differs:
                    waiting.append(found)
        while flowing:
            place, direction = flowing.pop()
            if direction not in self._differs[place]:
                self._differs[place].add(direction)
                flowing.extend((user, direction) for user in users.get(place, ()))

    def _walk(self, target: Target) -> Iterator[tuple[Direction, Target]]:
        """Inside one schema: (direction, _) for each hidden property, ("", target) for each reference."""
        stack: list[Target] = [target]
        while stack:
            node, place = stack.pop()
            if not isinstance(node, dict):
                continue
            if isinstance(node.get("$ref"), str) and (found := self._target(node, place)) is not None:
                yield "", found
            for key, value in node.items():
                if key in SCHEMAS:
                    stack.append(Target(value, place.down(key)))
                elif key in LISTS:
                    stack.extend(Target(one, place.down(key, index)) for index, one in enumerate(_list(value)))
                elif key in MAPS and isinstance(value, dict):
                    schemas, at = self._references.mapping(value, place.down(key))
                    for name, one in schemas.items() if isinstance(schemas, dict) else ():
                        child = at.down(name)
                        stack.append(Target(one, child))
                        if key == "properties":
                            yield from (
                                (way, target) for way in self._used if self._flagged(one, child, _FLAGS[way], _LOOK)
                            )

    def _target(self, node: dict[str, Any], place: Place) -> Target | None:
        try:
            return self._references.resolve(node["$ref"], place)
        except UnresolvedError:
            return None  # reported where the schema is converted


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
