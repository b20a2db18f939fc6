"""What makes a tool hard for a model: no description, free-form bodies, objects that have to be filled inside of objects. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import ApiOperation

__all__ = ["hardships_of"]

_OPEN: Final = frozenset({"properties", "additionalProperties", "patternProperties", "items", "enum", "const", "$ref"})
"""Keywords of which one says what is in a value; `allOf`, `anyOf` and `oneOf` say it, too."""
_JOINS: Final = ("allOf", "anyOf", "oneOf")


def hardships_of(tool: ApiTool, operation: ApiOperation) -> list[str]:
    """Return the codes of what is hard about a tool, as `report.json` has them: `undescribed`, `free-form`, `nested`."""
    schema = tool.input_schema
    needed = [schema["properties"][name] for name in schema.get("required", ())]
    known = schema.get("$defs", {})
    found = {
        "undescribed": not (operation.summary or operation.description).strip(),
        "free-form": any(_is_open(one) for one in schema["properties"].values()),
        "nested": any(_depth(one, known) > 1 for one in needed),
    }
    return [code for code, holds in found.items() if holds]


def _is_open(schema: Any) -> bool:
    """Whether an argument is an object, or anything, of which nothing more is said."""
    if not isinstance(schema, dict):
        return bool(schema)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return ("object" in kinds or kind is None) and not (_OPEN | {*_JOINS}) & schema.keys()


def _depth(schema: Any, known: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> int:
    """Return how many objects stand inside of each other where every one is required."""
    if not isinstance(schema, dict):
        return 0
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        return 0 if name in seen else _depth(known.get(name), known, seen | {name})
    inner = [_depth(one, known, seen) for one in _needed(schema)]
    return max(inner, default=0) + ("properties" in schema)


def _needed(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what has to be given inside of a value."""
    properties = schema.get("properties", {})
    yield from (properties[name] for name in schema.get("required", ()) if name in properties)
    yield schema.get("items")
    yield from schema.get("allOf", ())
