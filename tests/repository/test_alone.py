"""The checkout stands alone: nothing in it looks for files beside it."""

from __future__ import annotations

import ast

from benchmarks.codebase.source import Source


def outside(source: Source) -> list[int]:
    """Lines of a module that go above the checkout by `Path(__file__)…parents[N]` or a chain of `.parent`."""
    depth = source.path.count("/") + 1  # `__file__` itself has so many parents up to the checkout, its root included
    found = []
    for node in source.nodes_if_any(["__file__"]):
        steps, at, own = 0, node, False
        while not own and isinstance(at, ast.Attribute | ast.Subscript | ast.Call):
            if isinstance(at, ast.Subscript) and isinstance(at.slice, ast.Constant) and isinstance(at.slice.value, int):
                steps += at.slice.value + 1 if isinstance(at.value, ast.Attribute) and at.value.attr == "parents" else 0
            elif isinstance(at, ast.Attribute) and at.attr == "parent":
                steps += 1
            elif isinstance(at, ast.Call) and at.args:
                own = isinstance(at.args[0], ast.Name) and at.args[0].id == "__file__"
            at = at.func if isinstance(at, ast.Call) else at.value
        if own and steps > depth:
            found.append(getattr(node, "lineno", 0))
    return found


def test_no_module_leaves_the_checkout(tests, helpers):
    assert [(source.path, line) for source in (*tests, *helpers) for line in outside(source)] == []
