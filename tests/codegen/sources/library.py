"""A GraphQL API of books: its schema as text, its data, and a server on loopback that executes requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphql import GraphQLSchema, build_schema, graphql_sync

from tests import loopback_server

SDL = '''
"""Books to look up."""
schema { query: Root mutation: Change subscription: Feed }

type Root {
  "One book."
  book(id: ID!): Book
  books(filter: BookFilter, first: Int, after: String): BookConnection!
  search(text: String!): [Found!]!
  count: Int!
  old: Int @deprecated(reason: "Use count.")
  broken: Book
}
type Change {
  addBook(input: AddBook!): AddBookPayload
  setCover(id: ID!, file: Upload!): Book
}
type Feed { added: Book }
interface Named { name: String! }
type Author implements Named { name: String! born: Int books(first: Int!): [Book!]! favourite: Book }
type Book { id: ID! title: String! genre: Genre author: Author! secret(key: String!): String rating: Float fails: String }
type BookConnection { nodes: [Book] edges: [BookEdge] pageInfo: PageInfo! totalCount: Int! }
type BookEdge { cursor: String! node: Book }
type PageInfo { hasNextPage: Boolean! endCursor: String hasPreviousPage: Boolean! }
union Found = Book | Author
enum Genre {
  "True."
  FACT
  FICTION
}
input BookFilter { genre: Genre = FACT any: [BookFilter!] titles: [String!] }
input AddBook { title: String! genre: Genre clientMutationId: String }
type AddBookPayload { clientMutationId: String book: Book }
scalar Upload
'''

BOOK = {
    "__typename": "Book", "id": "1", "title": "Emma", "genre": "FICTION", "rating": 4.5,
    "author": {"__typename": "Author", "name": "Austen", "born": 1775},
}  # fmt: skip


class Library:
    """Values of the root types' fields, and the received requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.count = 1
        self.book = lambda info, id: BOOK if id == "1" else None  # noqa: A006 - the argument's name in the schema
        self.search = lambda info, text: [BOOK, BOOK["author"]]
        self.addBook = lambda info, input: {"book": {**BOOK, "title": input["title"]}}  # noqa: A006 - as above

    def books(self, _info: Any, **given: Any) -> dict[str, Any]:
        """Return a page; this API requires `first`."""
        assert "first" in given
        return {
            "nodes": [BOOK],
            "pageInfo": {"hasNextPage": True, "hasPreviousPage": False, "endCursor": "c1"},
            "totalCount": 2,
        }

    def broken(self, _info: Any) -> dict[str, Any]:
        """Return a book one of whose fields fails."""
        raise ValueError("the shelf is empty")


def schema() -> GraphQLSchema:
    """Return the schema as an object of the GraphQL library."""
    return build_schema(SDL)


@contextmanager
def serving(library: Library) -> Iterator[str]:
    """Serve the API; yield the URL of its endpoint."""

    class Endpoint(loopback_server.LoopbackHandler):
        def post(self) -> None:
            sent = json.loads(self.body())
            library.requests.append((self.path, sent))
            done = graphql_sync(schema(), sent["query"], library, variable_values=sent.get("variables"))
            self.answer(200, done.formatted, "application/graphql-response+json")

    with loopback_server.serving(Endpoint) as url:
        yield f"{url}/api/graphql"
