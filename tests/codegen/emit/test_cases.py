"""The expected requests, by the rules that cases.py states."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.cases import cases
from mcpfactory_codegen.ir import Api, Body, Operation, Parameter, Response
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.tools import describe
from tests.codegen.emit.apis import BOOKSHOP

TEXT = {"type": "string", "example": "a b"}


def of(api: Api) -> list[dict[str, Any]]:
    names = name_api(api)
    return cases(api, names, describe(api, names))


def case(operation: Operation) -> dict[str, Any]:
    (made,) = of(Api("Shop", operations=(operation,)))
    return made


def test_a_case_is_a_call_its_request_and_its_answer() -> None:
    nested = {"subtitle": "value", "title": "value", "limit": 1, "author": {}, "parts": [{"title": "value"}]}
    book = {**nested, "author": {"name": "value"}, "parts": [nested]}
    answer = {**book, "parts": [{"title": "value"}]}
    assert of(BOOKSHOP)[1] == {
        "tool": "add_book",
        "arguments": {**book, "limit": 1, "body_limit": 1},
        "request": {"method": "POST", "path": "/books", "query": [["limit", "1"]], "json": book},
        "response": {"status": 201, "content_type": "application/json", "body": answer},
    }


@pytest.mark.parametrize(
    ("parameter", "query"),
    [
        (Parameter("query", "q", TEXT), [["q", "a b"]]),
        (Parameter("query", "q", {"type": "boolean"}), [["q", "true"]]),
        (
            Parameter("query", "q", {"type": "array", "items": {"type": "integer"}, "minItems": 2}),
            [["q", "1"], ["q", "1"]],
        ),
        (Parameter("query", "q", {"type": "array", "items": {"type": "integer"}}, explode=False), None),
        (Parameter("query", "q", {"type": "object", "properties": {"a": TEXT}}, style="deepObject"), None),
        (Parameter("query", "q", TEXT, content_type="application/json"), None),
        (Parameter("query", "q", {"type": "number"}), None),
    ],
)
def test_a_query_is_stated_where_the_plain_rules_reach(parameter: Parameter, query: Any) -> None:
    assert case(Operation("GET", "/a", "", parameters=(parameter,)))["request"].get("query") == query


@pytest.mark.parametrize(
    ("template", "schema", "style", "path"),
    [
        ("/a/{p}/b%20c", {"type": "integer"}, "", "/a/1/b c"),
        ("/a/{p}.json", {"type": "string"}, "simple", "/a/value.json"),
        ("/a/{p}", {"type": "array", "items": {"type": "integer"}, "minItems": 2}, "", "/a/1,1"),
        ("/a/{p}", {"type": "integer"}, "label", "/a/.1"),
        ("/a/{p}", {"type": "integer"}, "matrix", "/a/;p=1"),
    ],
)
def test_a_path_is_stated_decoded(template: str, schema: Any, style: str, path: str) -> None:
    operation = Operation("GET", template, "", parameters=(Parameter("path", "p", schema, style=style),))
    assert case(operation)["request"]["path"] == path


def test_what_cannot_be_stated_or_reached_has_no_case() -> None:
    shape = Parameter("path", "p", {"type": "object", "properties": {"a": TEXT}}, style="matrix")
    elsewhere = Operation("GET", "/b", "", server="https://other.example")
    assert of(Api("Shop", operations=(Operation("GET", "/a/{p}", "", parameters=(shape,)), elsewhere))) == []


def test_a_whole_body_is_the_json_that_is_expected() -> None:
    body = Body("application/json", {"type": "array", "items": {"type": "integer"}}, required=True)
    made = case(Operation("POST", "/a", "", body=body))
    assert made["arguments"] == {"body": [1]}
    assert made["request"]["json"] == [1]


def test_arguments_that_the_tool_would_refuse_are_left_out() -> None:
    tricky = {"type": "string", "pattern": "^(?=x)x{9}$", "example": "no"}
    parameters = (Parameter("query", "q", tricky), Parameter("query", "r", {"type": "integer"}, required=True))
    made = case(Operation("GET", "/a", "", parameters=parameters))
    assert made["arguments"].keys() == {"r"}


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ((), {"status": 200, "content_type": "application/json", "body": {}}),
        ((Response("204"), Response("404", "", "application/json")), {"status": 204, "content_type": "", "body": None}),
        (
            (Response("2XX", "", "text/plain", {"type": "string"}),),
            {"status": 200, "content_type": "text/plain", "body": "value"},
        ),
        (
            (Response("default", "", "application/json", {"type": "integer"}),),
            {"status": 200, "content_type": "application/json", "body": 1},
        ),
    ],
)
def test_the_answer_is_the_documented_success(responses: tuple[Response, ...], expected: dict[str, Any]) -> None:
    assert case(Operation("GET", "/a", "", responses=responses))["response"] == expected
