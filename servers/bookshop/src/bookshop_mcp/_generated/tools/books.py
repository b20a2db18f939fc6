"""The catalogue.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_BOOKS = Operation(
    "GET",
    "/books",
    parameters=(
        Parameter("q", "query", "q"),
        Parameter("genre", "query", "genre"),
        Parameter("max_price", "query", "max_price"),
        Parameter("in_stock", "query", "in_stock"),
        Parameter("sort", "query", "sort"),
        Parameter("limit", "query", "limit"),
    ),
)
ADD_BOOK = Operation(
    "POST",
    "/books",
    body=Body(
        "application/json",
        (
            Field("isbn", ("isbn",)),
            Field("title", ("title",)),
            Field("author", ("author",)),
            Field("genre", ("genre",)),
            Field("price", ("price",)),
            Field("stock", ("stock",)),
        ),
        required=True,
    ),
    security=(("apiKey",),),
)
GET_BOOK = Operation("GET", "/books/{isbn}", parameters=(Parameter("isbn", "path", "isbn"),))
CHANGE_BOOK = Operation(
    "PATCH",
    "/books/{isbn}",
    parameters=(Parameter("isbn", "path", "isbn"),),
    body=Body("application/json", (Field("price", ("price",)), Field("stock", ("stock",))), required=True),
    security=(("apiKey",),),
)
REMOVE_BOOK = Operation(
    "DELETE", "/books/{isbn}", parameters=(Parameter("isbn", "path", "isbn"),), security=(("apiKey",),)
)
GET_STOCK = Operation("GET", "/stock", parameters=(Parameter("isbn", "query", "isbn", style="form", explode=False),))


async def list_books(
    api: Upstream,
    /,
    *,
    q: str | Unset = UNSET,
    genre: list[Literal["novel", "crime", "science-fiction", "poetry", "science"]] | Unset = UNSET,
    max_price: float | Unset = UNSET,
    in_stock: bool | Unset = UNSET,
    sort: Literal["rating", "price", "title"] | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ToolResult:
    """Find books.

    GET /books

    Args:
        api: the connection that the tools share.
        q: Words that must appear in the title or the author's name
        genre: Only these genres
        max_price: Highest price in euros
        in_stock: Only books that can be sent today
        sort: `sort` in the query.
        limit: At most so many books
    """
    return await api.send(
        LIST_BOOKS, {"q": q, "genre": genre, "max_price": max_price, "in_stock": in_stock, "sort": sort, "limit": limit}
    )


async def add_book(
    api: Upstream,
    /,
    *,
    isbn: str,
    title: str,
    author: str,
    genre: Literal["novel", "crime", "science-fiction", "poetry", "science"],
    price: float,
    stock: int | Unset = UNSET,
) -> ToolResult:
    """Add a book to the catalogue.

    POST /books

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
        title: `title` in the body.
        author: `author` in the body.
        genre: `genre` in the body.
        price: Price in euros
        stock: Copies in the shop
    """
    return await api.send(
        ADD_BOOK, {"isbn": isbn, "title": title, "author": author, "genre": genre, "price": price, "stock": stock}
    )


async def get_book(api: Upstream, /, *, isbn: str) -> ToolResult:
    """Get one book.

    GET /books/{isbn}

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
    """
    return await api.send(GET_BOOK, {"isbn": isbn})


async def change_book(
    api: Upstream, /, *, isbn: str, price: float | Unset = UNSET, stock: int | Unset = UNSET
) -> ToolResult:
    """Change price or stock of a book.

    PATCH /books/{isbn}

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
        price: Price in euros
        stock: Copies in the shop
    """
    return await api.send(CHANGE_BOOK, {"isbn": isbn, "price": price, "stock": stock})


async def remove_book(api: Upstream, /, *, isbn: str) -> ToolResult:
    """Take a book out of the catalogue.

    DELETE /books/{isbn}

    Args:
        api: the connection that the tools share.
        isbn: ISBN-13 without dashes
    """
    return await api.send(REMOVE_BOOK, {"isbn": isbn})


async def get_stock(api: Upstream, /, *, isbn: list[str]) -> ToolResult:
    """Ask how many copies of some books are there.

    GET /stock

    Args:
        api: the connection that the tools share.
        isbn: The books asked about
    """
    return await api.send(GET_STOCK, {"isbn": isbn})
