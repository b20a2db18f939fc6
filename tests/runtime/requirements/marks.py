"""Rows that each test names, read from the sources, so that the result does not depend on the selected tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RUNTIME = Path(__file__).resolve().parents[1]
MARKS = {"requirement", "case"}


class Marked(NamedTuple):
    """A test function and the rows that it names."""

    file: Path
    name: str
    rows: tuple[str, ...]


def marked(folder: Path = RUNTIME) -> list[Marked]:
    """Return every marked test below a folder, in the order of files and lines."""
    return [test for file in sorted(folder.rglob("test_*.py")) for test in _marked_in(file)]


def _marked_in(file: Path) -> Iterator[Marked]:
    text = file.read_text("utf-8")
    if not any(f"{mark}(" in text for mark in MARKS):
        return
    tree = ast.parse(text)
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            named = [row for decorator in node.decorator_list for row in _rows(decorator, tables)]
            if named:
                yield Marked(file, node.name, tuple(dict.fromkeys(named)))


def _rows(node: ast.AST, tables: dict[str, ast.expr]) -> Iterator[str]:
    """Return the rows that an expression names, directly or by tables of the module."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in tables:
            yield from _rows(tables[part.id], {name: table for name, table in tables.items() if name != part.id})
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in MARKS:
            given = part.args[:1] if part.func.id == "case" else part.args
            names = (leaf for argument in given for leaf in ast.walk(argument))
            yield from (str(leaf.value) for leaf in names if isinstance(leaf, ast.Constant))
