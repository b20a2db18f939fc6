"""JSON Schema → a Python annotation: what a reader and a type checker need, no more precise than that."""

from __future__ import annotations

import ast
from typing import Any, Final

from mcpfactory_codegen.emit.python import literal
from mcpfactory_codegen.inputs import definition

__all__ = ["annotation"]

_PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DEPTH: Final = 6
_MOST_LITERALS: Final = 12
_MOST_MEMBERS: Final = 4
_LONGEST_LITERAL: Final = 40


def annotation(schema: Any, defs: dict[str, Any], depth: int = 0) -> str:
    """Return the annotation of a value of this schema; `Any` where a union would say little."""
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
        return _union([f"Literal[{value}]" for value in unique.values()])
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds in _PLAIN:
        return _PLAIN[kinds]
    if all(isinstance(value, str) for value in values):
        return "str"
    return "Any"


def _leaves(text: str) -> list[str]:
    """Return the members of a union that is written already; a literal's values one by one."""
    if "|" not in text and not text.startswith("Literal["):
        return [text]
    open_, found = [ast.parse(text, mode="eval").body], []
    while open_:
        node = open_.pop()
        if isinstance(node, ast.BinOp):
            open_ += [node.right, node.left]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found += [f"Literal[{ast.unparse(value)}]" for value in values]
        else:
            found.append(ast.unparse(node))
    return found


def _union(members: list[str]) -> str:
    """Each member once, all literals as one in the place of the first, None last."""
    if "Any" in members:
        return "Any"
    leaves = list(dict.fromkeys(leaf for member in members for leaf in _leaves(member)))
    values = [leaf[8:-1] for leaf in leaves if leaf.startswith("Literal[") and leaf != "Literal[None]"]
    unique: list[str] = []
    for leaf in leaves:
        written = f"Literal[{', '.join(values)}]" if leaf.startswith("Literal[") else leaf
        if leaf not in {"None", "Literal[None]"} and written not in unique:
            unique.append(written)
    if not leaves or "Any" in unique or len(unique) > _MOST_MEMBERS:
        return "Any"
    if "float" in unique and "int" in unique:
        unique.remove("int")  # PEP 484: int is accepted where float is expected
    return " | ".join([*unique, *(["None"] if {"None", "Literal[None]"} & set(leaves) else [])])
