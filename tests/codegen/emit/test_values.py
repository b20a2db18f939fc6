"""What a tool's schema says of values: what they mean, an example, and what is left of a choice that is too large."""

from __future__ import annotations

from typing import Any

import jsonschema

from mcpfactory_codegen.describe.tool_schemas import SharedDefinitions
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string"}


@parametrize_subtests(
    "schema, described",
    [
        ({"enum": [1, 2], "x-enum-descriptions": ["open", "closed"]}, "1: open; 2: closed"),
        ({"enum": ["a", "b"], "x-enumDescriptions": {"b": "Be."}, "description": "Which."}, "Which. b: Be"),
        ({"enum": [0, 1], "x-enumNames": ["Off", "On"]}, "0: Off; 1: On"),
        ({"enum": ["off"], "x-enum-varnames": ["OFF"]}, None),  # a word says what its name says
        ({"enum": ["x"], "x-ms-enum": {"values": [{"value": "x", "description": "Ex"}]}}, "x: Ex"),
        ({"enum": [1, 2], "x-enum-descriptions": ["open"]}, None),  # which one is not known
        ({"enum": [1], "x-enum-descriptions": ["1"]}, None),
        ({"enum": ["a"], "x-ms-enum": {"values": "?"}, "x-enum-descriptions": 3}, None),
        ({"const": 1, "title": "Open"}, "Open"),
        ({"const": "open", "title": "open"}, None),
        ({"type": "string", "title": "Open"}, None),
    ],
)
def test_what_values_mean_stays_where_it_is_short(schema: dict[str, Any], described: str | None) -> None:
    cleaned = SharedDefinitions({}).clean(schema)
    assert isinstance(cleaned, dict)
    assert cleaned.get("description") == described


def test_of_a_choice_that_is_too_large_what_must_be_given_stays() -> None:
    names = [f"Method{number}" for number in range(9)]
    branches: dict[str, Any] = {
        name: {
            "type": "object",
            "required": ["type", "detail"],
            "properties": {
                "type": {"type": "string", "enum": [name.lower()], "description": "Which method. " * 9},
                "detail": {"type": "object", "properties": {f"{name}{index}": TEXT for index in range(20)}},
            },
        }
        for name in names
    }
    schema = {"type": "object", "properties": {"method": {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in names]}}}
    closed, cut = SharedDefinitions(branches).close(schema, budget=1500)
    assert set(cut) < set(names)
    assert len(cut) > 2
    validator = jsonschema.Draft202012Validator(closed)
    for name in names:
        assert validator.is_valid({"method": {"type": name.lower(), "detail": {}}}), name
    assert not validator.is_valid({"method": {"type": "another", "detail": {}}})
    assert not validator.is_valid({"method": {"type": "method8"}})
    assert f"{cut[0]}: what else it has" in str(closed)


def test_outline_of_a_definition_that_is_too_large_can_be_filled() -> None:
    more = {f"more{number}": TEXT for number in range(60)}
    line = {"type": "object", "required": ["sku"], "properties": {"sku": TEXT, **more}}
    order = {
        "type": "object",
        "required": ["lines", "state"],
        "properties": {
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
            "state": {"$ref": "#/$defs/State"},
            **more,
        },
    }
    known: dict[str, Any] = {"Order": order, "Line": line, "State": {"type": "string", "enum": ["open", "paid"]}}
    closed, cut = SharedDefinitions(known).close({"properties": {"order": {"$ref": "#/$defs/Order"}}}, budget=500)
    assert cut == ("Order",)
    validator = jsonschema.Draft202012Validator(closed)
    assert validator.is_valid({"order": {"lines": [{"sku": "a"}], "state": "paid"}})
    for wrong in ({"lines": [{}], "state": "paid"}, {"lines": ["a"], "state": "paid"}, {"lines": [], "state": "lost"}):
        assert not validator.is_valid({"order": wrong}), wrong
