"""JSON Schema → a Python annotation: what a reader and a type checker need, no more precise than that."""

from __future__ import annotations

import ast
from typing import Any

from mcpfactory_codegen.inputs import definition

from .python import literal

__all__ = ["annotation"]

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DEPTH = 6
_MOST_LITERALS = 12
_MOST_MEMBERS = 4
_LONGEST_LITERAL = 40


def annotation(schema: Any, defs: dict[str, Any], depth: int = 0) -> str:
    """The annotation of a value of this schema; `Any` where a union would say little."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return "Any"
    if isinstance(schema.get("$ref"), str):
        return annotation(defs.get(definition(schema["$ref"])), defs, depth + 1)
    if "const" in schema:
        return _literals([schema["const"]], schema)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return _literals(schema["enum"], schema)
    for key in ("anyOf", "oneOf"):
        if key in schema and "type" not in schema:
            return _union([annotation(branch, defs, depth + 1) for branch in schema[key]])
    if "allOf" in schema and "type" not in schema:
        known = [text for part in schema["allOf"] if (text := annotation(part, defs, depth + 1)) != "Any"]
        return known[0] if known else "Any"
    kinds = schema.get("type")
    if kinds is None:
        return "dict[str, Any]" if "properties" in schema else "Any"
    return _union([_of(kind, schema, defs, depth) for kind in (kinds if isinstance(kinds, list) else [kinds])])


def _of(kind: Any, schema: dict[str, Any], defs: dict[str, Any], depth: int) -> str:
    if kind == "array":
        return f"list[{annotation(schema.get('items'), defs, depth + 1)}]"
    if kind == "object":
        return "dict[str, Any]"
    return _PLAIN.get(kind, "Any")


def _literals(values: list[Any], schema: dict[str, Any]) -> str:
    short = all(
        value is None or isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _LONGEST_LITERAL)
        for value in values
    )
    if short and len(values) <= _MOST_LITERALS:
        unique = {(type(value), value): literal(value) for value in values}
        return f"Literal[{', '.join(unique.values())}]"
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds in _PLAIN:
        return _PLAIN[kinds]
    if all(isinstance(value, str) for value in values):
        return "str"
    return "Any"


def _one_literal(members: list[str]) -> list[str]:
    """Several `Literal[…]` as one, in the place of the first."""
    found = [member for member in members if member.startswith("Literal[")]
    if len(found) < 2:
        return members
    values = [value for member in found for value in ast.literal_eval(f"({member[8:-1]},)")]
    whole = _literals(values, {})
    return [whole if member == found[0] else member for member in members if member == found[0] or member not in found]


def _union(members: list[str]) -> str:
    unique = list(dict.fromkeys(_one_literal(members)))
    if not unique or "Any" in unique or len(unique) > _MOST_MEMBERS:
        return "Any"
    if "float" in unique and "int" in unique:
        unique.remove("int")  # PEP 484: int is accepted where float is expected
    return " | ".join(unique)
