"""Sample values fit their schemas, come out the same every time, and end where schemas do not."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcpfactory_runtime.schemas.sample import NOTHING, sample
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "schema, expected",
    [
        ({"const": 3}, 3),
        ({"type": "string", "enum": [None, "b", "a"]}, "b"),
        ({"type": "string", "examples": ["hello"]}, "hello"),
        ({"type": "string", "default": "d"}, "d"),
        ({"type": "integer", "example": "not a number"}, 1),
        ({"type": "string", "examples": ["too long"], "maxLength": 3}, "val"),
        ({"type": "string", "format": "date"}, "2024-01-31"),
        ({"type": "string", "pattern": "^[A-Z]{3}-\\d{2}$"}, "AAA-11"),
        ({"type": "string", "minLength": 8}, "valueaaa"),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "number", "exclusiveMaximum": 1}, 0.5),
        ({"type": "number", "maximum": 0}, -1),
        ({"type": ["string", "null"], "examples": [None]}, "value"),
        ({"allOf": [{"type": "object"}, {"type": ["object", "null"], "enum": [None]}]}, {}),
        ({"type": "boolean"}, True),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, {"key": True}),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"allOf": [{"properties": {"a": {"enum": ["x", "y"]}}}, {"properties": {"a": {"enum": ["y"]}}}]}, {"a": "y"}),
        (
            {"type": "object", "required": ["b", "c", "a"], "properties": {"a": {"type": "integer"}}},
            {"a": 1, "b": "value", "c": "value"},
        ),
        (True, "value"),
        (False, NOTHING),
    ],
)
def test_a_sample_is_the_authors_value_or_the_plainest_that_fits(schema: Any, expected: Any) -> None:
    assert sample(schema, {}) == expected


@parametrize_subtests(
    "wide, narrow",
    [
        ({"type": ["string", "null"]}, {"type": "null"}),
        ({"type": "null"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"], "example": "a"}, {"enum": [None]}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "null"}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"oneOf": [{"type": "null"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "null"}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ({"type": ["string", "integer"]}, {"type": ["number", "boolean"]}),
    ],
)
def test_sample_of_a_narrowed_member_fits_all_parts(wide: Any, narrow: Any) -> None:
    parts = [{"type": "object", "required": ["a"], "properties": {"a": part}} for part in (wide, narrow)]
    value = sample({"allOf": parts}, {})
    assert not list(Draft202012Validator({"allOf": parts}).iter_errors(value)), value


def test_arrays_in_arrays_end_before_a_sample_is_hundreds_of_megabytes() -> None:
    def wide(levels: int) -> dict[str, Any]:
        return {"type": "array", "minItems": 20, "items": wide(levels - 1) if levels else {"type": "string"}}

    schema = {"type": "object", "properties": {"wide": wide(3), "flat": wide(1), "name": {"type": "string"}}}
    assert sample(schema, {}) == {"flat": [["value"] * 20] * 20, "name": "value"}


def test_an_array_has_no_null_where_its_items_are_too_deep() -> None:
    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/Node"}}}
    items = {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    assert sample({"properties": {"entries": {"type": "array", "items": items}}}, {"$defs": {"Node": node}}) == {
        "entries": []
    }


def _objects(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from("abc"), children, max_size=3)
    return st.builds(
        lambda found, count: {"type": "object", "properties": found, "required": sorted(found)[:count]},
        properties,
        st.integers(0, 3),
    )


SCHEMAS = st.recursive(
    st.one_of(
        st.builds(
            lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span},
            st.integers(-50, 50),
            st.integers(0, 9),
        ),
        st.builds(
            lambda low, span: {"type": "string", "minLength": low, "maxLength": low + span},
            st.integers(0, 30),
            st.integers(0, 9),
        ),
        st.builds(lambda values: {"enum": values}, st.lists(st.integers(), min_size=1, max_size=3)),
        st.sampled_from([{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 3}, {"type": "null"}, {}]),
    ),
    lambda children: st.one_of(
        _objects(children),
        st.builds(
            lambda items, count: {"type": "array", "items": items, "minItems": count}, children, st.integers(0, 3)
        ),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(children, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(SCHEMAS)
def test_a_sample_satisfies_its_schema(schema: Any) -> None:
    value = sample(schema, {})
    assert value is not NOTHING
    Draft202012Validator(schema).validate(value)
