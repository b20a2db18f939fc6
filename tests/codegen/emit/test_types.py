"""Annotations of generated functions: what a type checker and a linter accept."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.emit.python import annotation
from tests.rows import rows


@rows(
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


class _Counted(dict[str, Any]):
    """Definitions that count how often they are looked at."""

    looked = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.looked += 1
        return super().get(name, default)


@pytest.mark.parametrize("key", ["oneOf", "anyOf", "allOf"])
def test_a_definition_is_looked_at_once_for_each_depth_however_often_it_is_referred_to(key: str) -> None:
    defs = _Counted(a={"oneOf": [{"const": str(one)} for one in range(100)]})
    for name, inner in (("b", "a"), ("c", "b")):
        defs[name] = {key: [{"$ref": f"#/$defs/{inner}"}] * 100}
    assert annotation({"$ref": "#/$defs/c"}, defs).startswith("Literal['0', '1', ")
    assert defs.looked == 3
