"""A generated package with a few tools, for tests of tool lists."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.testing import connect

API = """
def upstream():
    return "the API"
"""

TOOLS = """
from mcpfactory_runtime import ToolError, ToolResult

async def get_book(api, /, *, book_id, fields=None):
    if book_id == 13:
        raise ToolError("no such book")
    return ToolResult("found", structured={"id": book_id, "fields": fields}, meta={"from": api})

async def anything(api, /, **given):
    return ToolResult("done", structured={"given": given})
"""

_ID = {"type": "object", "properties": {"book_id": {"type": "integer"}}, "required": ["book_id"], "additionalProperties": False}  # fmt: skip
_READS = {"readOnlyHint": True, "openWorldHint": True}
_WRITES = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}
_ENDS = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

_packages = count()


def row(name: str, operation: str, title: str, hints: Any = None, handler: str = "books:anything", **more: Any) -> Any:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    fields = {"name": name, "title": title, "description": f"{title}.", "inputSchema": schema}
    return {**fields, "annotations": hints or _READS, "handler": handler, "operation": operation, **more}


BOOKS: list[Any] = [
    row("get_book", "GET /books/{book_id}", "Look up one book", handler="books:get_book", inputSchema=_ID),
    row("list_books", "GET /books", "List books"),
    row("create_book", "POST /books", "Add a book to the shelf", _WRITES),
    row("delete_book", "DELETE /books/{book_id}", "Throw a book away", _ENDS, inputSchema=_ID),
    row("list_orders", "GET /orders", "List orders", handler="orders:anything"),
]


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, tools: list[Any] | None = None, **manifest: Any) -> Path:
    """Write a `_generated` folder in a new import package; `manifest` extends its manifest."""
    name = f"shelf_{next(_packages)}_mcp"
    generated = folder / name / "_generated"
    (generated / "tools").mkdir(parents=True)
    for place in (generated.parent, generated, generated / "tools"):
        (place / "__init__.py").touch()
    (generated / "api.py").write_text(API)
    for module in ("books", "orders"):
        (generated / "tools" / f"{module}.py").write_text(TOOLS)
    told = {"manifest": 1, "server": {"title": "Bookshop"}, **manifest, "tools": BOOKS if tools is None else tools}
    (generated / "manifest.json").write_text(json.dumps(told))
    monkeypatch.syspath_prepend(folder)
    return generated


def use(server: Server, task: Any, **options: Any) -> Any:
    """Return the result of a task that gets a client of the server."""

    async def run() -> Any:
        async with connect(server, **options) as client:
            return await task(client)

    return asyncio.run(run())


def listed(server: Server) -> list[str]:
    """Return the names in tools/list."""
    return [tool["name"] for tool in use(server, lambda client: client.list_tools())]


def called(server: Server, tool: str, **arguments: Any) -> Any:
    """Return the result of one call."""
    return use(server, lambda client: client.call_tool(tool, arguments))


def said(result: Any) -> str:
    """Return the text of a result."""
    return str(result["content"][0]["text"])


def loaded(folder: Path) -> set[str]:
    """Return the imported modules of the package."""
    return {name for name in sys.modules if name.startswith(folder.parent.name)}
