"""What all readers of one document share: its dialect, references, schemas and problems, and a few small questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcpfactory_codegen.ir import Parameter, Response
from mcpfactory_codegen.openapi.dialect import Dialect
from mcpfactory_codegen.openapi.references import Place, References, Target, UnresolvedError
from mcpfactory_codegen.openapi.schemas import Schemas
from mcpfactory_codegen.problems import Problems
from mcpfactory_codegen.read.document import Document

__all__ = ["BrokenError", "Reading"]


class BrokenError(Exception):
    """Something without which an operation cannot be called right; the operation is skipped. Never leaves this package."""

    def __init__(self, code: str, place: Place, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.place = place
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of reading one document. The dictionaries remember what several operations refer to."""

    document: Document
    dialect: Dialect
    references: References
    schemas: Schemas
    problems: Problems
    parameters: dict[Place, Parameter | None] = field(default_factory=dict)
    responses: dict[Place, Response] = field(default_factory=dict)

    def report(self, code: str, place: Place, message: str, hint: str = "") -> None:
        """Add a problem."""
        self.problems.add(code, str(place), message, hint)

    def follow(self, node: Any, place: Place) -> Target | None:
        """Return the node, or what its `$ref` leads to; None (and a problem) when that is nothing."""
        try:
            return self.references.follow(node, place)
        except UnresolvedError as error:
            self.report(error.code, place.down("$ref"), str(error), error.hint)
            return None

    def text(self, node: Any, place: Place) -> str:
        """Return a text field. Numbers count as text (YAML reads `version: 1.0` so); a `$ref` to a text is followed."""
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            try:
                node = self.references.follow(node, place).node
            except UnresolvedError as error:
                self.report("text-invalid", place, f"{error}; left empty", error.hint)
                return ""
        if isinstance(node, str):
            return node
        if node is None:
            return ""
        if isinstance(node, (int, float)) and not isinstance(node, bool):
            return str(node)
        self.report("text-invalid", place, "there is no text where one should be; left empty")
        return ""

    def example(self, node: dict[str, Any], place: Place) -> Any:
        """`example`, or the value of the first of `examples` (3.2 calls it dataValue)."""
        if "example" in node:
            return node["example"]
        examples = node.get("examples")
        if not isinstance(examples, dict):
            return examples[0] if isinstance(examples, list) and examples else None
        for name, one in examples.items():
            try:
                target = self.references.follow(one, place.down("examples", name))
            except UnresolvedError:
                continue  # an example that is missing costs nobody anything
            if isinstance(target.node, dict):
                for key in ("value", "dataValue"):
                    if key in target.node:
                        return target.node[key]
        return None
