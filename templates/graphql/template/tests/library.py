"""GraphQL API for the tests: a library of books on loopback, executed by graphql-core."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync

SCHEMA = build_schema('''
"What can be asked."
type Query {
  "Books of the library, in pages."
  books("how many" first: Int = 2, after: String, author: ID): BookConnection!
  book(id: ID!): Book
  me: User
}
type Mutation { "Give a book another title." renameBook(id: ID!, title: String!): Book }
type BookConnection { nodes: [Book!]! edges: [BookEdge!]! pageInfo: PageInfo! }
type BookEdge { node: Book! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
"A work in print.\\u200b"
type Book implements Node { id: ID! title: String! isbn: String @deprecated(reason: "use id") author: Author price: Float genre: Genre }
type Author { id: ID! name: String! books: [Book!]! }
type User { name: String! }
interface Node { id: ID! }
enum Genre { NOVEL ESSAY PAMPHLET @deprecated(reason: "nobody prints them") }
input BookFilter { genre: Genre = NOVEL, words: [String!]! }
union Thing = Book | Author
''')


class Library:
    """The API; `asked` lists its requests, `faults` replace its responses: status, headers, body."""

    def __init__(self) -> None:
        author = {"id": "a1", "name": "Jane Austen"}
        self.books = [{"id": f"b{number}", "title": f"Book {number}", "author": author, "price": 6.5} for number in range(5)]
        author["books"] = self.books  # type: ignore[assignment] # a cycle, as in real APIs
        self.asked: list[dict[str, Any]] = []
        self.logins: list[str] = []
        self.faults: list[tuple[int, dict[str, str], bytes]] = []
        self.introspection = True
        library = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                library.asked.append(request)
                library.logins.append(self.headers["Authorization"] or self.headers["X-Api-Key"] or "")
                status, headers, body = library.faults.pop() if library.faults else library.answer(request)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Suppress the request log."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/graphql"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        """Stop the API."""
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Answer a request according to GraphQL over HTTP."""
        if "__schema" in request["query"] and not self.introspection:
            return self._json(400, {"errors": [{"message": "Introspection is disabled"}]})
        result = graphql_sync(SCHEMA, request["query"], self._roots(), variable_values=request["variables"])
        return self._json(200 if result.data is not None else 400, dict(result.formatted))

    def _json(self, status: int, data: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        return status, {"Content-Type": "application/graphql-response+json"}, json.dumps(data).encode()

    def _roots(self) -> dict[str, Any]:
        return {"books": self._books, "book": self._book, "me": self._me, "renameBook": self._rename}

    def _books(self, _info: Any, first: int, after: str | None = None, author: str | None = None) -> dict[str, Any]:
        begin = int(after or 0)
        nodes = self.books[begin : begin + first] if author in (None, "a1") else []
        more = begin + first < len(self.books)
        edges = [{"node": node} for node in nodes]
        return {"nodes": nodes, "edges": edges, "pageInfo": {"hasNextPage": more, "endCursor": str(begin + first)}}

    def _book(self, _info: Any, id: str) -> dict[str, Any] | None:
        return next((book for book in self.books if book["id"] == id), None)

    def _me(self, _info: Any) -> None:
        raise GraphQLError("Who are you?", extensions={"code": "UNAUTHENTICATED"})

    def _rename(self, _info: Any, id: str, title: str) -> dict[str, Any] | None:
        book = self._book(_info, id)
        if book is not None:
            book["title"] = title
        return book
