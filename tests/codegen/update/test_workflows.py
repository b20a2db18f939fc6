"""Workflows in `mcpfactory.toml`: several operations as one tool, declared, generated, called, and kept by `update`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import regenerate
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.update import update_server
from mcpfactory_codegen.settings import SettingsError
from tests.codegen.execution.documents import WORKFLOW, document

Use = Callable[..., tuple[list[dict[str, Any]], list[str], Any]]

BODY = """    found = await step(ctx, "list_books", author=[author], limit=limit)
    book = await step(ctx, "get_book", bookId=pick(found, 0, "limit"))
    return {"book": book, "of": author, "titles": pick(found, EACH, "title"), "costs": "$5"}
"""


def declare(server: Path, text: str = WORKFLOW) -> None:
    path = server / "mcpfactory.toml"
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def manifest(server: Path) -> dict[str, Any]:
    tools = json.loads((server / "src/bookshop_mcp/_generated/manifest.json").read_bytes())["tools"]
    return {tool["name"]: tool for tool in tools}


def test_a_workflow_is_a_tool_whose_code_reads_like_its_steps(server: Path, use: Use) -> None:
    declare(server)
    assert regenerate(server).problems == ()
    assert BODY in (server / "src/bookshop_mcp/_generated/workflows.py").read_text("utf-8")
    (whole, few, none), requests, _ = use(
        ("first_book", {"author": "Woolf"}), ("first_book", {"author": "Woolf", "limit": 3}), ("first_book", {})
    )
    book = {"title": "Orlando", "limit": 7}
    assert whole["structuredContent"] == {"book": book, "of": "Woolf", "titles": ["Orlando"], "costs": "$5"}
    assert few["structuredContent"] == whole["structuredContent"]
    assert requests == ["/books?author=Woolf", "/books/7?", "/books?limit=3&author=Woolf", "/books/7?"]
    assert (none["isError"], "author is required" in none["content"][0]["text"]) == (True, True)
    tool = manifest(server)["first_book"]
    assert tool["inputSchema"]["required"] == ["author"]
    assert tool["annotations"] == {"readOnlyHint": True, "openWorldHint": True}


def test_a_workflow_ends_where_an_answer_lacks_what_the_next_step_needs(server: Path, use: Use) -> None:
    declare(server)
    regenerate(server)
    empty = {"status": 200, "content_type": "application/json", "body": []}
    (result,), requests, _ = use(
        ("first_book", {"author": "nobody"}),
        cases=[{"tool": "list_books", "request": {"method": "GET", "path": "/books"}, "response": empty}],
    )
    assert (result["isError"], result["content"][0]["text"]) == (
        True,
        "The workflow stops here: the answer has no [0].",
    )
    assert requests == ["/books?author=nobody"]


def test_a_step_that_fails_is_named(server: Path, use: Use) -> None:
    declare(server)
    regenerate(server)
    gone = {"status": 404, "content_type": "application/json", "body": {"message": "no shelf"}}
    (result,), _, _ = use(
        ("first_book", {"author": "x"}),
        cases=[{"tool": "list_books", "request": {"method": "GET", "path": "/books"}, "response": gone}],
    )
    assert result["isError"]
    assert result["content"][0]["text"].startswith("list_books: ")


def test_what_the_person_wrote_is_in_the_profiles_that_the_person_chose(server: Path) -> None:
    declare(server, WORKFLOW + '\n[profiles.readers]\ninclude_operations = ["getBook"]\n')
    regenerate(server)
    data = json.loads((server / "src/bookshop_mcp/_generated/manifest.json").read_bytes())
    assert data["profiles"] == {"readers": ["get_book", "first_book"]}


def test_update_keeps_a_workflow_and_tells_when_the_api_no_longer_has_what_it_calls(
    server: Path, tmp_path: Path, use: Use
) -> None:
    declare(server)
    regenerate(server)
    before = (server / "mcpfactory.toml").read_text("utf-8")
    updated = update_server(server)
    assert (updated.changes, updated.problems, updated.conflicts) == ((), (), ())
    assert use(("first_book", {"author": "Woolf"}))[0][0]["structuredContent"]["of"] == "Woolf"
    data = document()
    del data["paths"]["/books/{bookId}"]
    source = tmp_path / "openapi.json"
    source.write_text(json.dumps(data), "utf-8")
    updated = update_server(server, source=source)
    assert [one.code for one in updated.problems] == ["workflow-invalid"]
    assert "'book' calls the unknown tool 'get_book'" in updated.problems[0].message
    assert {one.tool for one in updated.changes} == {"get_book", "first_book"}
    assert "first_book" not in manifest(server)
    assert (server / "mcpfactory.toml").read_text("utf-8") == before


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('tool = "get_book"', 'tool = "get_boook"', "unknown tool"),
        ("bookId =", "bookid =", "unknown argument"),
        ('bookId = "$.found[0].limit"', "", "required argument"),
        ("$.found[0].limit", "$.book.limit", "an earlier step"),
        ("$.found[0].limit", "$.found[?@.x>1]", "not supported"),
        ("$.found[0].limit", "$.inputs.name", "unknown input"),
        ('id = "book"', 'id = "found"', "unique"),
        ('id = "book"', 'id = "class"', "Python name"),
        ('"$.book"', '"$.books"', "an earlier step"),
        ("first_book", "list_books", "no tool has"),
        ("first_book", "step", "no tool has"),
        ('optional = ["limit"]', 'optional = ["x"]', "not an input"),
        ('{ type = "integer" }', '{ "$ref" = "#/x" }', "no references"),
    ],
)
def test_a_workflow_that_cannot_be_made_is_left_out_and_told(server: Path, old: str, new: str, told: str) -> None:
    assert old in WORKFLOW
    declare(server, WORKFLOW.replace(old, new))
    (problem,) = regenerate(server).problems
    assert problem.code == "workflow-invalid"
    assert told in problem.message
    assert not (server / "src/bookshop_mcp/_generated/workflows.py").exists()


@pytest.mark.parametrize(
    "text", ["[workflows.a]\nsteps = []", '[workflows.a]\ndescription = "d"\nsteps = [{id = "x"}]']
)
def test_what_is_no_workflow_at_all_is_refused(server: Path, text: str) -> None:
    declare(server, f"\n{text}\n")
    with pytest.raises((SettingsError, CreateError)) as raised:
        regenerate(server)
    assert "workflows.a" in str(raised.value)
