"""Answers of tools as values of a type that one asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from mcpfactory_runtime import Server, ToolError
from mcpfactory_runtime.client import ResultError
from mcpfactory_runtime.client.results import typed_result
from mcpfactory_runtime.testing import connect
from tests.subtest_table import parametrize_subtests


@dataclass
class Place:
    shelf: int


class Book(BaseModel):
    title: str
    place: Place


def text(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in texts]}


@pytest.mark.anyio
async def test_a_client_gets_models_lists_and_plain_values() -> None:
    server = Server("books", version="1")

    @server.tool
    async def book(title: str) -> Book:
        return Book(title=title, place=Place(3))

    @server.tool
    async def titles() -> list[str]:
        return ["Emma"]

    @server.tool
    async def fails() -> str:
        raise ToolError("no books today")

    async with connect(server) as client:
        assert await client.call_tool_as(Book, "book", {"title": "Emma"}) == Book(title="Emma", place=Place(3))
        assert await client.call_tool_as(list[str], "titles") == ["Emma"]
        with pytest.raises(ResultError, match="no books today"):
            await client.call_tool_as(str, "fails")
        with pytest.raises(ResultError, match=r"the result is not a valid .*Place"):
            await client.call_tool_as(Place, "titles")


@parametrize_subtests(
    "result, kind, value",
    [
        ({"structuredContent": {"result": 3}}, dict[str, int], {"result": 3}),
        ({"structuredContent": {"result": 3}}, int, 3),
        ({"structuredContent": {"shelf": 3}, **text("4")}, Place, Place(3)),
        (text('{"shelf": 3}'), Place, Place(3)),
        (text("plain words"), str, "plain words"),
        (text("3"), str, "3"),
        (text("3"), int, 3),
    ],
)
def test_what_is_structured_comes_before_text(result: dict[str, Any], kind: Any, value: Any) -> None:
    assert typed_result(result, kind) == value
