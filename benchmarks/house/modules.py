"""Modules of the four wheels as data: what each imports of the others, and which classes it defines. Pure but for `read_tree`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["WHEELS", "Module", "parse", "read_tree"]

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
    return parse(
        {
            file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
            for folder in WHEELS
            for file in sorted((root / folder).rglob("*.py"))
            if "_templates" not in file.parts
        }
    )


def parse(files: Mapping[str, str]) -> list[Module]:
    """Parse source texts, keyed by their path from the repository's root."""
    names = {path: _name(path) for path in files}
    known = frozenset(names.values())
    modules = []
    for path, text in files.items():
        tree = ast.parse(text, path)
        package = names[path] if path.endswith("/__init__.py") else names[path].rpartition(".")[0]
        imports = {name for node in ast.walk(tree) for name in _imports(node, package, known)} - {names[path]}
        classes = tuple((node.name, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        statements = sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(tree))
        modules.append(Module(names[path], path, text.count("\n"), statements, frozenset(imports), classes))
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
