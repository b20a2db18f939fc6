"""Figures of a source tree as rows: a table for a terminal, and JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.codebase.measure import Measured

_UNKNOWN: Final = "–"
_FIGURES: Final[tuple[tuple[str, Callable[[Measured], float]], ...]] = (
    ("modules", lambda it: it.figures.modules),
    ("lines", lambda it: sum(it.figures.lines.values())),
    ("… of mcpfactory_runtime", lambda it: it.figures.lines["mcpfactory_runtime"]),
    ("… of mcpfactory_codegen", lambda it: it.figures.lines["mcpfactory_codegen"]),
    ("… of mcpfactory_pipeline", lambda it: it.figures.lines["mcpfactory_pipeline"]),
    ("… of mcpfactory", lambda it: it.figures.lines["mcpfactory"]),
    ("statements", lambda it: it.figures.statements),
    ("median lines of a module", lambda it: it.figures.median),
    ("circles of modules that import each other", lambda it: len(it.figures.circles)),
    ("modules in the largest circle", lambda it: max(map(len, it.figures.circles), default=0)),
    ("modules with one importer", lambda it: len(it.figures.one_importer)),
    ("class names used twice or more", lambda it: len(it.figures.classes)),
)


def rows(trees: Sequence[Measured]) -> list[tuple[str, ...]]:
    """Return the table: a title and one figure for each tree; "–" where it could not be had."""
    table = [(title, *(f"{figure(tree):,}" for tree in trees)) for title, figure in _FIGURES]
    table += _named("files of the recipe “{}”", [tree.recipes for tree in trees])
    table += _named("files on the way of {}", [tree.ways for tree in trees])
    return table


def _named(title: str, counts: Sequence[Mapping[str, int]]) -> list[tuple[str, ...]]:
    """Return a row for each name that any tree has."""
    names = dict.fromkeys(name for count in counts for name in count)
    return [(title.format(name), *(str(count.get(name, _UNKNOWN)) for count in counts)) for name in names]


def as_text(trees: Sequence[Measured]) -> str:
    """Return the table in columns."""
    table = [("", *(tree.name for tree in trees)), *rows(trees)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in table
    )


def as_json(trees: Sequence[Measured]) -> dict[str, Any]:
    """Return everything that was measured, keyed by the name of the tree."""
    return {tree.name: {key: value for key, value in asdict(tree).items() if key != "name"} for tree in trees}


def as_names(tree: Measured) -> str:
    """Return what stands behind the figures of a tree: circles, modules with one importer, repeated class names."""
    found = tree.figures
    lines = [f"a circle: {' '.join(circle)}" for circle in found.circles]
    lines += [f"one importer: {name}" for name in found.one_importer]
    lines += [f"class {name}: {' '.join(where)}" for name, where in found.classes.items()]
    return "\n".join(lines)
