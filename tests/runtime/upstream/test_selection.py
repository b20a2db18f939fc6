"""JMESPath: a model takes what it needs of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, StubUpstream, Upstream

pytestmark = pytest.mark.anyio

BOOKS = {"books": [{"id": n, "title": f"T{n}", "text": "x" * 1000} for n in range(400)]}
LIST = Operation("GET", "/books", select="select")


async def ask(expression: Any) -> tuple[Any, list[str], int]:
    """Structured content, notes, and how many requests the API saw."""
    case = {"request": {"method": "GET"}, "response": {"body": BOOKS}}
    async with StubUpstream([case]) as stub, Upstream(stub.base_url, environ={"MCPFACTORY_ALLOW_PRIVATE": "1"}) as api:
        try:
            result = await api.send(LIST, {"select": expression})
        except ToolError as error:
            return None, [str(error)], len(stub.requests)
        return result.structured, [block["text"] for block in result.content[1:]], len(stub.requests)


async def test_the_selection_comes_before_the_bound() -> None:
    structured, notes, _ = await ask("books[].id")
    assert structured == {"result": [*range(400)]}
    assert notes == []


async def test_an_expression_that_is_none_is_refused_before_anything_is_sent() -> None:
    for expression in ("books[", "x" * 1001, "("):
        _, (told,), requests = await ask(expression)
        assert "is not a valid JMESPath expression" in told
        assert requests == 0


async def test_an_expression_that_does_not_fit_says_that_the_call_was_made() -> None:
    _, (told,), requests = await ask("length(books[0].id)")
    assert told.startswith("The API answered, but the expression")
    assert requests == 1


async def test_an_expression_that_selects_nothing_is_told_what_there_is() -> None:
    structured, notes, _ = await ask("boks")
    assert structured == {"result": None}
    assert notes == ["The expression selects nothing from an answer with: books."]
