"""Generated tools: listed without loading their modules, loaded at the first call, one upstream for all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.server.generated.manifest import ManifestError
from tests.runtime.requirements import requirement
from tests.runtime.server.generated_package import loaded, use

API = """
made = []

def upstream():
    made.append(object())
    return made[-1]
"""

TOOLS = """
from mcpfactory_runtime import ToolError, ToolResult

async def get_book(api, /, *, book_id, fields=None):
    if book_id == 13:
        raise ToolError("no such book")
    return ToolResult("found", structured={"id": book_id, "api": id(api), "fields": fields})

async def other(api, /):
    return ToolResult("other", structured={"api": id(api)})
"""

SCHEMA = {
    "type": "object",
    "properties": {"book_id": {"type": "integer"}, "fields": {"type": "array", "items": {"type": "string"}}},
    "required": ["book_id"],
    "additionalProperties": False,
}

MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "server": {"name": "books", "version": "1", "title": "Books", "instructions": ""},
    "tools": [
        {"name": "get_book", "description": "One book", "inputSchema": SCHEMA, "handler": "books:get_book"},
        {"name": "other", "inputSchema": {"type": "object"}, "handler": "books:other"},
        {"name": "missing", "inputSchema": {"type": "object"}, "handler": "nowhere:nothing"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A `_generated` package with a name of its own for each test."""
    package = tmp_path / f"books_{abs(hash(request.node.name))}"
    generated = package / "_generated"
    (generated / "tools").mkdir(parents=True)
    for place in (package, generated, generated / "tools"):
        (place / "__init__.py").touch()
    (generated / "api.py").write_text(API)
    (generated / "tools" / "books.py").write_text(TOOLS)
    (generated / "manifest.json").write_text(json.dumps(MANIFEST))
    monkeypatch.syspath_prepend(tmp_path)
    return generated


def test_tools_are_listed_as_the_manifest_says_and_nothing_is_loaded(folder: Path) -> None:
    server = Server("books")
    assert server.mount_manifest(folder) == 3
    tools = use(server, lambda client: client.list_tools())
    assert tools[0] == {"name": "get_book", "description": "One book", "inputSchema": SCHEMA}
    assert "handler" not in json.dumps(tools)
    assert loaded(folder) == set()


@pytest.mark.parametrize(
    ("environ", "notice"),
    [
        ({}, ""),
        ({"BOOKS_UPLOADS_BASE_URL": "http://u"}, ""),
        ({"BOOKS_BASE_URL": "http://s", "BOOKS_UPLOADS_BASE_URL": "http://u"}, ""),
        (
            {"BOOKS_BASE_URL": "http://s"},
            "warning: BOOKS_BASE_URL does not move operations at https://uploads.test: they still use that address; "
            "set BOOKS_UPLOADS_BASE_URL to move them\n",
        ),
    ],
)
def test_a_server_says_at_its_start_which_addresses_were_not_moved(
    folder: Path,
    environ: dict[str, str],
    notice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    addresses = {"prefix": "BOOKS", "base_url": "https://api.test", "servers": {"uploads": "https://uploads.test"}}
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "addresses": addresses}))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    server = Server("books")
    server.mount_manifest(folder)
    use(server, lambda client: client.list_tools())
    assert capsys.readouterr().err == notice
    assert loaded(folder) == set()


def test_the_first_call_loads_the_module_and_all_tools_share_the_upstream(folder: Path) -> None:
    server = Server("books")
    server.mount_manifest(folder)

    async def task(client: Client) -> list[Any]:
        first = await client.call_tool("get_book", {"book_id": 1, "fields": ["title"]})
        return [first, await client.call_tool("other"), await client.call_tool("get_book", {"book_id": 2})]

    results = [result["structuredContent"] for result in use(server, task)]
    assert (results[0]["id"], results[0]["fields"], results[2]["fields"]) == (1, ["title"], None)
    assert len({result["api"] for result in results}) == 1
    assert f"{folder.parent.name}._generated.tools.books" in loaded(folder)
    assert len(sys.modules[f"{folder.parent.name}._generated.api"].made) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("get_book", {}, "book_id"),
        ("get_book", {"book_id": "x"}, "book_id"),
        ("get_book", {"book_id": 1, "colour": "red"}, "colour"),
        ("get_book", {"book_id": 13}, "no such book"),
        ("missing", {}, "internal error"),
    ],
)
def test_wrong_arguments_and_failures_are_results_that_the_model_reads(
    folder: Path, tool: str, arguments: dict[str, Any], text: str
) -> None:
    server = Server("books")
    server.mount_manifest(folder)
    result = use(server, lambda client: client.call_tool(tool, arguments))
    assert result["isError"] is True
    assert text in result["content"][0]["text"]


@requirement("json-schema.other-dialect", "json-schema.unresolved")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$schema": "https://example.com/mine", "type": "object"}, "dialect 'https://example.com/mine'"),
        ({"type": "object", "properties": {"book_id": {"$ref": "#/$defs/nothing"}}}, "'#/$defs/nothing'"),
    ],
    ids=["dialect", "reference"],
)
def test_a_tool_whose_schema_cannot_be_used_is_refused_with_the_reason_and_the_others_work(
    folder: Path, schema: Any, told: str
) -> None:
    one, *others = MANIFEST["tools"]
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "tools": [{**one, "inputSchema": schema}, *others]}))
    server = Server("books")
    server.mount_manifest(folder)

    async def task(client: Client) -> Any:
        for _ in range(2):
            with pytest.raises(McpError) as refused:
                await client.call_tool("get_book", {"book_id": 1})
            assert refused.value.code == INTERNAL_ERROR
            assert told in refused.value.message
        return await client.call_tool("other")

    assert "isError" not in use(server, task)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"manifest": 99}'])
def test_a_missing_or_damaged_manifest_is_named_with_what_to_do(folder: Path, content: str | None) -> None:
    path = folder / "manifest.json"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(ManifestError, match="hint:") as refused:
        Server("books").mount_manifest(folder)
    assert str(path) in str(refused.value)
