"""The figures of a source tree, computed from its modules. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.codebase import graph
from benchmarks.codebase.modules import WHEELS, Module


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted of a tree.

    Attributes:
        modules: source files of the four wheels.
        lines: lines of them, by wheel.
        statements: of all of them, without docstrings.
        median: the median of lines of a module.
        circles: groups of modules that import each other, the largest first; `TYPE_CHECKING` imports count.
        one_importer: modules, packages aside, that exactly one other module imports.
        classes: each class name that is defined twice or more, with where.
    """

    modules: int
    lines: dict[str, int]
    statements: int
    median: float
    circles: tuple[tuple[str, ...], ...]
    one_importer: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]


def figures(modules: Sequence[Module]) -> Figures:
    """Count everything that a tree's modules say."""
    imports = {module.name: module.imports for module in modules}
    importers = graph.sources(imports)
    return Figures(
        modules=len(modules),
        lines={wheel: sum(each.lines for each in modules if each.wheel == wheel) for wheel in WHEELS.values()},
        statements=sum(each.statements for each in modules),
        median=statistics.median(module.lines for module in modules) if modules else 0,
        circles=tuple(tuple(sorted(circle)) for circle in graph.cycles(imports)),
        one_importer=tuple(
            sorted(each.name for each in modules if not each.is_package and len(importers[each.name]) == 1)
        ),
        classes=repeated_classes(modules),
    )


def repeated_classes(modules: Iterable[Module]) -> dict[str, tuple[str, ...]]:
    """Return each class name that is defined twice or more, with `path:line` of each definition."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name, line in module.classes:
            found[name].append(f"{module.path}:{line}")
    return {name: tuple(where) for name, where in sorted(found.items()) if len(where) > 1}
