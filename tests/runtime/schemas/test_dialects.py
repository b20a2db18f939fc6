"""Generated tools and tools of one's own in the dialects of clients with limits: what is listed, and that calls are what they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.schemas.client_dialects import DIALECTS, adapt_tool, shorten_names
from tests.runtime.server.generated_package import package, row, use

COMBINING = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"}
LONG = "create_a_book_on_the_shelf_that_is_nearest_to_the_door"
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "book": {"$ref": "#/$defs/Book", "description": "What to add."},
        "also": {"$ref": "#/$defs/Book"},
        "price": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/Money"}]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["book"],
    "additionalProperties": False,
    "$defs": {
        "Book": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "sequel": {"$ref": "#/$defs/Book"}},
            "required": ["title"],
        },
        "Money": {
            "allOf": [{"type": "object", "properties": {"amount": {"type": "integer"}}}, {"required": ["amount"]}]
        },
    },
}
SHELF = [row(LONG, "POST /books", "Add a book", inputSchema=SCHEMA), row("list_books", "GET /books", "List books")]
VALUES: list[Any] = [
    {"book": {"title": "a", "sequel": {"title": "b", "sequel": {"title": "c"}}}, "price": 5, "note": "x"},
    {"book": {"title": "a"}, "also": {"title": "b"}, "price": {"amount": 3}},
]


def parts(schema: Any, *, names: bool = False) -> Iterator[dict[str, Any]]:
    """All schemas in a schema, itself first."""
    if isinstance(schema, dict):
        if not names:
            yield schema
        for key, value in schema.items():
            if names or key not in {"const", "default", "enum", "examples"}:
                yield from parts(value, names=not names and key in {"properties", "patternProperties"})
    elif isinstance(schema, list):
        for one in schema:
            yield from parts(one)


def faults(tool: dict[str, Any], dialect: str) -> list[str]:
    """What a client of this dialect could not take of a tool."""
    limits = DIALECTS[dialect]
    assert limits is not None
    found = [] if len(tool["name"]) <= limits.name else [f"{tool['name']} is too long"]
    for at, schema in enumerate(parts(tool["inputSchema"])):
        if schema.keys() & {"$ref", "$defs"}:
            found.append(f"{tool['name']} refers: {schema}"[:200])
        if schema.keys() & COMBINING and (at == 0 or limits.combinators == "nowhere"):
            found.append(f"{tool['name']} combines: {schema}"[:200])
        if isinstance(schema.get("type"), list) and not limits.types:
            found.append(f"{tool['name']} has several types: {schema}"[:200])
    return found


def tools_of(server: Server) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in use(server, lambda client: client.list_tools())}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server("books")
    server.mount_manifest(package(tmp_path, monkeypatch, SHELF))
    return server


@pytest.mark.parametrize("dialect", ["plain", "flat"])
def test_a_list_keeps_to_its_dialect_and_calls_are_what_they_were(server: Server, dialect: str) -> None:
    server.offer(dialect=dialect)
    listed = tools_of(server)
    assert [fault for tool in listed.values() for fault in faults(tool, dialect)] == []
    name = shorten_names([LONG], 40)[LONG] if dialect == "flat" else LONG
    assert list(listed) == [name, "list_books"]
    for value in VALUES:
        jsonschema.Draft202012Validator(listed[name]["inputSchema"]).validate(value)
        assert use(server, lambda client: client.call_tool(name, value))["structuredContent"] == {"given": value}  # noqa: B023 - it is awaited at once
    refused = use(server, lambda client: client.call_tool(name, {"book": {"title": 5.5}}))
    assert "book.title must be a string" in refused["content"][0]["text"]


def test_tools_of_ones_own_keep_to_it_too_and_keep_their_names(server: Server) -> None:
    either = {
        "type": "object",
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "properties": {"a": {"type": "integer"}},
    }

    @server.tool(input_schema={**either, "$defs": {}}, name="m" * 60)
    async def mine(a: int = 0, b: int = 0) -> int:
        """Add."""
        return a + b

    server.offer(dialect="plain")
    tool = tools_of(server)["m" * 60]
    assert faults(tool, "plain") == []
    assert tool["description"] == "Add.\nOne of: with a; with b."


def test_search_mode_describes_tools_in_the_dialect(server: Server) -> None:
    server.offer("search", dialect="flat")
    name = shorten_names([LONG], 40)[LONG]

    async def task(client: Any) -> tuple[str, Any]:
        told = await client.call_tool("describe_tools", {"names": [name]})
        answer = await client.call_tool("call_tool", {"name": name, "arguments": VALUES[1]})
        return told["content"][0]["text"], answer["structuredContent"]

    text, answer = use(server, task)
    assert "$ref" not in text
    assert "$defs" not in text
    assert answer == {"given": VALUES[1]}


def test_alternatives_with_the_same_value_list_it_once_and_null_goes_with_its_type() -> None:
    limits = DIALECTS["flat"]
    assert limits is not None
    schema = {
        "type": "object",
        "properties": {
            "either": {"oneOf": [{"enum": ["a", 1]}, {"enum": ["a", True]}]},
            "maybe": {"type": ["string", "null"], "enum": ["a", None]},
        },
    }
    shown = adapt_tool({"name": "t", "inputSchema": schema}, limits)["inputSchema"]["properties"]
    assert [repr(value) for value in shown["either"]["enum"]] == ["'a'", "1", "True"]
    assert shown["maybe"] == {"type": "string", "enum": ["a"], "description": "May be null."}


def test_short_names_are_unique_and_do_not_depend_on_each_other() -> None:
    names = [f"{'list_all_of_the_' * 4}{n}" for n in range(50)]
    cut = shorten_names(names, 40)
    assert len(set(cut.values())) == 50
    assert max(map(len, cut.values())) <= 40
    assert shorten_names(reversed(names), 40) == cut
    assert shorten_names(["kept"], 40) == {"kept": "kept"}


def test_the_environment_and_the_manifest_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("books")
    server.mount_manifest(package(tmp_path, monkeypatch, SHELF, dialect="plain"))
    assert "$ref" not in json.dumps(tools_of(server))
    monkeypatch.setenv("MCPFACTORY_DIALECT", "standard")
    server = Server("books")
    server.mount_manifest(package(tmp_path, monkeypatch, SHELF, dialect="plain"))
    assert tools_of(server)[LONG]["inputSchema"] == SCHEMA


def test_a_single_alternative_is_not_noted_as_nullable() -> None:
    limits = DIALECTS["flat"]
    assert limits is not None
    schema = {"type": "object", "properties": {"one": {"anyOf": [{"type": "integer"}]}}}
    shown = adapt_tool({"name": "t", "inputSchema": schema}, limits)["inputSchema"]["properties"]
    assert shown == {"one": {"type": "integer"}}
