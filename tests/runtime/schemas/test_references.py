"""Dialects and references of schemas; `jsonschema` is the oracle for what satisfies a schema in its dialect."""

from __future__ import annotations

import socket
from typing import Any

import jsonschema
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.schemas.references import UnusableSchemaError
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.schemas.value_validation import ArgumentError
from mcpfactory_runtime.types import Json
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests

OLD = {
    "http://json-schema.org/draft-06/schema#": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema#": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}
PARTS: list[Json] = [
    {"type": "array", "items": [{"type": "integer"}, {"type": "boolean"}]},
    {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}},
    {"type": "array", "items": [{"type": "integer"}], "additionalItems": False},
    {"type": "array", "items": {"type": "integer"}, "additionalItems": False},
    {"$ref": "#/definitions/whole", "type": "boolean"},
    {"$ref": "#/definitions/whole", "minimum": 5},
    {"items": [{"$ref": "#/definitions/whole"}, True]},
]
VALUES: list[Any] = [[], [1], [1, True], [1, 1], [True], [True, True], [1, True, None], 1, 7, True, [[]], [7, []]]


def accepts(schema: Json, value: Any) -> bool:
    try:
        compile_schema(schema).validate({"a": value})
    except ArgumentError:
        return False
    return True


@requirement("json-schema.other-dialect")
@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("dialect", list(OLD)[:3])
def test_older_dialects_are_read_as_they_are_meant(dialect: str, part: Json) -> None:
    schema = {
        "$schema": dialect,
        "type": "object",
        "properties": {"a": part},
        "definitions": {"whole": {"type": "integer"}},
    }
    oracle = OLD[dialect](schema)
    for value in VALUES:
        assert accepts(schema, value) is oracle.is_valid({"a": value}), value


@requirement("json-schema.other-dialect")
@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-03/schema#"},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"$schema": "https://example.com/mine"},
        {"$schema": ""},
        {"$schema": 7},
        {"properties": {"a": {"$schema": "https://example.com/mine"}}},
        {"$defs": {"a": {"items": [{"$schema": "http://json-schema.org/draft-07/schema#"}]}}},
    ],
    ids=str,
)
def test_a_schema_of_another_dialect_is_refused(schema: Json) -> None:
    with pytest.raises(UnusableSchemaError, match=r"dialect(.|\n)*hint:"):
        compile_schema(schema)


LINKED: Json = {
    "$id": "https://example.com/root.json",
    "type": "object",
    "properties": {
        "a": {
            "anyOf": [
                {"$ref": "#whole"},
                {"$ref": "/flag.json"},
                {"$ref": "https://example.com/words/list.json"},
                {"$ref": "words/list.json#/$defs/pair"},
            ]
        }
    },
    "$defs": {
        "any name": {"$anchor": "whole", "type": "integer"},
        "flag": {"$id": "flag.json", "type": "boolean"},
        "words": {
            "$id": "words/list.json",
            "type": "array",
            "items": {"$ref": "#word"},
            "$defs": {
                "word": {"$anchor": "word", "type": "string"},
                "pair": {"type": "object", "additionalProperties": {"$ref": "#/$defs/word"}, "minProperties": 1},
            },
        },
    },
}


@parametrize_subtests("value", [1, 1.5, True, ["x"], [[]], {"x": "y"}, {"x": []}, {}])
def test_references_are_resolved_against_the_ids_around_them(value: Any) -> None:
    assert accepts(LINKED, value) is jsonschema.Draft202012Validator(LINKED).is_valid({"a": value})


def test_ids_with_a_fragment_are_anchors_in_the_dialects_that_had_no_others() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#whole"}},
        "definitions": {"x": {"$id": "#whole", "type": "integer"}},
    }
    assert accepts(schema, 1)
    assert not accepts(schema, [])


@requirement("json-schema.unresolved", "json-schema.no-fetch")
@pytest.mark.parametrize(
    "reference",
    [
        *("#/$defs/nothing", "#nothing", "#/properties/a/anyOf/7", "#/type/x", "nothing.json", "#/$defs/x/anyOf/-1"),
        *("https://example.com/elsewhere", "http://127.0.0.1:9/schema.json", "file:///etc/passwd", "urn:x:y", "//["),
    ],
)
@pytest.mark.parametrize("root", [{}, {"$id": "https://example.com/root.json"}, {"$id": "//]"}])
@pytest.mark.parametrize("deep", [False, True])
def test_a_reference_that_leads_nowhere_is_refused_and_nothing_is_fetched(
    reference: str, deep: bool, root: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: asked.append(address))
    part: Json = {"anyOf": [{"type": "integer"}, {"$ref": reference}]}
    asking = {"$ref": "#/$defs/x"} if deep else part
    schema: Json = {**root, "type": "object", "properties": {"a": asking}, "$defs": {"x": part}}
    with pytest.raises(UnusableSchemaError, match=r"(.|\n)*hint:") as refused:
        compile_schema(schema)
    assert repr(reference) in str(refused.value)
    assert asked == []


@requirement("json-schema.other-dialect", "json-schema.unresolved")
@pytest.mark.parametrize("keyword", ["input_schema", "output_schema"])
@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "https://example.com/mine", "type": "object"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
    ],
    ids=["dialect", "reference"],
)
def test_a_tool_with_such_a_schema_is_refused_when_it_is_made(keyword: str, schema: Json) -> None:
    async def anything() -> None:
        """Do nothing."""

    options: Any = {keyword: schema}
    with pytest.raises(ValueError, match=r"tool 'anything': (.|\n)*hint:"):
        Server("refusing").tool(**options)(anything)
