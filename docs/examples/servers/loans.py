"""A server with a database: lifespan, dependencies, middleware, authorization and tracing.

LOANS_DB=loans.db python loans.py --port 8000          # at http://127.0.0.1:8000/mcp
LOANS_DB=loans.db python loans.py --port 8000 --otel   # with spans to an OpenTelemetry collector
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Annotated, Any

from mcpfactory_runtime import Context, Depends, Server, ToolError, ToolRequest
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.server.middleware import Logging

server = Server("loans", version="1", instructions="Lends the books of a small library.")
server.add_middleware(Logging())  # one line of JSON on stderr for each request

_SCHEMA = """
CREATE TABLE IF NOT EXISTS books (title TEXT PRIMARY KEY, lent_to TEXT);
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, person TEXT NOT NULL, scope TEXT NOT NULL);
"""


def _file() -> str:
    return os.environ.get("LOANS_DB", "loans.db")


# -- the database ----------------------------------------------------------------------------------------------------


@server.lifespan
async def prepared(_: Server) -> AsyncIterator[None]:
    """Make the tables before anybody is served; once for each process."""
    with closing(sqlite3.connect(_file())) as database:
        database.executescript(_SCHEMA)
    yield


def transaction() -> Iterator[sqlite3.Connection]:
    """A connection for one call: committed when the call has succeeded, rolled back when it has not, closed in any case."""
    with closing(sqlite3.connect(_file(), check_same_thread=False)) as database, database:
        yield database


Database = Annotated[sqlite3.Connection, Depends(transaction)]


# -- who calls -------------------------------------------------------------------------------------------------------


def look_up(token: str) -> dict[str, Any] | None:
    """Return the claims of an API key; None for one that nobody has. Only its hash is stored."""
    with closing(sqlite3.connect(_file())) as database:
        row = database.execute(
            "SELECT person, scope FROM keys WHERE hash = ?", (hashlib.sha256(token.encode()).hexdigest(),)
        ).fetchone()
    return None if row is None else {"active": True, "sub": row[0], "scope": row[1], "aud": RESOURCE, "iss": ISSUER}


def person(ctx: Context) -> str:
    """Return the person who owns the API key."""
    assert ctx.principal is not None, "requests without a key are refused"
    return ctx.principal.subject


Person = Annotated[str, Depends(person)]
ISSUER = "https://library.example/keys"
RESOURCE = os.environ.get("LOANS_URL", "https://library.example/mcp")


# -- the tools -------------------------------------------------------------------------------------------------------


@server.tool(annotations={"readOnlyHint": True})
def list_books(database: Database) -> list[dict[str, str | None]]:
    """List all books, and who has them."""
    rows = database.execute("SELECT title, lent_to FROM books ORDER BY title")
    return [{"title": title, "lent_to": lent_to} for title, lent_to in rows]


@server.tool(scopes=("books:write",))
def add_book(title: str, database: Database) -> str:
    """Add a book."""
    database.execute("INSERT INTO books (title) VALUES (?) ON CONFLICT DO NOTHING", (title,))
    return title


@server.tool(annotations={"destructiveHint": False})
def borrow_book(title: str, database: Database, person: Person) -> str:
    """Borrow a book that nobody has."""
    done = database.execute("UPDATE books SET lent_to = ? WHERE title = ? AND lent_to IS NULL", (person, title))
    if not done.rowcount:
        raise ToolError(f"{title!r} is not here to be lent.")
    return f"{person} has {title}"


@server.tool_middleware("add_book", "borrow_book")
async def trimmed(call: ToolRequest, call_next: Any) -> dict[str, Any]:
    """Take titles without the spaces around them, which models like to add."""
    call.arguments = {**call.arguments, "title": str(call.arguments.get("title", "")).strip()}
    result: dict[str, Any] = await call_next(call)
    return result


@server.ready_check
def database_is_there() -> bool:
    """`/ready` says 503 while the database cannot be read."""
    return os.access(_file(), os.R_OK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--otel", action="store_true", help="send spans to an OpenTelemetry collector")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.otel:
        server.add_telemetry()
    auth = Authorization(issuer=ISSUER, resource=RESOURCE, verify=look_up, scopes_supported=("books:write",))
    server.run_http(options.host, options.port, auth=auth)


if __name__ == "__main__":
    main()
