"""What readers thought.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_REVIEWS = Operation(
    "GET",
    "/books/{isbn}/reviews",
    parameters=(Parameter("isbn", "path", "isbn"), Parameter("min_stars", "query", "min_stars")),
)
ADD_REVIEW = Operation(
    "POST",
    "/books/{isbn}/reviews",
    parameters=(Parameter("isbn", "path", "isbn"),),
    body=Body(
        "application/json",
        (Field("stars", ("stars",)), Field("text", ("text",)), Field("reader", ("reader",))),
        required=True,
    ),
    security=(("apiKey",),),
)


async def list_reviews(api: Upstream, /, *, isbn: str, min_stars: int | Unset = UNSET) -> ToolResult:
    """Read the reviews of a book.

    GET /books/{isbn}/reviews

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
        min_stars: Only reviews with at least so many stars
    """
    return await api.send(LIST_REVIEWS, {"isbn": isbn, "min_stars": min_stars})


async def add_review(
    api: Upstream, /, *, isbn: str, stars: int, text: str, reader: str | Unset | None = UNSET
) -> ToolResult:
    """Write a review.

    POST /books/{isbn}/reviews

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
        stars: `stars` in the body.
        text: `text` in the body.
        reader: The name to sign with
    """
    return await api.send(ADD_REVIEW, {"isbn": isbn, "stars": stars, "text": text, "reader": reader})
