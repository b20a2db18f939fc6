"""Python source code from texts and schemas: literals, calls, docstrings, annotations.

Only this module converts text of documents to code.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpfactory_codegen.read.parse import TextPreservingFloat, TextPreservingInt
from mcpfactory_codegen.text import strip_controls
from mcpfactory_runtime.schemas.merge import enum_values
from mcpfactory_runtime.schemas.walk import definition, items_schema_of, subschemas_of, types_of

_WIDTH: Final = 110


def literal(value: Any) -> str:
    """Return a literal of str, int, float, bool, None or tuples, lists and dicts of them.

    Raise a TypeError for any other type, because its `repr` could be arbitrary code.
    """
    if isinstance(value, tuple):
        return tuple_literal(map(literal, value))
    if type(value) is list:
        return f"[{', '.join(map(literal, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{literal(key)}: {literal(member)}' for key, member in value.items())}}}"
    if isinstance(value, (TextPreservingInt, TextPreservingFloat)):
        return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
    if value is None or type(value) in (str, int, float, bool):
        return repr(value)
    raise TypeError(f"internal error: {type(value).__name__} has no Python literal (this is a bug; please report it)")


def call(name: str, /, *arguments: str, **keywords: str) -> str:
    """Return a call such as `name(a, b, k=v)` from arguments in source code."""
    return f"{name}({', '.join([*arguments, *(f'{key}={value}' for key, value in keywords.items())])})"


def tuple_literal(items: Iterable[str]) -> str:
    """Return a tuple from items in source code, with a trailing comma for one item."""
    items = list(items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def docstring(paragraphs: Iterable[str], indent: str = "") -> str:
    """Return a docstring of wrapped paragraphs.

    Quotes and backslashes are escaped, so that no text can end the string.
    """
    wrapped = ["\n".join(_wrapped(paragraph, indent)) for paragraph in paragraphs if paragraph.strip()]
    text = "\n\n".join(wrapped).replace("\\", "\\\\").replace('"""', '\\"\\"\\"').removeprefix(indent)
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    return f'{indent}"""{text}\n{indent}"""' if "\n" in text else f'{indent}"""{text}"""'


def _wrapped(paragraph: str, indent: str) -> list[str]:
    """Wrap a paragraph at `_WIDTH`, with a hanging indent for indented lines."""
    lines = []
    for line in strip_controls(paragraph).split("\n"):
        hanging = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line.strip(),
            width=_WIDTH,
            initial_indent=indent + hanging,
            subsequent_indent=indent + hanging + ("    " if hanging else ""),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


# --- annotations: only as precise as readers and type checkers need ---


_PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DEPTH: Final = 6
_MOST_LITERALS: Final = 12
_MOST_MEMBERS: Final = 4
_LONGEST_LITERAL: Final = 40


def annotation(schema: Any, defs: Mapping[str, Any]) -> str:
    """Return the annotation of a value of this schema, or `Any` for a large union."""
    return _Annotations(defs).of(schema, 0)


class _Annotations:
    """Annotations of schemas with definitions.

    Each definition is converted once for each nesting depth.
    """

    def __init__(self, defs: Mapping[str, Any]) -> None:
        self._defs = defs
        self._known: dict[tuple[str, int], str] = {}

    def of(self, schema: Any, depth: int) -> str:
        """Return the annotation for a value of a schema at this nesting depth."""
        if not isinstance(schema, dict) or depth > _DEPTH:
            return "Any"
        if name := definition(schema.get("$ref")):
            return self._referred(name, depth + 1)
        if values := enum_values(schema):
            return _literals(values, schema)
        if kinds := types_of(schema):
            return _union([self._of_kind(kind, schema, depth) for kind in kinds])
        if branches := subschemas_of(schema, "anyOf") or subschemas_of(schema, "oneOf"):
            return _union([self.of(branch, depth + 1) for branch in branches])
        if parts := subschemas_of(schema, "allOf"):
            return next((text for part in parts if (text := self.of(part, depth + 1)) != "Any"), "Any")
        return "dict[str, Any]" if "properties" in schema else "Any"

    def _referred(self, name: str, depth: int) -> str:
        if (name, depth) not in self._known:
            self._known[name, depth] = self.of(self._defs.get(name), depth)
        return self._known[name, depth]

    def _of_kind(self, kind: Any, schema: dict[str, Any], depth: int) -> str:
        if kind == "array":
            return f"list[{self.of(items_schema_of(schema), depth + 1)}]"
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
    kinds = types_of(schema)
    if len(kinds) == 1 and kinds[0] in _PLAIN:
        return _PLAIN[kinds[0]]
    if all(isinstance(value, str) for value in values):
        return "str"
    return "Any"


def _leaves(text: str) -> list[str]:
    """Return the members of a union in source code, with each value of a literal as a separate member."""
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
    """Return a union of distinct members, with one merged literal first and None last."""
    if "Any" in members:
        return "Any"
    leaves = list(dict.fromkeys(leaf for member in dict.fromkeys(members) for leaf in _leaves(member)))
    values = [leaf[8:-1] for leaf in leaves if leaf.startswith("Literal[") and leaf != "Literal[None]"]
    unique: list[str] = []
    for leaf in leaves:
        written = f"Literal[{', '.join(values)}]" if leaf.startswith("Literal[") else leaf
        if leaf not in {"None", "Literal[None]"} and written not in unique:
            unique.append(written)
    if not leaves or "Any" in unique or len(unique) > _MOST_MEMBERS:
        return "Any"
    if "float" in unique and "int" in unique:
        unique.remove("int")  # PEP 484 accepts int for float
    return " | ".join([*unique, *(["None"] if {"None", "Literal[None]"} & set(leaves) else [])])
