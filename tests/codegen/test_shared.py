"""What code generation and the runtime share: records, tables, rules of names, and the toolkit of JSON Schema."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "factory/codegen/src/mcpfactory_codegen"
SHARED = {
    "errors": "the root of all errors",
    "types": "type aliases",
    "protocol.decoding": "how a body is decompressed, in bounded steps",
    "server.generated.catalog": "modes that a server may be given",
    "server.results": "how much text of a result a model receives",
    "schemas.client_limits": "dialects that a server may be given",
    "schemas.diff": "what callers can no longer send",
    "schemas.merge": "two schemas as one",
    "schemas.references": "which errors a schema has",
    "schemas.satisfiability": "which schemas no value fits",
    "schemas.sample": "values for a schema and values near it, for test cases",
    "schemas.validation": "what a tool will accept: cases, defaults and workflows are held against it",
    "schemas.value_validation": "how a value is repaired",
    "schemas.walk": "which keywords hold schemas, and readers of one schema",
    "urls": "which addresses are private, and which redirects are followed",
    "upstream.encoding": "which content types are XML, and which are JSON values in a row",
    "upstream.operation": "the records that generated code consists of, with their names, styles and places",
    "upstream.secrets": "variables and bounds of a server",
}


def test_code_generation_imports_nothing_else_of_the_runtime() -> None:
    modules = {
        node.module.removeprefix("mcpfactory_runtime.")
        for path in SOURCES.rglob("*.py")
        if "_templates" not in path.parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mcpfactory_runtime")
    }
    assert modules == set(SHARED), "move what is shared into one of these modules, or say in SHARED why it is data"
