"""Decisions about tools in mcpfactory.toml: what the model sees, what the API gets, and what has no effect."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from mcpfactory_codegen.servers.config import read_config
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.update import update_server
from mcpfactory_codegen.settings import SettingsError
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import StubUpstream
from tests.codegen.execution.documents import written
from tests.codegen.update.edits import API

DECISIONS = """
[tools.list_books]
rename = "find_books"
title = "Find books"
description = "Find books by author."

[tools.list_books.arguments.limit]
hide = true
default = 20

[tools.list_books.arguments.author]
rename = "writers"
description = "Who wrote them."
default = ["Woolf"]

[tools.get_book.arguments.bookId]
default = 7

[tools.add_book]
hide = true
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return create_server(tmp_path, source=written(tmp_path), name="bookshop").path


def decide(server: Path, text: str) -> None:
    config = server / "mcpfactory.toml"
    config.write_text(config.read_text("utf-8") + text, "utf-8")


def tools(server: Path) -> dict[str, Any]:
    manifest = json.loads((server / "src/bookshop_mcp/_generated/manifest.json").read_bytes())
    return {tool["name"]: tool for tool in manifest["tools"]}


def test_the_model_sees_what_was_decided(server: Path) -> None:
    decide(server, DECISIONS)
    made = regenerate(server)
    assert made.problems == ()
    shown = tools(server)
    assert set(shown) == {"find_books", "get_book", "delete_orders"}
    found = shown["find_books"]
    assert (found["title"], found["description"]) == ("Find books", "Find books by author.")
    assert found["inputSchema"]["properties"] == {
        "writers": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Who wrote them.",
            "default": ["Woolf"],
        }
    }
    assert shown["get_book"]["inputSchema"]["properties"]["bookId"]["default"] == 7
    assert "required" not in shown["get_book"]["inputSchema"]


def test_decisions_survive_whatever_is_made_again(server: Path, tmp_path: Path) -> None:
    decide(server, DECISIONS)
    regenerate(server)
    first = tools(server)
    assert update_server(server).problems == ()
    regenerate(server)
    assert update_server(server, source=API["an operation more"].write(tmp_path)).problems == ()
    assert {name: tool for name, tool in tools(server).items() if name in first} == first
    config = server / "mcpfactory.toml"
    config.write_text(config.read_text("utf-8").replace(DECISIONS, ""), "utf-8")
    regenerate(server)
    assert set(tools(server)) == {"list_books", "add_book", "get_book", "delete_orders", "list_readers"}


def test_defaults_and_hidden_values_are_sent(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(server, DECISIONS)
    regenerate(server)
    monkeypatch.syspath_prepend(str(server / "src"))
    monkeypatch.setenv("MCPF_BOOKSHOP_API_KEY", "key")
    expected = {"method": "GET", "path": "/books"}
    answer = {"status": 200, "content_type": "application/json", "body": []}
    stubbed = {"tool": "find_books", "arguments": {}, "request": expected, "response": answer}

    async def sent() -> list[str]:
        module = importlib.import_module("bookshop_mcp.server")
        api = importlib.import_module("bookshop_mcp._generated.api")
        async with StubUpstream([stubbed]) as stub, api.upstream():
            monkeypatch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
            async with connect(module.server) as client:
                await client.call_tool("find_books", {})
                await client.call_tool("find_books", {"writers": ["Mann"]})
            return [request.query for request in stub.requests]

    try:
        first, second = map(parse_qsl, asyncio.run(sent()))
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "bookshop_mcp"]:
            del sys.modules[name]
    assert sorted(first) == [("author", "Woolf"), ("limit", "20")]
    assert sorted(second) == [("author", "Mann"), ("limit", "20")]


def test_the_servers_own_tests_pass_with_decisions(server: Path) -> None:
    decide(server, DECISIONS)
    update_server(server)
    cases = json.loads((server / "tests/_generated/cases.json").read_bytes())["cases"]
    assert {case["tool"]: case["arguments"] for case in cases} == {
        "find_books": {},
        "get_book": {},
        "delete_orders": {},
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=server, env={"PYTHONPATH": "src", "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


WITHOUT_EFFECT = [
    ("a tool that is not there", "[tools.nope]\nhide = true", "curation-unknown", "tools.nope"),
    ("an argument that is not there", "[tools.get_book.arguments.x]\nhide = true", "curation-unknown", "tools.get_book.arguments.x"),
    ("a name that a tool has", '[tools.get_book]\nrename = "list_books"', "curation-name", "tools.get_book"),
    ("a name that no tool may have", '[tools.get_book]\nrename = "get book"', "curation-name", "tools.get_book"),
    ("a name that an argument has", '[tools.list_books.arguments.limit]\nrename = "author"', "curation-name", "tools.list_books.arguments.limit"),
    ("a name that no argument may have", '[tools.list_books.arguments.limit]\nrename = "class"', "curation-name", "tools.list_books.arguments.limit"),
    ("a default of the wrong type", '[tools.list_books.arguments.limit]\ndefault = "many"', "curation-default", "tools.list_books.arguments.limit"),
    ("a default that is too large", "[tools.list_books.arguments.limit]\ndefault = 51", "curation-default", "tools.list_books.arguments.limit"),
    ("a required argument hidden without default", "[tools.get_book.arguments.bookId]\nhide = true", "curation-default", "tools.get_book.arguments.bookId"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "where"), [row[1:] for row in WITHOUT_EFFECT], ids=[row[0] for row in WITHOUT_EFFECT]
)
def test_what_has_no_effect_is_a_problem_and_changes_nothing(server: Path, text: str, code: str, where: str) -> None:
    before = tools(server)
    decide(server, f"\n{text}\n")
    (problem,) = regenerate(server).problems
    assert (problem.code, problem.pointer, bool(problem.hint)) == (code, where, True)
    assert tools(server) == before


@pytest.mark.parametrize(
    "text",
    ["[tools.a]\nrenmae = 'x'", "[tools.a]\nhide = 1", "[tools]\na = 1", "[tools.a.arguments.b]\ndefault = 2026-01-01",
     "[tools.a.arguments.b]\ndefault = inf"],
)  # fmt: skip
def test_what_cannot_be_a_decision_is_refused(server: Path, text: str) -> None:
    decide(server, f"\n{text}\n")
    with pytest.raises(SettingsError) as caught:
        read_config(server)
    assert "tools" in str(caught.value)
    assert caught.value.hint
