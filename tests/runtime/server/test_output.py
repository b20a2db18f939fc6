from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ValidationError as CoreError
from typing_extensions import TypedDict

from mcpfactory_runtime import Image, Server, Text, ToolResult
from mcpfactory_runtime.server.tool_output import make_output_converter
from mcpfactory_runtime.testing import connect
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests


class Book(BaseModel):
    title: str
    page_count: int = Field(default=0, alias="pageCount")


@dataclass
class Point:
    x: float


class Size(TypedDict):
    width: int


@parametrize_subtests(
    "annotation, value, structured, text",
    [
        (int, 3, {"result": 3}, "3"),
        (str, "hi", {"result": "hi"}, "hi"),
        (bool, True, {"result": True}, "true"),
        (list[int], [1, 2], {"result": [1, 2]}, "[1,2]"),
        (int | None, None, {"result": None}, "null"),
        (dict[str, int], {"a": 1}, {"a": 1}, '{"a":1}'),
        (Book, Book(title="T", pageCount=2), {"title": "T", "pageCount": 2}, '{"title":"T","pageCount":2}'),
        (list[Book], [Book(title="T")], {"result": [{"title": "T", "pageCount": 0}]}, None),
        (Point, Point(1.5), {"x": 1.5}, '{"x":1.5}'),
        (Size, {"width": 2}, {"width": 2}, '{"width":2}'),
    ],
)
def test_values_match_the_schema_of_their_annotation(
    annotation: Any, value: Any, structured: Any, text: str | None
) -> None:
    convert, schema = make_output_converter(annotation, None)
    assert schema is not None
    assert schema["type"] == "object"
    result = convert(value)
    jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
    assert result["structuredContent"] == structured
    assert text is None or result["content"] == [{"type": "text", "text": text}]


@requirement("tools.output-schema")
@pytest.mark.parametrize(("annotation", "value"), [(int, "three"), (dict[str, int], {"a": "b"}), (Book, {"no": 1})])
def test_values_of_another_type_are_errors_of_the_handler(annotation: Any, value: Any) -> None:
    convert, _ = make_output_converter(annotation, None)
    with pytest.raises((ValidationError, CoreError)):
        convert(value)


@parametrize_subtests(
    "annotation",
    [inspect.Signature.empty, None, Any, Text, Image, ToolResult, list[Text], Text | Image, list[str | Image]],
)
def test_content_has_no_schema(annotation: Any) -> None:
    convert, schema = make_output_converter(annotation, None)
    assert schema is None
    assert convert("x") == {"content": [{"type": "text", "text": "x"}]}
    with pytest.raises(TypeError, match="structured"):
        make_output_converter(annotation, True)


@parametrize_subtests(
    "value, result",
    [
        (None, {"content": []}),
        ({"a": 1}, {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}}),
        ([], {"content": [{"type": "text", "text": "[]"}]}),
        (["a", Text("b")], {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        ([1, 2], {"content": [{"type": "text", "text": "[1,2]"}]}),
        (
            ToolResult("x", is_error=True, meta={"k": 1}),
            {"content": [{"type": "text", "text": "x"}], "isError": True, "_meta": {"k": 1}},
        ),
    ],
)
def test_values_without_annotation_become_content_by_what_they_are(value: Any, result: dict[str, Any]) -> None:
    convert, _ = make_output_converter(inspect.Signature.empty, None)
    assert convert(value) == result


@parametrize_subtests("annotation", [list, list[Any], tuple, tuple[Any, ...], Sequence, Sequence[Any]])
def test_a_list_of_anything_may_hold_content_which_is_content_and_its_data_is_data(annotation: Any) -> None:
    convert, schema = make_output_converter(annotation, None)
    assert schema is not None
    image = Image(b"x").to_dict()
    mixed = convert([Image(b"x"), "a", {"n": 1}])
    assert mixed["content"] == [image, {"type": "text", "text": "a"}, {"type": "text", "text": '{"n":1}'}]
    assert mixed["structuredContent"] == {"result": ["a", {"n": 1}]}
    jsonschema.Draft202012Validator(schema).validate(mixed["structuredContent"])
    assert convert([1])["structuredContent"] == {"result": [1]}


_SHELF = {"type": "object", "properties": {"books": {"type": "integer"}}, "required": ["books"]}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "right"),
    [
        ({"books": 3}, True),
        ({"books": "3"}, False),
        ({}, False),
        ("three", False),
        (ToolResult("three", structured={"books": 3}), True),
        (ToolResult("three", structured={"books": None}), False),
        (ToolResult("three"), False),
        (ToolResult("no shelf", is_error=True), True),
    ],
)
async def test_structured_content_matches_the_authors_output_schema(value, right, caplog):
    server = Server("shelf")
    server.tool(lambda: value, name="count", output_schema=_SHELF)
    async with connect(server) as client:
        result = await client.call_tool("count")
    assert ("internal error" in result["content"][0]["text"]) is not right
    assert right or "output schema" in caplog.text


@pytest.mark.anyio
async def test_a_complete_result_matches_the_schema_of_the_annotation(caplog):
    server = Server("books")

    @server.tool
    def book(title: Any) -> Book:
        return ToolResult("a book", structured={"title": title})  # type: ignore[return-value] # what is tested

    async with connect(server) as client:
        assert (await client.call_tool("book", {"title": "Emma"}))["structuredContent"] == {"title": "Emma"}
        assert (await client.call_tool("book", {"title": 3}))["isError"]
    assert "output schema" in caplog.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], {"x": -float("inf")}, ToolResult("x", structured={"x": float("nan")})]
)
async def test_numbers_without_json_are_an_error(value, caplog):
    server = Server("numbers")
    server.tool(lambda: value, name="number")
    server.tool(lambda: "NaN or Infinity", name="text")
    server.tool(lambda: {"text": "NaN or Infinity"}, name="object")
    async with connect(server) as client:
        assert (await client.call_tool("number"))["isError"]
        assert not (await client.call_tool("text")).get("isError")
        assert not (await client.call_tool("object")).get("isError")
    assert "NaN or infinity" in caplog.text
