"""Schemas are judged part by part, and the verdict is that of the library on the whole."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.checks.jsonschemas import schema_error
from tests.subtest_table import parametrize_subtests

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}


@parametrize_subtests(
    "schema, place",
    [
        ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type"),
        ({"properties": {"a": {"properties": {"b/c": {"minLength": -1}}}}}, "/properties/a/properties/b~1c/minLength"),
        ({"$defs": {"x": 5}}, "/$defs/x"),
        ({"items": {"anyOf": [{}, {"title": 5}]}}, "/items/anyOf/1/title"),
        ({"anyOf": []}, "/anyOf"),
        ({"items": [{}]}, "/items"),
        ({"description": 5}, "/description"),
        ({"properties": [1]}, "/properties"),
        (DRAFT_4 | {"properties": {"a": {"required": []}}}, "/properties/a/required"),
        ({"properties": {"a": True, "b": {"description": "text"}}, "const": {"properties": 5}}, ""),
        (DRAFT_4 | {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}, ""),
    ],
)
def test_an_error_is_named_by_its_place(schema: dict[str, Any], place: str) -> None:
    assert schema_error(schema).partition(":")[0] == (f"at {place}" if place else "")


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda key, part: {key: part}, st.sampled_from(["items", "not", "additionalProperties", "title"]), inner),
        st.builds(lambda key, part: {key: {"a": part}}, st.sampled_from(["properties", "$defs", "const"]), inner),
        st.builds(lambda key, parts: {key: parts}, st.sampled_from(["allOf", "oneOf", "enum"]), st.lists(inner, max_size=2)),
    )  # fmt: skip


PARTS = st.sampled_from(
    [True, {}, {"type": "string"}, {"type": "strin"}, {"minLength": -1}, {"description": "a"}, [], 5]
)


@given(st.recursive(PARTS, _around, max_leaves=6).filter(lambda one: isinstance(one, dict)))
def test_the_verdict_is_the_librarys(schema: dict[str, Any]) -> None:
    whole = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA).is_valid(schema)
    assert (schema_error(schema) == "") == whole
