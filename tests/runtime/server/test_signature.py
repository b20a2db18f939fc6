"""Signatures → schemas and validators; the same for builtins (without pydantic) and for what needs pydantic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.schemas.builtin_types import builtin_schema
from mcpfactory_runtime.server.signature import ArgumentsError, read_docstring, read_signature
from mcpfactory_runtime.testing import connect
from tests.subtest_table import parametrize_subtests


class Book(BaseModel):
    """A book."""

    title: str
    pages: int = 0


@dataclass
class Point:
    x: float
    y: float = 0.0


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Options(TypedDict, total=False):
    deep: bool


@parametrize_subtests(
    "annotation, schema",
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict[str, Any], {"type": "object"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045 - what users write
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    ],
)
def test_builtins_have_schemas_without_pydantic(annotation: Any, schema: dict[str, Any]) -> None:
    pair = builtin_schema(annotation)
    assert pair is not None
    assert pair[1] == schema


def search(query: str, limit: int = 10, tags: list[str] | None = None, *, exact: bool = False) -> str:
    """Search the notes.

    Finds by words.

    Args:
        query: what to look for,
            in any language
        limit (int): most results

    Returns:
        The results.
    """
    return f"{query} {limit} {tags} {exact}"


def test_a_function_becomes_a_schema() -> None:
    signature = read_signature(search)
    assert signature.description == "Search the notes.\n\nFinds by words."
    assert signature.schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for, in any language"},
            "limit": {"type": "integer", "default": 10, "description": "most results"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    jsonschema.Draft202012Validator.check_schema(signature.schema)


def test_arguments_are_checked_and_converted_and_defaults_left_to_the_function() -> None:
    signature = read_signature(search)
    assert signature.bind({"query": "tea", "limit": "3"}) == {"query": "tea", "limit": 3}
    with pytest.raises(ArgumentsError) as wrong:
        signature.bind({"limit": "many", "qwery": "tea"})
    assert str(wrong.value).splitlines() == [
        "query: required but missing",
        "limit: Input should be a valid integer, unable to parse string as an integer, got 'many'",
        "qwery: there is no such argument. hint: the arguments are query, limit, tags, exact",
    ]


def rich(  # noqa: PLR0917 - one of every kind
    book: Book,
    point: Point,
    size: Size = Size.SMALL,
    options: Options | None = None,
    when: date | None = None,
    count: Annotated[int, Field(ge=1, description="how many")] = 1,
    depth: int = Field(default=2, le=9),
) -> None:
    """Take everything."""


def test_models_dataclasses_and_constraints_become_a_schema() -> None:
    signature = read_signature(rich)
    schema = signature.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["book", "point"]
    assert schema["properties"]["count"] == {"type": "integer", "minimum": 1, "description": "how many", "default": 1}
    assert schema["properties"]["depth"] == {"type": "integer", "maximum": 9, "default": 2}
    assert schema["$defs"]["Book"]["properties"]["pages"] == {"type": "integer", "default": 0}
    assert "title" not in schema
    assert schema["additionalProperties"] is False


def needs_context(a: int, ctx: Context) -> int:
    return a


def may_need_context(a: int, ctx: Context | None = None) -> int:
    return a


@pytest.mark.parametrize("handler", [needs_context, may_need_context])
def test_the_context_is_found_by_its_annotation_and_is_no_argument(handler: Any) -> None:
    signature = read_signature(handler)
    assert (signature.context, signature.names) == ("ctx", ["a"])


def variadic(*rest: int) -> None: ...


def keywords(**rest: int) -> None: ...


def positional(a: int, /) -> None: ...


def unresolved(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that it does not exist is the point


class Opaque:
    """Pydantic cannot look inside."""


def opaque(a: Opaque) -> None: ...


@parametrize_subtests("handler", [variadic, keywords, positional, unresolved, opaque])
def test_signatures_that_cannot_be_argument_lists_are_refused_with_the_function_named(handler: Any) -> None:
    with pytest.raises(TypeError, match=handler.__name__):
        read_signature(handler)


@parametrize_subtests(
    "docstring, description, arguments",
    [
        (None, "", {}),
        ("One line.", "One line.", {}),
        ("A.\n\n    Args:\n        x: the x\n        *rest: more", "A.", {"x": "the x", "rest": "more"}),
        ("A.\n\n    Raises:\n        ValueError: no\n\n    Example:\n        f(1)", "A.\n\nExample:\n    f(1)", {}),
        ("A.\n\n    Parameters:\n        x (str, optional): a: b", "A.", {"x": "a: b"}),
    ],
)
def test_docstrings_give_a_description_and_sentences(
    docstring: str | None, description: str, arguments: dict[str, str]
) -> None:
    assert read_docstring(docstring) == (description, arguments)


class Thing:
    def sized(self, size: int) -> int:
        return size


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Thing\.sized(.|\n)*hint:.*server\.tool\(thing\.sized\)"):
        Server("methods").tool(Thing.sized)
    Server("methods").tool(Thing().sized)

    @Server("functions").tool
    def show(self: str) -> str:
        return self


def test_a_partial_function_keeps_its_types_and_texts() -> None:
    server = Server("partial")
    server.tool(partial(search, "tea", limit=5))
    tool = server.registry.tools["search"]
    assert not {"query", "limit"} & tool.wire["inputSchema"]["properties"].keys(), "callers must not replace them"
    assert tool.wire["description"] == read_signature(search).description


@pytest.mark.anyio
@pytest.mark.parametrize("strict", [False, True])
async def test_json_text_is_accepted_for_lists_and_objects_unless_strict(strict: bool) -> None:
    server = Server("texts")

    @server.tool(strict=strict)
    async def show(items: list[int], table: dict[str, int], text: str | list[int], count: int = 0) -> list[Any]:
        return [items, table, text, count]

    async with connect(server) as client:
        given = {"items": "[1, 2]", "table": ' {"a": 1}', "text": "[3]"}
        result = await client.call_tool("show", given)
        assert result.get("isError", False) is strict
        assert strict or result["structuredContent"]["result"] == [[1, 2], {"a": 1}, "[3]", 0]
        for wrong in ({"items": "[x"}, {"items": '["x"]'}, {"count": "[1]"}, {"other": "[1]"}):
            assert (await client.call_tool("show", {**given, **wrong}))["isError"]
