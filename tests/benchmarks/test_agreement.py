from __future__ import annotations

from typing import Any

import pytest

from benchmarks.agreement import differences
from mcpfactory_codegen.describe.schemas import Library
from tests.rows import rows

A = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
TAGGED = [{**one, "properties": {"kind": {"const": kind}}, "required": ["kind"]} for one, kind in ((A, "a"), (B, "b"))]
CLOSED = [{**A, "additionalProperties": False}, {**B, "additionalProperties": False}]


def tool(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": part}, "additionalProperties": False}


@rows(
    "part",
    [
        {"oneOf": [A, B]},
        {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
        {"type": "array", "items": {"enum": [1, "a", True]}, "uniqueItems": True, "minItems": 1},
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "string"}},
        {"type": "object", "patternProperties": {"^i": {"type": "integer"}}, "additionalProperties": False},
        {"type": "string", "not": {"enum": ["a", ""]}},
        {"type": "string", "enum": ["a", 1]},
    ],
)
def test_the_runtime_takes_what_a_stock_validator_takes(part: dict[str, Any]) -> None:
    starts = [{"x": {"a": "value"}}, {"x": [1, "a"]}, {"x": "a"}]  # some of which do not fit
    assert [one for one in differences("tool", tool(part), starts, 150, "1") if one.kind != "sample"] == []


@pytest.mark.parametrize(
    ("kind", "sample", "part"),
    [("sample", {"x": 1}, {"type": "string"}), ("taken", {}, {"type": "string", "pattern": "^(?=a)", "format": "x"})],
)
def test_a_difference_is_seen(kind: str, sample: Any, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.agreement.is_judged", lambda _: True)
    found = differences("tool", tool(part), [sample], 40, "1")
    assert kind in {one.kind for one in found}


@rows(
    "listed, branches",
    [
        ("anyOf", [A, B]),  # an object with both fits both
        ("oneOf", TAGGED),
        ("oneOf", CLOSED),
        ("oneOf", [{"type": "string"}, {"type": "array"}]),
        ("anyOf", [{"type": "integer"}, {"type": "number"}]),
        ("oneOf", [{"const": 1}, {"enum": [2, 3]}]),
        ("anyOf", [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]),
        ("oneOf", [{"allOf": [{"$ref": "#/$defs/A"}, TAGGED[0]]}, TAGGED[1]]),
        ("anyOf", [{**TAGGED[0], "required": []}, TAGGED[1]]),
        ("anyOf", [{"properties": {"kind": {"const": "a"}}, "required": ["kind"]}, {}]),
    ],
)
def test_one_of_is_listed_where_nothing_fits_two_branches(listed: str, branches: list[Any]) -> None:
    cleaned = Library({"A": A}).clean({"oneOf": branches})
    assert isinstance(cleaned, dict)
    assert [key for key in ("oneOf", "anyOf") if key in cleaned] == [listed]
