"""What a model sees: input schemas, descriptions, annotations, and where arguments travel."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from mcpfactory_codegen.describe.tool_schemas import BUDGET
from mcpfactory_codegen.describe.tools import ApiTool, make_api_tools
from mcpfactory_codegen.ir import Api, ApiOperation, ApiParameter, Encoding
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.text import dump_json
from tests.codegen.emit.apis import BOOKSHOP, one, with_body
from tests.subtest_table import parametrize_subtests


def bindings(tool: ApiTool) -> dict[str, tuple[str, str]]:
    return {argument: (bound.place, bound.name) for argument, bound in tool.bindings.items()}


def test_a_body_of_known_properties_becomes_arguments_beside_the_parameters() -> None:
    tool = make_api_tools(BOOKSHOP, name_api(BOOKSHOP)).tools[1]
    assert bindings(tool) == {
        "limit": ("query", "limit"),
        "subtitle": ("body", "subtitle"),
        "title": ("body", "title"),
        "body_limit": ("body", "limit"),
        "author": ("body", "author"),
        "parts": ("body", "parts"),
    }
    assert tool.input_schema["required"] == ["title"]
    assert tool.input_schema["additionalProperties"] is False
    assert next(iter(tool.input_schema["properties"])) == "title"


def test_every_input_schema_is_valid_and_stands_alone() -> None:
    for tool in make_api_tools(BOOKSHOP, name_api(BOOKSHOP)).tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
    validator = Draft202012Validator(make_api_tools(BOOKSHOP, name_api(BOOKSHOP)).tools[1].input_schema)
    assert validator.is_valid({"title": "A", "parts": [{"title": "B", "parts": [{"title": "C"}]}]})
    assert not validator.is_valid({"title": "A", "parts": [{"parts": []}]})


@parametrize_subtests(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]},
        {"type": "object"},
        True,
    ],
)
def test_any_other_body_is_one_argument(schema: Any) -> None:
    assert bindings(with_body(schema)) == {"body": ("body", "")}


def test_all_of_at_the_top_is_flattened() -> None:
    tool = with_body(
        {"allOf": [{"$ref": "#/$defs/Base"}, {"type": "object", "properties": {"extra": {"type": "string"}}}]},
        schemas={"Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}},
    )
    assert bindings(tool) == {"id": ("body", "id"), "extra": ("body", "extra")}
    assert tool.input_schema["required"] == ["id"]


def test_a_body_that_may_be_left_out_asks_for_nothing_but_says_what_belongs_together() -> None:
    tool = with_body({"type": "object", "required": ["a"], "properties": {"a": {}, "b": {}}}, required=False)
    assert "required" not in tool.input_schema
    assert "When any of the body's values is given: a too." in tool.description


def test_alternatives_of_required_properties_are_told_in_words() -> None:
    tool = with_body(
        {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    )
    assert set(tool.input_schema["properties"]) == {"a", "b"}
    assert "Give at least one of: a; b." in tool.description


def test_a_form_is_bound_as_form_and_its_file_is_text_or_an_object() -> None:
    tool = with_body(
        {"type": "object", "properties": {"file": {"type": "string"}, "note": {"type": "string"}}},
        content_type="multipart/form-data",
        encoding={"file": Encoding(file=True)},
    )
    assert bindings(tool) == {"file": ("form", "file"), "note": ("form", "note")}
    validator = Draft202012Validator(tool.input_schema)
    assert validator.is_valid({"file": "text"})
    assert validator.is_valid({"file": {"base64": "YQ==", "filename": "a.txt"}})
    assert not validator.is_valid({"file": 3})


def test_a_definition_that_is_used_twice_or_in_a_cycle_stays_one() -> None:
    node = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    unused = {"type": "string"}
    tool = with_body(
        {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}}, schemas={"Node": node, "Unused": unused}
    )
    assert tool.input_schema["$defs"] == {"Node": node}
    assert tool.input_schema["properties"]["root"] == {"$ref": "#/$defs/Node"}


def test_definitions_beyond_the_budget_are_left_open_and_reported() -> None:
    properties = {f"p{number}": {"type": "string", "format": "x"} for number in range(500)}
    schemas: dict[str, Any] = {f"Big{number}": {"type": "object", "properties": properties} for number in range(3)}
    operation = ApiOperation(
        "GET",
        "/a",
        "/paths/~1a/get",
        parameters=tuple(ApiParameter("query", name, {"$ref": f"#/$defs/{name}"}) for name in schemas),
    )
    api = Api("Shop", operations=(operation,), schemas=schemas)
    described = make_api_tools(api, name_api(api))
    assert len(dump_json(described.tools[0].input_schema)) < BUDGET * 1.5
    assert [(one.code, one.pointer) for one in described.problems] == [("schema-cut", "/paths/~1a/get")]
    Draft202012Validator.check_schema(described.tools[0].input_schema)


def test_documentation_keywords_go_and_data_stays() -> None:
    tool = with_body(
        {
            "type": "object",
            "title": "T",
            "x-internal": 1,
            "properties": {
                "title": {"type": "string", "title": "Title", "example": "e", "default": "d", "minLength": 0},
                "kind": {"enum": ["title", "x-a", {"title": "kept"}]},
            },
        }
    )
    assert tool.input_schema["properties"] == {
        "title": {"type": "string", "default": "d", "minLength": 0},
        "kind": {"enum": ["title", "x-a", {"title": "kept"}]},
    }


def test_the_description_is_plain_short_and_keeps_constraints() -> None:
    filler = "This sentence says little about anything at all and goes on for a while. " * 40
    tool = one(
        ApiOperation(
            "GET",
            "/a",
            "",
            summary="List things",
            description=f"# Things\n\nSee [the **docs**](https://x.example).\n{filler}\nThe page must be at most 100.",
            deprecated=True,
        )
    )
    assert len(tool.description) <= 1024
    assert tool.description.startswith("List things.\nThings")
    assert "See the docs." in tool.description
    assert "The page must be at most 100." in tool.description
    assert tool.description.endswith("Deprecated.")


def test_hidden_characters_do_not_reach_the_model() -> None:
    tool = one(ApiOperation("GET", "/a", "", summary="a\u202eb\u200bc\x00d"))
    assert tool.title == "abcd"
    assert tool.description == "abcd."


ONE = {"type": "string", "enum": ["DescribeInstances"]}


def fixed_and_shown(*parameters: ApiParameter, schemas: dict[str, Any] | None = None) -> tuple[Any, list[str]]:
    tool = one(ApiOperation("GET", "/", "", parameters=parameters), schemas or {})
    return tool.fixed, list(tool.input_schema["properties"])


@parametrize_subtests(
    "schema, value",
    [
        (ONE, "DescribeInstances"),
        ({"const": "2016-11-15"}, "2016-11-15"),
        ({"type": "integer", "enum": [2]}, 2),
        ({"$ref": "#/$defs/Action"}, "DescribeInstances"),
        ({"allOf": [{"$ref": "#/$defs/Action"}], "description": "What to do."}, "DescribeInstances"),
    ],
)
def test_a_required_parameter_of_one_value_is_sent_and_not_asked_for(schema: Any, value: Any) -> None:
    parameter = ApiParameter("query", "Action", schema, required=True)
    other = ApiParameter("query", "MaxResults", {"type": "integer"})
    fixed, shown = fixed_and_shown(parameter, other, schemas={"Action": ONE})
    assert (list(fixed.values()), len(shown)) == ([value], 1)


@parametrize_subtests(
    "schema, required",
    [
        (ONE, False),
        ({"enum": ["a", "b"]}, True),
        ({"enum": ["a", None]}, True),
        ({"type": "boolean", "enum": [True]}, True),
        ({"const": None}, True),
        ({"type": "array", "items": ONE}, True),
        ({"anyOf": [ONE, {"type": "integer"}]}, True),
        ({"allOf": [ONE], "maxLength": 4}, True),
    ],
)
def test_where_there_is_a_choice_or_a_consent_the_caller_is_asked(schema: Any, required: bool) -> None:
    assert fixed_and_shown(ApiParameter("query", "flag", schema, required=required)) == ({}, ["flag"])
