"""All schemas of one document: translates those of operations at once and the shared ones that they reach afterwards."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi.cycles import break_cycles
from mcpfactory_codegen.openapi.dialect import Dialect
from mcpfactory_codegen.openapi.references import Place, References, Target, UnresolvedError
from mcpfactory_codegen.openapi.schema_names import SchemaNames
from mcpfactory_codegen.openapi.translate import Spot, Translator
from mcpfactory_codegen.openapi.visibility import Direction, Visibility
from mcpfactory_codegen.problems import Problems

__all__ = ["Schemas"]


class Schemas:
    """The schemas of one document; `shared` is what `Api.schemas` will be."""

    def __init__(self, dialect: Dialect, references: References, visibility: Visibility, problems: Problems) -> None:
        try:
            named = references.resolve(f"#{dialect.schemas}", Place("", "")).node
        except UnresolvedError:
            named = {}  # a document may well have none
        self._names = SchemaNames(named, dialect.schemas)
        self._visibility = visibility
        self._problems = problems
        self._translator = Translator(dialect, references, visibility, problems, self._share)
        self._waiting: list[tuple[str, Target, Direction]] = []
        self._shared: dict[str, JsonSchema] = {}
        self._places: dict[str, Place] = {}
        self._inline: dict[tuple[Place, Direction], JsonSchema] = {}

    def translate(self, node: Any, place: Place, direction: Direction) -> JsonSchema:
        """Return the schema of a parameter, body or response. One place gives one (shared, not to be changed) result."""
        key = (place, direction)
        if key not in self._inline:
            self._inline[key] = self._translator.schema(node, Spot(place, direction))
        return self._inline[key]

    def shared(self) -> dict[str, JsonSchema]:
        """Every schema that was referred to, by name, in the order of the names. Call it once, when all is translated."""
        while self._waiting:
            name, target, direction = self._waiting.pop()
            self._shared[name] = self._translator.schema(target.node, Spot(target.place, direction))
        break_cycles(self._shared, lambda name: self._names.variant_of(name, "base"), self._report_cycle)
        return dict(sorted(self._shared.items()))

    def _share(self, target: Target, direction: Direction) -> str:
        variant: Direction = direction if self._visibility.differs(target, direction) else ""
        name = self._names.claim(target.place, variant)
        if name not in self._places:
            self._places[name] = target.place
            self._waiting.append((name, target, variant))
        return name

    def _report_cycle(self, name: str) -> None:
        place = self._places.get(name)
        message = (
            f"the schema {name!r} is defined by itself without end; the reference that closes the circle was dropped"
        )
        self._problems.add(
            "schema-cycle", str(place) if place else "", message, "one of the schemas has to be written out"
        )
