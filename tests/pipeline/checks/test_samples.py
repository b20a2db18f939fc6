"""Arguments made from a schema: the required ones only, the plainest values that fit."""

from __future__ import annotations

from typing import Any

from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.samples import sample_arguments, sample_value
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "schema, arguments, origin",
    [
        ({"type": "object"}, {}, "no arguments"),
        ({"properties": {"q": {"type": "string"}}, "required": ["q"]}, {"q": "value"}, "guess"),
        ({"properties": {"q": {"enum": ["tea", "ink"]}}, "required": ["q"]}, {"q": "tea"}, "example"),
        ({"properties": {"q": {"default": 0}, "r": {}}, "required": ["q"]}, {"q": 0}, "example"),
        ({"examples": [{"q": "tea"}], "required": ["q"]}, {"q": "tea"}, "example"),
        ("no schema", {}, "guess"),
    ],
)
def test_only_what_is_required_is_given_and_where_it_comes_from_is_known(
    schema: Any, arguments: dict[str, Any], origin: str
) -> None:
    assert sample_arguments(schema) == (arguments, origin)


@parametrize_subtests(
    "part, description, value",
    [
        ({}, "Look up a stock, e.g. AAPL.", "AAPL"),
        ({}, "Solve an equation. For example, 'x + 1 = 2'.", "x + 1 = 2"),
        ({}, "Look up a stock.\n\nArgs:\n    q: a symbol, such as `MSFT`\n", "MSFT"),
        ({"description": "A symbol like 'IBM'"}, "Look up a stock, e.g. AAPL.", "IBM"),
        ({"maxLength": 2}, "Look up a stock, e.g. AAPL.", "va"),
        ({}, "Say 'hello' to the world.", "value"),
    ],
)
def test_a_text_is_an_example_in_the_descriptions(part: dict[str, Any], description: str, value: str) -> None:
    schema = {"properties": {"q": {"type": "string", **part}}, "required": ["q"]}
    assert sample_arguments(schema, description) == ({"q": value}, "guess")


def test_an_example_in_the_description_of_a_tool_is_not_used_for_several_arguments() -> None:
    texts = {name: {"type": "string"} for name in "ab"}
    assert sample_arguments({"properties": texts, "required": ["a", "b"]}, "For example, X")[0] == {
        "a": "value",
        "b": "value",
    }


@parametrize_subtests("schema", [
        {"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4},
        {"type": "number", "maximum": -2},
        {"type": "string", "minLength": 9},
        {"type": "string", "maxLength": 2},
        {"type": "string", "format": "uuid"},
        {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
        {"type": ["null", "integer"]},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "object", "required": ["x"], "properties": {"x": {"const": 7}}}}},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"},
        {"$ref": "#/properties/a/items", "properties": {"a": {"items": {"type": "integer"}}}},
    ])  # fmt: skip
def test_a_sample_matches_its_schema(schema: dict[str, Any]) -> None:
    assert instance_error(sample_value(schema, schema), schema) == ""


@parametrize_subtests("schema", [
        {"type": "string", "pattern": "("},
        {"type": {"no": "type"}, "minLength": "many", "enum": 5, "required": True},
        {"type": "integer", "minimum": "low", "maximum": None, "multipleOf": 0},
        {"type": "array", "items": 7, "minItems": -3, "prefixItems": "none"},
        {"type": "object", "properties": [], "required": [1, "a"], "additionalProperties": 3},
        {"oneOf": {}, "anyOf": [1], "allOf": ["x", {"properties": None, "enum": {}}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ])  # fmt: skip
def test_an_invalid_schema_has_a_sample_too(schema: Any) -> None:
    sample_value(schema, schema)
