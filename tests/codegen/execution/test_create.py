"""From a document to a folder, and again: what is written, what is refused, and what stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.generation import CreateError
from tests.codegen.execution.documents import BOOKSHOP, document, written
from tests.system import contents


def test_a_document_becomes_a_folder_of_the_documented_layout(tmp_path: Path) -> None:
    created = create_server(tmp_path / "servers", source=written(tmp_path))
    assert (created.server, created.path) == ("bookshop", tmp_path / "servers" / "bookshop")
    assert (created.tools, created.operations, created.problems) == (4, 4, ())
    assert tuple(sorted(contents(created.path))) == (*sorted([*created.files, ".mcpfactory/lock.json"]),)
    assert set(created.files) == {
        ".mcpfactory/report.json",
        "README.md",
        "api/openapi.json",
        "mcpfactory.toml",
        "pyproject.toml",
        "src/bookshop_mcp/__init__.py",
        "src/bookshop_mcp/__main__.py",
        "src/bookshop_mcp/_generated/__init__.py",
        "src/bookshop_mcp/_generated/api.py",
        "src/bookshop_mcp/_generated/manifest.json",
        "src/bookshop_mcp/_generated/tools/__init__.py",
        "src/bookshop_mcp/_generated/tools/books.py",
        "src/bookshop_mcp/_generated/tools/orders.py",
        "src/bookshop_mcp/server.py",
        "tests/_generated/__init__.py",
        "tests/_generated/cases.json",
        "tests/_generated/test_tools.py",
        "tests/test_server.py",
    }
    assert (created.path / "api/openapi.json").read_bytes() == (tmp_path / "given.json").read_bytes()
    assert sorted(path.name for path in (tmp_path / "servers").iterdir()) == ["bookshop"]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    created = create_server(tmp_path / "servers", source=written(tmp_path), dry_run=True)
    assert "src/bookshop_mcp/server.py" in created.files
    assert not (tmp_path / "servers").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "source"),
        ({"source": "missing.json"}, "document"),
        ({"template": "no-such-template"}, "template"),
        ({"template": "minimal", "name": "No Good"}, "name"),
        ({"template": "minimal", "name": "../escape"}, "name"),
        ({"template": "minimal", "name": "taken"}, "exists"),
    ],
)
def test_what_cannot_be_made_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "servers" / "taken").mkdir(parents=True)
    with pytest.raises(CreateError) as raised:
        create_server(tmp_path / "servers", **arguments)
    assert raised.value.code == code
    assert raised.value.hint
    assert [path.name for path in (tmp_path / "servers").iterdir()] == ["taken"]


def test_strict_makes_nothing_of_a_document_with_problems(tmp_path: Path) -> None:
    data = document(webhooks={"bookSold": {"post": {"responses": {}}}})
    with pytest.raises(CreateError) as raised:
        create_server(tmp_path / "servers", source=written(tmp_path, data), strict=True)
    assert raised.value.code == "strict"
    assert not (tmp_path / "servers").exists()


def test_a_bad_operation_costs_that_operation(tmp_path: Path) -> None:
    data = document()
    data["paths"]["/broken"] = {"get": ["not an operation"]}
    created = create_server(tmp_path, source=written(tmp_path, data))
    assert (created.tools, created.operations) == (4, 5)
    assert [(one.method, one.path) for one in created.skipped] == [("GET", "/broken")]
    assert any(problem.pointer.startswith("/paths/~1broken") for problem in created.problems)


def test_regenerating_without_a_change_changes_no_byte(tmp_path: Path) -> None:
    created = create_server(tmp_path, source=written(tmp_path))
    before = contents(created.path)
    again = regenerate(created.path)
    assert contents(created.path) == before
    assert {step.action for step in again.steps} == {"same"}
    assert (again.server, again.tools, again.operations) == (created.server, created.tools, created.operations)


def test_regenerating_rewrites_what_the_machine_owns_and_nothing_else(tmp_path: Path) -> None:
    created = create_server(tmp_path, source=written(tmp_path))
    (created.path / "src/bookshop_mcp/server.py").write_text("# mine")
    (created.path / "src/bookshop_mcp/_generated/tools/books.py").write_text("# meddled with")
    data = document()
    del data["paths"]["/orders"]
    (created.path / "api/openapi.json").write_text(json.dumps(data))
    again = regenerate(created.path)
    assert (created.path / "src/bookshop_mcp/server.py").read_text() == "# mine"
    assert "GET_BOOK" in (created.path / "src/bookshop_mcp/_generated/tools/books.py").read_text()
    assert not (created.path / "src/bookshop_mcp/_generated/tools/orders.py").exists()
    (problem,) = again.problems
    assert (problem.code, "tools/books.py" in problem.message) == ("file-edited", True)


def test_a_tool_keeps_its_name_when_another_operation_would_claim_it(tmp_path: Path) -> None:
    created = create_server(tmp_path, source=written(tmp_path))
    data = document()
    data["paths"]["/magazines"] = {"get": {"operationId": "get-book", "responses": {}}}
    (created.path / "api/openapi.json").write_text(json.dumps(data))
    regenerate(created.path)
    report = json.loads((created.path / ".mcpfactory/report.json").read_bytes())
    named = {
        tool["operation"]["path"]: tool["name"] for tool in report["tools"] if tool["operation"]["method"] == "GET"
    }
    assert named["/books/{bookId}"] == "get_book"
    assert named["/magazines"] == "get_book_magazine"


@pytest.mark.parametrize(
    "content", [None, "[server", '[server]\nname = "a"\npackage = "a"\n[api]\ndocument = "gone.json"']
)
def test_a_folder_that_cannot_be_regenerated_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "mcpfactory.toml").write_text(content)
    before = contents(tmp_path)
    with pytest.raises(CreateError) as raised:
        regenerate(tmp_path)
    assert str(tmp_path) in str(raised.value)
    assert raised.value.hint
    assert contents(tmp_path) == before


def test_a_document_in_several_files_is_copied_with_them(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    (parts / "schemas").mkdir(parents=True)
    data = document()
    data["components"]["schemas"]["Book"] = {"$ref": "schemas/book.json"}
    (parts / "main.json").write_text(json.dumps(data))
    (parts / "schemas" / "book.json").write_text(json.dumps(BOOKSHOP["components"]["schemas"]["Book"]))
    created = create_server(tmp_path / "servers", source=parts / "main.json")
    assert {"api/main.json", "api/schemas/book.json"} <= set(created.files)
    assert created.problems == ()
    before = contents(created.path)
    regenerate(created.path)
    assert contents(created.path) == before
