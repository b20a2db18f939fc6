"""JSON Schema is walked by one package, `mcpfactory_runtime.schemas`; other modules call it."""

from __future__ import annotations

import ast

from benchmarks.codebase.source import Source
from mcpfactory_runtime.schemas.walk import APPLICATORS

TOOLKIT = "factory/runtime/src/mcpfactory_runtime/schemas/"
# Modules that may read several keywords themselves, and why.
READERS = {
    "factory/codegen/src/mcpfactory_codegen/openapi/": "reads schemas of OpenAPI documents, which are other dialects",
}


def keywords_read(module: Source) -> set[str]:
    """Return the keywords holding schemas that a module reads: `schema["items"]`, `schema.get("items")`."""
    found: list[ast.expr] = []
    for node in module.nodes_if_any(f'"{keyword}"' for keyword in APPLICATORS):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found.append(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            found += node.args[:1]
    return {key.value for key in found if isinstance(key, ast.Constant) and key.value in APPLICATORS}


def walkers(modules: list[Source]) -> dict[str, set[str]]:
    return {module.path: keys for module in modules if len(keys := keywords_read(module)) > 1}


def test_only_the_toolkit_walks_schemas(modules):
    others = {path: keys for path, keys in walkers(modules).items() if not path.startswith((TOOLKIT, *READERS))}
    assert others == {}, "use the readers and walks of mcpfactory_runtime.schemas.walk"


def test_each_exception_is_one(modules):
    found = walkers(modules)
    assert [path for path in READERS if not any(one.startswith(path) for one in found)] == []


def test_six_modules_of_the_toolkit_walk_at_most(modules):
    assert len([path for path in walkers(modules) if path.startswith(TOOLKIT)]) <= 6
