"""A small API document, and a function that writes it to a file."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

BOOKSHOP: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Bookshop API", "version": "1", "description": "Books to look up and to order."},
    "servers": [{"url": "https://bookshop.example/v1"}],
    "security": [{"apiKey": []}],
    "paths": {
        "/books": {
            "get": {
                "operationId": "listBooks",
                "summary": "List books",
                "tags": ["Books"],
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 50}},
                    {"name": "author", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
                "responses": {
                    "200": {
                        "description": "Books.",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Book"}}
                            }
                        },
                    }
                },
            },
            "post": {
                "operationId": "addBook",
                "tags": ["Books"],
                "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}},
                },
                "responses": {"201": {"description": "Made."}},
            },
        },
        "/books/{bookId}": {
            "get": {
                "operationId": "getBook",
                "tags": ["Books"],
                "parameters": [{"name": "bookId", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {
                    "200": {
                        "description": "A book.",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}},
                    }
                },
            }
        },
        "/orders": {
            "servers": [{"url": "https://orders.example/v1"}],
            "delete": {"summary": "Forget all orders", "tags": ["Orders"], "responses": {"204": {"description": ""}}},
        },
    },
    "components": {
        "schemas": {
            "Book": {
                "type": "object",
                "required": ["title"],
                "properties": {"title": {"type": "string"}, "limit": {"type": "integer"}},
            }
        },
        "securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
    },
}


WORKFLOW = """
[workflows.first_book]
title = "An author's first book"
description = "The first book of an author, and the titles of all."
optional = ["limit"]
result = { book = "$.book", of = "$.inputs.author", titles = "$.found[*].title", "costs" = "$$5" }

[workflows.first_book.inputs]
author = { type = "string", description = "A name." }
limit = { type = "integer" }

[[workflows.first_book.steps]]
id = "found"
tool = "list_books"
arguments = { author = ["$.inputs.author"], limit = "$.inputs.limit" }

[[workflows.first_book.steps]]
id = "book"
tool = "get_book"
arguments = { bookId = "$.found[0].limit" }
"""


def document(**changes: Any) -> dict[str, Any]:
    """Return the bookshop's document, with top-level members replaced."""
    return {**copy.deepcopy(BOOKSHOP), **changes}


def written(folder: Path, data: dict[str, Any] | None = None) -> Path:
    """Write the document to a file."""
    path = folder / "given.json"
    path.write_text(json.dumps(data if data is not None else BOOKSHOP), "utf-8")
    return path
