"""The expected requests, by the rules that cases.py states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_codegen.cases.cases import cases, untested
from mcpfactory_codegen.describe.tools import make_api_tools
from mcpfactory_codegen.emit import accept_header
from mcpfactory_codegen.ir import Api, ApiBody, ApiOperation, ApiParameter, Encoding, Response
from mcpfactory_codegen.naming import name_api
from tests.codegen.emit.apis import BOOKSHOP
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string", "example": "a b"}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
PAIR = {"type": "object", "properties": {"a": TEXT, "b": {"type": "integer"}}}
FORM = "application/x-www-form-urlencoded"
FIELDS = {
    "type": "object",
    "properties": {"n": NUMBERS, "o": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "additionalProperties": False,
}


def of(api: Api) -> list[dict[str, Any]]:
    names = name_api(api)
    return cases(api, names, make_api_tools(api, names).tools)


def case(operation: ApiOperation) -> dict[str, Any]:
    (made,) = of(Api("Shop", operations=(operation,)))
    return made


def test_a_case_is_a_call_its_request_and_its_answer() -> None:
    made = of(BOOKSHOP)[1]
    nested = {"subtitle": "value", "title": "value", "limit": 1, "author": {}, "parts": [{"title": "value"}]}
    body = {**nested, "title": "value1", "limit": 2, "author": {"name": "value"}, "parts": [nested]}
    flat = {key: value for key, value in body.items() if key != "limit"}
    assert made["arguments"] == {**flat, "limit": 1, "body_limit": 2}  # no two arguments are alike
    assert made["request"] == {
        "method": "POST",
        "path": "/books",
        "strict": True,
        "query": [["limit", "1"]],
        "credentials": [
            {"kind": "apiKey", "in": "header", "name": "X-Api-Key", "variables": ["MCPF_BOOKSHOP_API_KEY"]}
        ],
        "content_type": "application/json",
        "json": body,
    }
    assert made["offers"]["required"] == ["title"]
    answer = {**nested, "author": {"name": "value"}}
    assert made["response"] == {"status": 201, "content_type": "application/json", "body": answer}


@parametrize_subtests(
    "parameter, query",
    [
        (ApiParameter("query", "q", TEXT), [["q", "a b"]]),
        (ApiParameter("query", "q", {"type": "boolean"}), [["q", "true"]]),
        (ApiParameter("query", "q", {"type": "number"}), [["q", "1.5"]]),
        (ApiParameter("query", "q", NUMBERS), [["q", "1"], ["q", "2"]]),
        (ApiParameter("query", "q", NUMBERS, explode=False), [["q", "1,2"]]),
        (ApiParameter("query", "q", NUMBERS, style="pipeDelimited", explode=False), [["q", "1|2"]]),
        (ApiParameter("query", "q", NUMBERS, style="spaceDelimited", explode=False), [["q", "1 2"]]),
        (ApiParameter("query", "q", NUMBERS, style="deepObject"), [["q", "1"], ["q", "2"]]),
        (ApiParameter("query", "q", PAIR), [["a", "a b"], ["b", "1"]]),
        (ApiParameter("query", "q", PAIR, explode=False), None),  # a blank would need more than plain rules
        (ApiParameter("query", "q", PAIR, style="deepObject"), [["q[a]", "a b"], ["q[b]", "1"]]),
        (
            ApiParameter("query", "q", {"type": "array", "items": PAIR, "minItems": 1}, style="deepObject"),
            [["q[0][a]", "a b"], ["q[0][b]", "1"]],
        ),
        (ApiParameter("query", "q", NUMBERS, content_type="application/json"), [["q", "[1,2]"]]),
        (ApiParameter("query", "q", TEXT, allow_reserved=True), None),
    ],
)
def test_a_query_is_stated_where_the_plain_rules_reach(parameter: ApiParameter, query: Any) -> None:
    assert case(ApiOperation("GET", "/a", "", parameters=(parameter,)))["request"].get("query") == query


@parametrize_subtests(
    "template, schema, style, explode, path",
    [
        ("/a/{p}/b%20c", {"type": "integer"}, "", None, "/a/1/b c"),
        ("/a/{p}.json", {"type": "string"}, "simple", None, "/a/value.json"),
        ("/a/{p}", NUMBERS, "", None, "/a/1,2"),
        ("/a/{p}", {"type": "integer"}, "label", None, "/a/.1"),
        ("/a/{p}", NUMBERS, "label", True, "/a/.1.2"),
        ("/a/{p}", NUMBERS, "label", None, "/a/.1,2"),
        ("/a/{p}", {"type": "integer"}, "matrix", None, "/a/;p=1"),
        ("/a/{p}", NUMBERS, "matrix", True, "/a/;p=1;p=2"),
        ("/a/{p}", PAIR, "", None, "/a/a,a b,b,1"),
        ("/a/{p}", PAIR, "simple", True, "/a/a=a b,b=1"),
        ("/a/{p}", PAIR, "label", None, "/a/.a,a b,b,1"),
        ("/a/{p}", PAIR, "label", True, "/a/.a=a b.b=1"),
        ("/a/{p}", PAIR, "matrix", None, "/a/;p=a,a b,b,1"),
        ("/a/{p}", PAIR, "matrix", True, "/a/;a=a b;b=1"),
    ],
)
def test_a_path_is_stated_decoded(template: str, schema: Any, style: str, explode: bool | None, path: str) -> None:
    parameter = ApiParameter("path", "p", schema, style=style, explode=explode)
    assert case(ApiOperation("GET", template, "", parameters=(parameter,)))["request"]["path"] == path


@parametrize_subtests(
    "body, stated",
    [
        (ApiBody("application/json", {"type": "array", "items": {"type": "integer"}}, required=True), {"json": [1, 2]}),
        (ApiBody("text/plain", {"type": "string"}, required=True), {"text": "value"}),
        (ApiBody(FORM, FIELDS, required=True), {"form": [["n", "1"], ["n", "2"], ["o", {"json": {"a": "value"}}]]}),
        (
            ApiBody(FORM, FIELDS, required=True, encoding={"o": Encoding(style="deepObject", explode=True)}),
            {"form": [["n", "1"], ["n", "2"], ["o[a]", "value"]]},
        ),
        (
            ApiBody("multipart/form-data", FIELDS, required=True),
            {"parts": [["n", "1"], ["n", "2"], ["o", {"json": {"a": "value"}}]]},
        ),
    ],
)
def test_a_body_is_stated_by_its_media_type(body: ApiBody, stated: Any) -> None:
    request = case(ApiOperation("POST", "/a", "", body=body))["request"]
    assert {key: request[key] for key in request.keys() & {"json", "text", "form", "parts"}} == stated
    assert request["content_type"] == body.content_type


def test_headers_and_cookies_are_stated_but_not_those_of_the_client() -> None:
    parameters = (
        ApiParameter("header", "X-Ids", NUMBERS),
        ApiParameter("header", "Authorization", TEXT),
        ApiParameter("cookie", "c", {"type": "integer"}),
    )
    request = case(ApiOperation("GET", "/a", "", parameters=parameters))["request"]
    assert request["headers"] == {"X-Ids": "1,2"}
    assert request["cookies"] == [["c", "1"]]


def test_a_variant_is_the_least_call() -> None:
    parameters = (
        ApiParameter("query", "n", {"type": "integer", "minimum": 3, "maximum": 9}, required=True),
        ApiParameter("query", "e", {"enum": ["a", "b"]}),
    )
    variants = case(ApiOperation("GET", "/a", "", parameters=parameters))["variants"]
    assert [(one["title"], one["arguments"]) for one in variants] == [("required arguments only", {"n": 3})]


def test_refused_calls_are_wrong_in_one_argument_each() -> None:
    parameters = (
        ApiParameter("query", "n", {"type": "integer", "minimum": 3}, required=True),
        ApiParameter("query", "e", {"enum": ["a", "b"]}),
        ApiParameter("query", "s", {"type": "string", "maxLength": 2}),
    )
    refused = case(ApiOperation("GET", "/a", "", parameters=parameters))["refused"]
    assert refused == [
        {"without": "n"},
        {"set": {"mcpfactory_unknown": 1}},
        {"set": {"n": 2}},
        {"set": {"e": "mcpfactory-no-such-value"}},
        {"set": {"s": "aaa"}},
        {"set": {"n": "no number"}},
        {"set": {"s": {"mcpfactory": ["no", "such", "value"]}}},
        {"set": {"n": {"mcpfactory": ["no", "such", "value"]}}},
    ]


def test_answers_are_the_other_documented_ones_and_a_failure() -> None:
    responses = (Response("200"), Response("404", "", "application/json"), Response("503"), Response("4XX"))
    answers = case(ApiOperation("GET", "/a", "", responses=responses))["answers"]
    assert [one["status"] for one in answers] == [404, 400, 503, 500]
    assert answers[2]["headers"] == {"Retry-After": "0"}  # so that no test waits


def test_what_cannot_be_stated_has_no_case() -> None:
    shape = ApiParameter("path", "p", {"type": "object", "properties": {"a": PAIR}}, style="matrix")
    api = Api("Shop", operations=(ApiOperation("GET", "/a/{p}", "", parameters=(shape,)),))
    names = name_api(api)
    assert of(api) == []
    assert list(untested([], make_api_tools(api, names).tools).values()) == [
        "its request is too complex to predict, or sample arguments cannot be generated",
    ]


def test_arguments_that_the_tool_would_refuse_are_left_out() -> None:
    tricky = {"type": "string", "pattern": "^(?=x)y{9}$", "example": "no"}
    parameters = (ApiParameter("query", "q", tricky), ApiParameter("query", "r", {"type": "integer"}, required=True))
    made = case(ApiOperation("GET", "/a", "", parameters=parameters))
    assert made["arguments"].keys() == {"r"}
    needed = replace(parameters[0], required=True)
    made = case(ApiOperation("GET", "/a", "", parameters=(needed,)))
    assert made["arguments"] == {"q": "value"}, (
        "no server judges by what looks around, so the tool is called all the same"
    )


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
    assert case(ApiOperation("GET", "/a", "", responses=responses))["response"] == expected


def test_an_answer_to_head_has_no_body() -> None:
    made = case(ApiOperation("HEAD", "/a", "", responses=(Response("404"),)))
    assert made["response"] == {"status": 200, "content_type": "", "body": None}


def test_what_every_call_sends_is_expected_without_being_given() -> None:
    constants = {"Action": {"type": "string", "enum": ["RunInstances"]}, "Version": {"const": "2016-11-15"}}
    parameters = tuple(ApiParameter("query", name, schema, required=True) for name, schema in constants.items())
    made = case(ApiOperation("POST", "/", "", parameters=parameters))
    assert made["arguments"] == {}
    assert made["request"]["query"] == [["Action", "RunInstances"], ["Version", "2016-11-15"]]
    assert made["offers"] == {"required": [], "optional": []}


@parametrize_subtests("responses, sent", [
        ((Response("200", "", "application/pdf"),), "application/pdf"),
        ((Response("200", "", "application/pdf"), Response("202", "", "application/json")), "application/pdf, application/json;q=0.9"),
        ((Response("200", "", "application/pdf"), Response("200", "", "application/json")), "application/json"),
        ((Response("204", "", ""), Response("206", "", "text/csv")), "text/csv"),
        ((), "application/json"),
    ])  # fmt: skip
def test_what_is_asked_for_is_what_the_first_success_has(responses: tuple[Response, ...], sent: str) -> None:
    assert accept_header(ApiOperation("GET", "/a", "", responses=responses)) == sent
