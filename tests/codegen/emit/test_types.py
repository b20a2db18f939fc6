"""Annotations of generated functions: what a type checker and a linter accept."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.emit.python import annotation
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "schema, written",
    [
        ({"anyOf": [{"enum": ["now"]}, {"type": "integer"}, {"enum": ["", "now"]}]}, "Literal['now', ''] | int"),
        ({"anyOf": [{"const": "a | b"}, {"const": "],"}]}, "Literal['a | b', '],']"),
        ({"enum": ["a", None, "b"]}, "Literal['a', 'b'] | None"),
        ({"enum": [None]}, "None"),
        (
            {"anyOf": [{"enum": ["a", None]}, {"type": ["integer", "null"]}, {"type": "null"}]},
            "Literal['a'] | int | None",
        ),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "list[str | None]"),
        ({"type": ["number", "integer"]}, "float"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "string"}, {}]}, "Any"),
    ],
)
def test_a_schema_has_one_annotation(schema: Any, written: str) -> None:
    assert annotation(schema, {}) == written
