"""Modules of the four wheels as data: what each imports of the others, and which classes it defines. Pure but for `read_tree`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.codebase.source import Source, read_sources

WHEELS: Final = {  # folder of the sources → import package
    "factory/runtime/src": "mcpfactory_runtime",
    "factory/codegen/src": "mcpfactory_codegen",
    "pipeline/src": "mcpfactory_pipeline",
    "factory/cli/src": "mcpfactory",
}


@dataclass(frozen=True, slots=True)
class Module:
    """One source file.

    Attributes:
        name: its dotted name; a package has the name of its folder.
        path: where it stands, from the root of the repository.
        lines: all of them, comments and blank ones too.
        statements: without docstrings; how they are laid out does not change their number.
        imports: the modules of ours that it imports anywhere, below `TYPE_CHECKING` and inside functions too.
        classes: each class that it defines, with its line.
    """

    name: str
    path: str
    lines: int
    statements: int
    imports: frozenset[str]
    classes: tuple[tuple[str, int], ...]

    @property
    def wheel(self) -> str:
        """The import package that it belongs to."""
        return self.name.partition(".")[0]

    @property
    def folder(self) -> str:
        """The first part of its name below the import package; "" for a module that stands in no folder."""
        inner = self.path.partition(f"/{self.wheel}/")[2]
        return inner.partition("/")[0] if "/" in inner else ""

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a folder."""
        return self.path.endswith("/__init__.py")


def read_tree(root: Path) -> list[Module]:
    """Read every hand-written module of the four wheels below a repository's root."""
    return parse(read_sources(root, *WHEELS))


def parse(sources: Sequence[Source]) -> list[Module]:
    """Return what the sources of the four wheels import and define."""
    names = {source.path: _name(source.path) for source in sources}
    known = frozenset(names.values())
    modules = []
    for source in sources:
        name = names[source.path]
        package = name if source.path.endswith("/__init__.py") else name.rpartition(".")[0]
        imports = {each for node in source.statements for each in _imports(node, package, known)} - {name}
        classes = tuple((node.name, node.lineno) for node in source.statements if isinstance(node, ast.ClassDef))
        statements = sum(not _is_text(node) for node in source.statements)
        modules.append(Module(name, source.path, source.text.count("\n"), statements, frozenset(imports), classes))
    return modules


def _name(path: str) -> str:
    """Return the dotted name of the module that stands at a path."""
    inner = next(path.removeprefix(f"{folder}/") for folder in WHEELS if path.startswith(f"{folder}/"))
    return inner.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imports(node: ast.AST, package: str, known: frozenset[str]) -> Iterator[str]:
    """Yield the known modules that one statement imports: the submodule where the name is one, else the module itself."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            if f"{module}.{alias.name}" in known:
                yield f"{module}.{alias.name}"
            elif module in known:
                yield module
