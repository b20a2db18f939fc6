"""Output schemas: one plain form of whatever a document says about its answers."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mcpfactory_codegen.curation import OutputMode
from mcpfactory_codegen.describe.tool_schemas import OutputSchema, OutputSchemas
from mcpfactory_codegen.ir import Api, ApiOperation, Response
from mcpfactory_codegen.text import estimate_tokens
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def output(
    *schemas: Any, mode: OutputMode = "loose", tokens: int = 500, kind: str = "application/json", **shared: Any
) -> OutputSchema:
    """The output of an operation with one success for each schema; None is one without content."""
    responses = tuple(
        Response(str(200 + at), content_type="" if schema is None else kind, schema=schema)
        for at, schema in enumerate(schemas)
    )
    api = Api("Shop", operations=(ApiOperation("GET", "/x", "", responses=responses),), schemas=shared)
    made = OutputSchemas(api.schemas, mode, tokens).of(api.operations[0])
    if made.schema is not None:
        Draft202012Validator.check_schema(made.schema)
        assert made.schema["type"] == "object"
    return made


def schema_of(*schemas: Any, **options: Any) -> dict[str, Any]:
    made = output(*schemas, **options).schema
    assert made is not None
    return made


REF = {"$ref": "#/$defs/A"}

LOOSE: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("required goes", [obj("a", a=TEXT)], {}, obj(a=TEXT)),
    ("closed opens", [{**obj(a=TEXT), "additionalProperties": False}], {}, obj(a=TEXT)),
    ("formats go", [obj(a={**TEXT, "format": "date", "pattern": "^.$", "minLength": 9})], {}, obj(a=TEXT)),
    ("texts go", [{**obj(a={**TEXT, "description": "A.", "title": "A"}), "title": "X"}], {}, obj(a=TEXT)),
    ("values are examples", [obj(a={"enum": ["x", "y"], **TEXT})], {}, obj(a={**TEXT, "examples": ["x", "y"]})),
    ("too many values", [obj(a={"enum": [*"abcdefghijk"], **TEXT})], {}, obj(a=TEXT)),
    ("null stays", [obj(a={"type": ["string", "null"]})], {}, obj(a={"type": ["string", "null"]})),
    ("a list is wrapped", [{"type": "array", "items": TEXT}], {}, obj(result={"type": "array", "items": TEXT})),
    ("a nullable object is not", [{**obj("a", a=TEXT), "type": ["object", "null"]}], {}, obj(a=TEXT)),
    ("an object or a list", [{"type": ["object", "array"], "items": TEXT}], {}, {"type": "object"}),
    ("references are followed", [obj(a=REF)], {"A": obj(b=WHOLE)}, obj(a=obj(b=WHOLE))),
    ("allOf", [{"allOf": [REF, obj(c=TEXT), {"description": "X"}]}], {"A": obj(b=WHOLE)}, obj(b=WHOLE, c=TEXT)),
    ("oneOf objects", [{"oneOf": [obj(a=TEXT, t=TEXT), obj(b=WHOLE, t=TEXT)]}], {}, obj(a=TEXT, t=TEXT, b=WHOLE)),
    ("anyOf kinds", [obj(a={"anyOf": [TEXT, obj(b=TEXT)]})], {}, obj(a={**obj(b=TEXT), "type": ["string", "object"]})),
    ("anyOf with anything", [obj(a={"anyOf": [TEXT, {}]})], {}, obj(a={})),
    ("a map", [{"type": "object", "additionalProperties": TEXT}], {}, {"type": "object", "additionalProperties": TEXT}),
    ("a tuple", [obj(a={"type": "array", "prefixItems": [TEXT]})], {}, obj(a={"type": "array"})),
    ("several successes", [obj(a=TEXT), obj(b=TEXT)], {}, obj(a=TEXT, b=TEXT)),
    ("a list of itself", [obj(a=REF)], {"A": {"type": "array", "items": REF}}, obj(a={"type": "array"})),
    ("a number that is whole", [obj(a={"allOf": [{"type": "number"}, WHOLE]})], {}, obj(a=WHOLE)),
]


@parametrize_subtests("schemas, shared, expected", [row[1:] for row in LOOSE])
def test_a_loose_schema_says_only_what_apis_keep_to(schemas: list[Any], shared: dict[str, Any], expected: Any) -> None:
    assert schema_of(*schemas, **shared) == expected


DECLARED: list[tuple[str, list[Any], Any]] = [
    ("required stays", [obj("a", a=TEXT)], obj("a", a=TEXT)),
    ("closed stays", [{**obj(a=TEXT), "additionalProperties": False}], {**obj(a=TEXT), "additionalProperties": False}),
    ("values stay", [obj(a={"enum": ["x", None]})], obj(a={"type": ["string", "null"], "enum": ["x", None]})),
    ("a list is required", [{"type": "array"}], obj("result", result={"type": "array"})),
    (
        "required in every branch",
        [{"oneOf": [obj("a", a=TEXT), obj("a", "b", a=TEXT, b=TEXT)]}],
        obj("a", a=TEXT, b=TEXT),
    ),
    ("required in one part", [{"allOf": [obj("a", a=TEXT), obj("b", b=TEXT)]}], obj("a", "b", a=TEXT, b=TEXT)),
    ("a success without content", [obj("a", a=TEXT), None], obj(a=TEXT)),
]


@parametrize_subtests("schemas, expected", [row[1:] for row in DECLARED])
def test_a_declared_schema_keeps_what_the_document_promises(schemas: list[Any], expected: Any) -> None:
    assert schema_of(*schemas, mode="declared") == expected


@pytest.mark.parametrize("mode", ["loose", "declared"])
def test_a_tree_ends_where_it_no_longer_fits(mode: OutputMode) -> None:
    tree = obj("name", name=TEXT, kids={"type": "array", "items": REF})
    small, large = (schema_of(REF, A=tree, mode=mode, tokens=tokens) for tokens in (40, 80))
    assert estimate_tokens(small) <= 40 < estimate_tokens(large) <= 80


def test_what_does_not_fit_at_all_is_left_out_with_its_reason() -> None:
    made = output(obj(**{f"member_{n}": TEXT for n in range(100)}), tokens=100)
    assert (made.schema, made.reason) == (None, "its first level alone is more than 100 tokens")
