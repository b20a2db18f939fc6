"""Python files of the repository, each read, parsed and walked once."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Source:
    """One Python file.

    Attributes:
        path: relative to the root of the repository.
        text: its content.
    """

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    def nodes_if_any(self, words: Iterable[str]) -> tuple[ast.AST, ...]:
        """Return all nodes if the text has one of the words; most files have none and need not be parsed."""
        return self.nodes if any(word in self.text for word in words) else ()

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """All statements of the tree; expressions are most of the nodes, and few rules need them."""
        found: list[ast.AST] = [self.tree]
        for node in found:  # the list grows during the loop
            found += (child for name in _BLOCKS for child in getattr(node, name, ()))
        return tuple(node for node in found if isinstance(node, ast.stmt))

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The top-level names of everything that the file imports, inside functions too."""
        found = [alias.name for node in self.statements if isinstance(node, ast.Import) for alias in node.names]
        found += [node.module for node in self.statements if isinstance(node, ast.ImportFrom) and node.module]
        return frozenset(name.partition(".")[0] for name in found)


def read_sources(root: Path, *folders: str) -> list[Source]:
    """Read every hand-written Python file of some folders below a root."""
    return [
        Source(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
        for folder in folders
        for file in sorted((root / folder).rglob("*.py"))
        if not file.is_symlink()  # the rules apply to the target of a link
    ]
