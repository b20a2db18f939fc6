"""Bookshop service: a small HTTP API that implements the example document.

Run it with `python service.py [--port 8642]`; port 0 selects a free port. The first line on stdout is the base URL.
Books are kept in memory.
"""

from __future__ import annotations

import argparse
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEY = "bookworm"
GENRES = ("novel", "crime", "science-fiction", "poetry", "science")


@dataclass
class Book:
    """A book of the catalog with its reviews."""

    isbn: str
    title: str
    author: str
    genre: str
    price: float
    stock: int = 0
    reviews: list[dict[str, Any]] = field(default_factory=list)

    def public(self) -> dict[str, Any]:
        """Return the book in its API form."""
        shown = asdict(self)
        stars = [review["stars"] for review in shown.pop("reviews")]
        return {**shown, "rating": round(sum(stars) / len(stars), 1) if stars else None}


@dataclass
class Shop:
    """State of the service."""

    books: dict[str, Book]
    orders: dict[int, dict[str, Any]] = field(default_factory=dict)
    orders_by_key: dict[str, int] = field(default_factory=dict)

    def book(self, isbn: str) -> Book:
        """Return a book, or raise HTTP 404."""
        if isbn not in self.books:
            raise HTTPException(404, f"no book has the ISBN {isbn}")
        return self.books[isbn]

    def order(self, order_id: int) -> dict[str, Any]:
        """Return an order, or raise HTTP 404."""
        if order_id not in self.orders:
            raise HTTPException(404, f"there is no order {order_id}")
        return self.orders[order_id]


def stocked() -> Shop:
    """Return a shop with a few books."""
    rows = [
        Book("9780141439518", "Pride and Prejudice", "Jane Austen", "novel", 7.5, 4),
        Book("9780140449136", "Crime and Punishment", "Fyodor Dostoevsky", "novel", 9.9, 2),
        Book("9780062073488", "And Then There Were None", "Agatha Christie", "crime", 8.2, 7),
        Book("9780441013593", "Dune", "Frank Herbert", "science-fiction", 10.5, 0),
        Book("9780141182674", "On the Road", "Jack Kerouac", "novel", 9.0, 1),
        Book("9780553380163", "A Brief History of Time", "Stephen Hawking", "science", 12.0, 3),
    ]
    shop = Shop({book.isbn: book for book in rows})
    shop.books["9780441013593"].reviews.append({"id": 1, "stars": 5, "text": "The spice must flow.", "reader": "Ana"})
    shop.books["9780141439518"].reviews.append({"id": 2, "stars": 4, "text": "Still sharp.", "reader": None})
    return shop


def needs_key(request: Request) -> None:
    """Raise HTTP 401 unless the request has the API key."""
    if request.headers.get("x-api-key") != KEY:
        raise HTTPException(401, "send the API key in the header X-Api-Key")


async def body(request: Request, *required: str) -> dict[str, Any]:
    """Return the JSON object of a request; raise HTTP 400 if it is invalid or lacks a required field."""
    try:
        data = await request.json()
    except ValueError:
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(data, dict):
        raise HTTPException(400, "the body is not a JSON object")
    if missing := [name for name in required if name not in data]:
        raise HTTPException(400, f"missing: {', '.join(missing)}")
    return data


def shop_of(request: Request) -> Shop:
    """Return the shop of the application."""
    shop: Shop = request.app.state.shop
    return shop


async def list_books(request: Request) -> Response:
    query = request.query_params
    words, genres = query.get("q", "").lower().split(), query.getlist("genre")
    if unknown := set(genres) - set(GENRES):
        raise HTTPException(400, f"unknown genre: {', '.join(sorted(unknown))}")
    found = [
        book.public()
        for book in shop_of(request).books.values()
        if all(word in f"{book.title} {book.author}".lower() for word in words)
        and (not genres or book.genre in genres)
        and book.price <= float(query.get("max_price", "inf"))
        and (query.get("in_stock") != "true" or book.stock > 0)
    ]
    orders = {"rating": lambda b: -(b["rating"] or 0), "price": lambda b: b["price"], "title": lambda b: b["title"]}
    found.sort(key=orders[query.get("sort", "rating")])
    return JSONResponse({"books": found[: int(query.get("limit", "10"))], "total": len(found)})


async def add_book(request: Request) -> Response:
    needs_key(request)
    data = await body(request, "isbn", "title", "author", "genre", "price")
    shop = shop_of(request)
    if data["isbn"] in shop.books:
        raise HTTPException(409, f"the book {data['isbn']} is there already")
    book = Book(
        **{name: data[name] for name in ("isbn", "title", "author", "genre", "price")}, stock=data.get("stock", 0)
    )
    shop.books[book.isbn] = book
    return JSONResponse(book.public(), 201)


