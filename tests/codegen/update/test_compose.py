"""What a person adds to a generated server: one argument for several, fixed values, hooks, tools made of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import regenerate
from tests.codegen.execution.documents import document

OWN = '''
from mcpfactory_runtime import Context, ToolCall, ToolError, ToolResult


@server.before("list_books")
def few_at_a_time(call: ToolCall) -> None:
    if call.arguments.get("author") == ["nobody"]:
        raise ToolError("Nobody wrote nothing.")
    call.arguments["limit"] = 2


@server.before()
async def count(call: ToolCall) -> None:
    call.context.server.calls = [*getattr(call.context.server, "calls", []), call.name]


@server.after("get_book")
async def shout(call: ToolCall, result: ToolResult) -> ToolResult:
    assert isinstance(result.structured, dict)
    return ToolResult("loud", structured={**result.structured, "title": str(result.structured["title"]).upper()})


@server.tool
async def first_book(author: str, ctx: Context) -> dict[str, str]:
    """The first book of an author, in capitals."""
    found = await ctx.call("list_books", author=[author])
    book = await ctx.call("get_book", bookId=found["result"][0]["limit"])
    return {"title": book["title"]}
'''


def add(server: Path, path: str, text: str) -> None:
    (server / path).write_text((server / path).read_text("utf-8") + text, "utf-8")


Use = Callable[..., tuple[list[dict[str, Any]], list[str], Any]]
BOOK = {"title": "Orlando", "limit": 7}


def test_hooks_change_refuse_and_answer(server: Path, use: Use) -> None:
    add(server, "src/bookshop_mcp/server.py", OWN)
    (found, refused, book), requests, _ = use(
        ("list_books", {"limit": 50}), ("list_books", {"author": ["nobody"]}), ("get_book", {"bookId": 7})
    )
    assert found["structuredContent"] == {"result": [BOOK]}
    assert (refused["isError"], refused["content"][0]["text"]) == (True, "Nobody wrote nothing.")
    assert (book["content"][0]["text"], book["structuredContent"]["title"]) == ("loud", "ORLANDO")
    assert requests == ["/books?limit=2", "/books/7?"]


def test_a_tool_is_made_of_others_with_their_hooks(server: Path, use: Use) -> None:
    add(server, "src/bookshop_mcp/server.py", OWN)
    (result, missing), requests, running = use(
        ("first_book", {"author": "Woolf"}), ("first_book", {"author": "nobody"})
    )
    assert result["structuredContent"] == {"title": "ORLANDO"}
    assert requests == ["/books?limit=2&author=Woolf", "/books/7?"]
    assert running.calls == ["list_books", "get_book"]
    assert (missing["isError"], missing["content"][0]["text"]) == (True, "Nobody wrote nothing.")


def test_a_hook_for_a_tool_that_is_not_there_is_told_at_the_start(server: Path, use: Use) -> None:
    add(server, "src/bookshop_mcp/server.py", '\n\n@server.before("list_boks")\ndef one(call: object) -> None: ...\n')
    with pytest.raises(ValueError, match="list_boks"):
        use()


# --- arguments ---


@pytest.fixture
def map_server(server: Path) -> Path:
    data = document()
    names = {"lat": "number", "lon": "number", "limit": "integer", "org": "string", "owner": "string"}
    data["paths"]["/books"]["get"]["parameters"] = [
        {"name": name, "in": "query", "required": name == "lat", "schema": {"type": kind}}
        for name, kind in names.items()
    ]
    (server / "api/openapi.json").write_text(json.dumps(data), "utf-8")
    return server


MERGED = """
[tools.list_books.arguments.limit]
fix = 5

[tools.list_books.arguments.org]
rename = "organisation"

[tools.list_books.merge.place]
arguments = ["lat", "lon"]
separator = ","
description = "Where: latitude, longitude."

[tools.list_books.merge.account]
arguments = ["org", "owner"]
"""


def test_one_argument_stands_for_several_and_a_fixed_one_is_not_seen(map_server: Path, use: Use) -> None:
    add(map_server, "mcpfactory.toml", MERGED)
    assert regenerate(map_server).problems == ()
    manifest = json.loads((map_server / "src/bookshop_mcp/_generated/manifest.json").read_bytes())
    schema = next(tool for tool in manifest["tools"] if tool["name"] == "list_books")["inputSchema"]
    assert schema["properties"] == {
        "place": {"type": "string", "description": "Where: latitude, longitude."},
        "account": {"type": "string"},
    }
    assert schema["required"] == ["place"]
    results, requests, _ = use(
        ("list_books", {"place": "52.5, 13.4", "account": "me"}),
        ("list_books", {"place": "52.5,13.4"}),
        ("list_books", {"place": "52.5"}),
        ("list_books", {"place": "north,13"}),
    )
    assert requests == ["/books?lat=52.5&lon=13.4&limit=5&org=me&owner=me", "/books?lat=52.5&lon=13.4&limit=5"]
    assert [result.get("isError", False) for result in results] == [False, False, True, True]
    assert "2 parts are needed" in results[2]["content"][0]["text"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[tools.list_books.merge.x]\narguments = ["lat", "gone"]', "curation-unknown"),
        ('[tools.list_books.merge.owner]\narguments = ["lat", "lon"]', "curation-name"),
        ('[tools.list_books.merge."no name"]\narguments = ["lat", "lon"]', "curation-name"),
        ('[tools.list_books.merge.x]\narguments = ["lat", "lat"]', "curation-unknown"),
        ('[tools.list_books.arguments.limit]\nfix = "many"', "curation-default"),
    ],
)
def test_what_cannot_be_merged_or_fixed_is_told(map_server: Path, text: str, code: str) -> None:
    add(map_server, "mcpfactory.toml", f"\n{text}\n")
    assert [problem.code for problem in regenerate(map_server).problems] == [code]
