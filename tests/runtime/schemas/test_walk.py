"""Walks over schemas, readers of one schema, and two schemas as one."""

from __future__ import annotations

from typing import Any

from mcpfactory_runtime.schemas.merge import intersect_schemas, merge_all_of, unite_schemas
from mcpfactory_runtime.schemas.value_validation import parse_argument_text
from mcpfactory_runtime.schemas.walk import (
    APPLICATORS,
    children,
    items_schema_of,
    map_schema,
    pointer,
    properties_of,
    reachable_definitions,
    references,
    required_of,
    resolve,
    subschemas_of,
    types_of,
    walk,
)
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string"}
WHOLE: Any = {
    "properties": {"a/b": {"items": {"$ref": "#/$defs/Node"}}, "not": TEXT},
    "allOf": [{"not": False}, True],
    "enum": [{"properties": {"x": TEXT}}],
    "default": {"items": TEXT},
    "$defs": {"Node": {"prefixItems": [TEXT]}},
}


def test_a_walk_yields_schemas_and_no_data():
    assert [pointer(steps) for steps, _ in walk(WHOLE)] == [
        "",
        "/properties/a~1b",
        "/properties/a~1b/items",
        "/properties/not",
        "/allOf/0",
        "/$defs/Node",
        "/$defs/Node/prefixItems/0",
    ]


def test_a_walk_of_a_deep_schema_needs_no_recursion():
    deep: Any = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert sum(1 for _ in walk(deep)) == 5_001


def test_each_keyword_of_the_table_is_walked_and_mapped():
    forms: dict[str, Any] = {"one": TEXT, "list": [TEXT], "map": {"name": TEXT}}
    for keyword, holds in APPLICATORS.items():
        schema = {keyword: forms[holds]}
        assert [part for _, part in children(schema)] == [TEXT], keyword
        assert [part for _, part in children(map_schema(schema, lambda _: False))] == [False], keyword


@parametrize_subtests("schema", [None, 5, "text", [], {"type": 5, "properties": [], "required": "a", "allOf": {}}])
def test_readers_accept_anything(schema: Any):
    assert (types_of(schema), properties_of(schema), required_of(schema)) == ([], {}, [])
    assert (items_schema_of(schema), subschemas_of(schema, "allOf", "anyOf")) == (True, [])
    assert list(children(schema)) == []


@parametrize_subtests(
    "schema, expected",
    [
        ({"$ref": "#/$defs/Node"}, {"prefixItems": [TEXT]}),
        ({"$ref": "#/properties/a~1b", "title": "T"}, {"prefixItems": [TEXT], "title": "T"}),
        ({"$ref": "#/allOf/1"}, True),
        ({"$ref": "#/$defs/Missing", "title": "T"}, {"title": "T"}),
        ({"$ref": "other.json"}, {}),
        ({"$ref": "#anchor"}, {}),
        (TEXT, TEXT),
    ],
)
def test_a_reference_is_followed_within_the_document(schema: Any, expected: Any):
    root = {**WHOLE, "properties": {"a/b": {"$ref": "#/$defs/Node"}}}
    assert resolve(schema, root) == expected


def test_references_in_a_circle_end():
    assert resolve({"$ref": "#/$defs/a"}, {"$defs": {"a": {"$ref": "#/$defs/a"}}}) == {}


def test_definitions_are_reached_by_way_of_others():
    definitions: Any = {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"$ref": "#/$defs/A"}, "C": {}}
    assert list(references(definitions["A"])) == ["B"]
    assert reachable_definitions([{"not": {"$ref": "#/$defs/A"}}, {"$ref": "#/$defs/X"}], definitions) == {"A", "B"}


@parametrize_subtests(
    "first, second, expected",
    [
        ({"type": ["string", "null"]}, TEXT, TEXT),
        ({"type": "number"}, {"type": "integer"}, {"type": "integer"}),
        ({"type": "string"}, {"type": "object"}, {"type": "string"}),
        ({"enum": [1, 2]}, {"enum": [2, True]}, {"enum": [2]}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"anyOf": [TEXT]}, {"anyOf": [{}]}, {"anyOf": [TEXT], "allOf": [{"anyOf": [{}]}]}),
        (
            {"properties": {"a": TEXT, "b": {}}},
            {"properties": {"a": {"maxLength": 3}, "b": {}, "c": {}}},
            {"properties": {"a": {"allOf": [TEXT, {"maxLength": 3}]}, "b": {}, "c": {}}},
        ),
    ],
)
def test_both_demands_what_each_does(first: Any, second: Any, expected: Any):
    assert intersect_schemas(first, second) == expected


@parametrize_subtests(
    "first, second, expected",
    [
        (TEXT, {}, {}),
        (TEXT, {"type": "null"}, {"type": ["string", "null"]}),
        ({"type": "integer"}, {"type": "number"}, {"type": "number"}),
        ({"const": 1}, {"enum": [True, 1]}, {"enum": [1, True]}),
        ({"required": ["a"]}, {"properties": {"a": TEXT}}, {}),
        (
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
            {"type": "object", "properties": {"b": TEXT}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]},
        ),
        ({"type": "array", "items": TEXT}, TEXT, {"type": ["array", "string"], "items": TEXT}),
    ],
)
def test_either_permits_what_each_does(first: Any, second: Any, expected: Any):
    assert unite_schemas(first, second, merge_all_of) == expected


@parametrize_subtests(
    "kind, text, value",
    [
        ("string", "5", "5"),
        (["string", "null"], "null", None),
        (["string", "null"], "5", "5"),
        ("integer", "5", 5),
        ("integer", "five", "five"),
        ("array", "tea", ["tea"]),
        ("array", '["tea"]', ["tea"]),
        (["string", "integer"], "5", 5),
    ],
)
def test_typed_text_becomes_a_value_of_the_schema(kind: Any, text: str, value: Any):
    assert parse_argument_text({"type": kind}, text) == value