async def get_book(request: Request) -> Response:
    return JSONResponse(shop_of(request).book(request.path_params["isbn"]).public())


async def change_book(request: Request) -> Response:
    needs_key(request)
    book, data = shop_of(request).book(request.path_params["isbn"]), await body(request)
    book.price, book.stock = data.get("price", book.price), data.get("stock", book.stock)
    return JSONResponse(book.public())


async def remove_book(request: Request) -> Response:
    needs_key(request)
    shop = shop_of(request)
    del shop.books[shop.book(request.path_params["isbn"]).isbn]
    return Response(status_code=204)


async def list_reviews(request: Request) -> Response:
    least = int(request.query_params.get("min_stars", "1"))
    reviews = shop_of(request).book(request.path_params["isbn"]).reviews
    return JSONResponse([review for review in reversed(reviews) if review["stars"] >= least])


async def add_review(request: Request) -> Response:
    needs_key(request)
    shop, data = shop_of(request), await body(request, "stars", "text")
    number = 1 + max((review["id"] for book in shop.books.values() for review in book.reviews), default=0)
    review = {"id": number, "stars": data["stars"], "text": data["text"], "reader": data.get("reader")}
    shop.book(request.path_params["isbn"]).reviews.append(review)
    return JSONResponse(review, 201)


async def get_stock(request: Request) -> Response:
    asked, books = request.query_params.get("isbn", "").split(","), shop_of(request).books
    return JSONResponse({isbn: books[isbn].stock for isbn in asked if isbn in books})


async def place_order(request: Request) -> Response:
    needs_key(request)
    shop, data = shop_of(request), await body(request, "lines", "address")
    key = request.headers.get("idempotency-key", "")
    if key in shop.orders_by_key:
        return JSONResponse(shop.orders[shop.orders_by_key[key]], 201)
    lines = [(shop.book(line["isbn"]), line.get("copies", 1)) for line in data["lines"]]
    if short := [book.title for book, copies in lines if book.stock < copies]:
        raise HTTPException(409, f"not enough copies of: {', '.join(short)}")
    for book, copies in lines:
        book.stock -= copies
    number = len(shop.orders) + 1
    shop.orders[number] = {
        "id": number,
        "status": "open",
        "lines": [{"isbn": book.isbn, "copies": copies} for book, copies in lines],
        "total": round(sum(book.price * copies for book, copies in lines), 2),
        "address": data["address"],
    }
    if key:
        shop.orders_by_key[key] = number
    return JSONResponse(shop.orders[number], 201)


async def get_order(request: Request) -> Response:
    needs_key(request)
    return JSONResponse(shop_of(request).order(request.path_params["order_id"]))


async def cancel_order(request: Request) -> Response:
    needs_key(request)
    shop = shop_of(request)
    order = shop.order(request.path_params["order_id"])
    if order["status"] != "open":
        raise HTTPException(409, f"order {order['id']} is {order['status']}")
    order["status"] = "cancelled"
    for line in order["lines"]:
        shop.book(line["isbn"]).stock += line["copies"]
    return JSONResponse(order)


async def problem(request: Request, error: Exception) -> Response:
    """Return an error as problem details (RFC 9457)."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "the bookshop made a mistake"
    title = {400: "Bad request", 401: "Key needed", 404: "Not found", 409: "Not possible now"}.get(status, "Refused")
    document = {"title": title, "status": status, "detail": detail}
    return JSONResponse(document, status, media_type="application/problem+json")


def bookshop() -> Starlette:
    """Return the service as an ASGI application."""
    app = Starlette(
        routes=[
            Route("/v1/books", list_books, methods=["GET"]),
            Route("/v1/books", add_book, methods=["POST"]),
            Route("/v1/books/{isbn}", get_book, methods=["GET"]),
            Route("/v1/books/{isbn}", change_book, methods=["PATCH"]),
            Route("/v1/books/{isbn}", remove_book, methods=["DELETE"]),
            Route("/v1/books/{isbn}/reviews", list_reviews, methods=["GET"]),
            Route("/v1/books/{isbn}/reviews", add_review, methods=["POST"]),
            Route("/v1/stock", get_stock, methods=["GET"]),
            Route("/v1/orders", place_order, methods=["POST"]),
            Route("/v1/orders/{order_id:int}", get_order, methods=["GET"]),
            Route("/v1/orders/{order_id:int}/cancel", cancel_order, methods=["POST"]),
        ],
        exception_handlers={HTTPException: problem},
    )
    app.state.shop = stocked()
    return app


def main() -> None:
    """Serve on loopback until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8642, help="0 takes a free port")
    wish = parser.parse_args().port
    listener = socket.create_server(("127.0.0.1", wish))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by accepted sockets
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    uvicorn.Server(uvicorn.Config(bookshop(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
