"""Generated tools and tools of one's own in the dialects of clients with limits: what is listed, and that calls are what they were."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.schemas import client_dialects
from mcpfactory_runtime.schemas.client_dialects import adapt_tool, shorten_names
from mcpfactory_runtime.schemas.client_limits import CLIENTS, DIALECTS, LIMITS, SUBJECTS, dialect_limits
from mcpfactory_runtime.schemas.client_refusals import find_refusals
from tests.runtime.schemas.vendor_refusals import VENDORS, refusals
from tests.runtime.server.generated_package import package, row, use

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


def faults(tool: dict[str, Any], dialect: str) -> list[str]:
    """What the clients of this dialect could not take of a tool, by the project's table and by the vendors' texts."""
    found = [str(refusal) for client in DIALECTS[dialect] for refusal in find_refusals([tool], client)]
    return found + refusals([tool])


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
    combined = re.search(r'"(anyOf|oneOf|allOf)":', json.dumps(listed))
    assert (combined is None) == (dialect == "flat")
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
    limits = dialect_limits("flat")
    schema = {
        "type": "object",
        "properties": {
            "either": {"oneOf": [{"enum": ["a", 1]}, {"enum": ["a", True]}]},
            "maybe": {"type": ["string", "null"], "enum": ["a", None]},
        },
    }
    shown = adapt_tool({"name": "t", "inputSchema": schema}, limits)["inputSchema"]["properties"]
    assert shown["either"]["description"] == 'One of: One of: "a", 1; One of: "a", true.'
    assert shown["maybe"] == {"type": "string", "enum": ["a"], "description": "May be null."}
    plain = adapt_tool({"name": "t", "inputSchema": schema}, dialect_limits("plain"))["inputSchema"]["properties"]
    assert plain["maybe"] == {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}


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
    monkeypatch.setenv("MCPFACTORY_DIALECT", "standards")
    server = Server("books")
    with pytest.raises(ValueError, match=r"standards(.|\n)*hint:"):
        tools_of(server)


def test_a_single_alternative_is_not_noted_as_nullable() -> None:
    limits = dialect_limits("flat")
    schema = {"type": "object", "properties": {"one": {"anyOf": [{"type": "integer"}]}}}
    shown = adapt_tool({"name": "t", "inputSchema": schema}, limits)["inputSchema"]["properties"]
    assert shown == {"one": {"type": "integer"}}


DEEP: Any = {"type": "array", "items": {"type": "object", "properties": {"end": {"type": "array"}}}}
for _ in range(8):
    DEEP = {"type": "object", "properties": {"more": DEEP}, "required": ["more"], "additionalProperties": False}
HARD: Any = {
    "type": "object",
    "properties": {
        "names": {"type": "array"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        "deep": DEEP,
        "word": {"type": "string", "pattern": "^[[:alpha:]]+$"},
        "free": {"type": "string", "pattern": "^(?!x)"},
        "size": {"$ref": "#/$defs/Size", "default": "small"},
        "also": {"$ref": "#/$defs/Size"},
        "state": {"enum": ["", "open"], "default": ""},
        "small": {"$ref": "#/$defs/Size", "enum": ["", "small"]},
        "both": {"anyOf": [{"type": "string"}, {"type": "integer"}], "oneOf": [{"maxLength": 2}, {"minimum": 5}]},
        "joined": {"allOf": [{"type": "string"}, {"maxLength": 5}]},
        "any": True,
        "map": {"patternProperties": {"^(?!x)": {"type": "string"}, "^y$": {}}, "additionalProperties": False},
        "code": {"type": "integer", "enum": [1, 2], "default": 2},
        "none": {"anyOf": [{"type": "integer"}, {"type": "string", "enum": [""]}]},
        "either": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "maybe": {"not": {"enum": [5]}},
    },
    "anyOf": [{"required": ["names"]}, {"required": ["deep"]}],
    "$defs": {"Size": {"enum": ["", "small", "large"], "description": "Its size."}},
}


@pytest.fixture
def hard() -> Server:
    server = Server("hard")

    @server.tool(input_schema=HARD, description="d" * 2000)
    async def take(names: Any, word: str = "") -> str:
        return "taken"

    return server


def test_every_vendor_takes_the_default_list_of_a_hand_written_server(hard: Server) -> None:
    tool = tools_of(hard)["take"]
    assert faults(tool, "plain") == []
    shown = tool["inputSchema"]["properties"]
    size = {"type": "string", "enum": ["small", "large"], "description": "Its size. May be empty."}
    assert shown["size"] == {**size, "default": "small"}
    assert shown["also"] == size
    assert shown["state"] == {"type": "string", "enum": ["open"]}
    assert shown["small"] == {**size, "enum": ["small"]}
    assert shown["both"] == {
        "anyOf": [{"type": "string"}, {"type": "integer"}],
        "allOf": [{"anyOf": [{"maxLength": 2}, {"minimum": 5}]}],
    }
    assert json.dumps(shown["deep"]).count("Deeper levels are not shown.") == 1
    assert shown["joined"] == {"type": "string", "maxLength": 5}
    assert shown["any"] == {}
    assert shown["map"] == {"patternProperties": {"^y$": {}}}
    assert shown["maybe"] == {"description": "Some combinations of values are not permitted."}
    assert len(tool["description"]) == 1024
    assert shown["code"] == {"type": "integer", "default": 2, "description": "One of: 1, 2."}
    assert shown["free"] == {"type": "string", "description": "Pattern: ^(?!x)"}
    hard.offer(dialect="anthropic")
    assert tools_of(hard)["take"]["inputSchema"]["properties"]["free"]["pattern"] == "^(?!x)"
    hard.offer(dialect="kimi")
    assert tools_of(hard)["take"]["inputSchema"]["properties"]["code"]["enum"] == [1, 2]
    hard.offer(dialect="standard")
    assert tools_of(hard)["take"]["inputSchema"] == HARD


def test_calls_are_checked_by_the_patterns_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("words")
    server.mount_manifest(package(tmp_path, monkeypatch, [row("take", "POST /words", "Take", inputSchema=HARD)]))
    assert faults(tools_of(server)["take"], "plain") == []
    refused = use(server, lambda client: client.call_tool("take", {"names": [], "word": "5"}))
    assert "[[:alpha:]]" in refused["content"][0]["text"]
    given = {"names": [], "word": "a", "also": "", "code": 2}
    assert use(server, lambda client: client.call_tool("take", given))["structuredContent"] == {"given": given}


REFUSED: Any = {
    "type": "object",
    "properties": {"a b": {"type": ["string", "null"], "pattern": "x"}, "deep": DEEP, "e": {"enum": [None]}},
    "anyOf": [{"required": ["deep"]}],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_limit_finds_what_the_client_refuses(hard: Server, client: str) -> None:
    hard.offer(dialect="standard")
    tools = [tools_of(hard)["take"], *({"name": f"{n}ä" * 30, "inputSchema": REFUSED} for n in range(512))]
    assert {one.limit for one in find_refusals(tools, client)} == {one for one in LIMITS if one.client == client}
    if client in VENDORS:
        assert list(VENDORS[client](tools[0]))


def test_middleware_gets_tools_that_are_converted_once_until_the_tools_change(
    hard: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = []

    def counted(wire: dict[str, Any], limits: Any) -> dict[str, Any]:
        converted.append(wire["name"])
        return adapt_tool(wire, limits)

    monkeypatch.setattr(client_dialects, "adapt_tool", counted)

    @hard.middleware("tools/list")
    async def unchanged(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    for _ in range(2):
        assert faults(tools_of(hard)["take"], "plain") == []
    assert converted == ["take"]
    hard.tool("other")(lambda: "")
    assert list(tools_of(hard)) == ["take", "other"]


def test_a_large_definition_is_shown_once() -> None:
    large = {"type": "object", "properties": {f"name_{n}": {"type": "string"} for n in range(30)}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Large"}, "b": {"$ref": "#/$defs/Large"}},
        "$defs": {"Large": large},
    }
    shown = adapt_tool({"name": "t", "inputSchema": schema}, dialect_limits("plain"))["inputSchema"]["properties"]
    assert shown == {"a": {**large, "title": "Large"}, "b": {"type": "object", "description": "Like Large above."}}


def test_each_limit_has_a_known_subject_a_source_and_a_date() -> None:
    assert {limit.subject for limit in LIMITS} == set(SUBJECTS)
    assert all(
        limit.source.startswith("https://") and re.fullmatch(r"20\d\d-\d\d-\d\d", limit.date) for limit in LIMITS
    )
    assert set(DIALECTS) == {"plain", "standard", "flat", *CLIENTS}


def test_the_page_of_limits_shows_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/client-limits.md").read_text("utf-8")
    rows = re.findall(r"^\| (\S+) \| (.*) \| \[.*\]\((\S+)\) \| (\S+) \|$", page, re.MULTILINE)
    assert rows == [(one.client, one.text, one.source, one.date) for one in LIMITS]
    absent = re.findall(r"^\| ([\w-]+) \| ((?:`\w+`(?:, )?)+) \|$", page, re.MULTILINE)
    given = {(one.client, one.subject) for one in LIMITS}
    assert absent == [
        (client, ", ".join(f"`{subject}`" for subject in SUBJECTS if (client, subject) not in given))
        for client in CLIENTS
    ]
