"""Search mode: three tools that find, describe and call all others, with the others' own rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from tests.runtime.server.generated_package import BOOKS, called, listed, loaded, package, row, said, use


def _takes(*names: str) -> Any:
    """A schema with these arguments; those that end with a question mark are optional."""
    return {
        "type": "object",
        "properties": {name.rstrip("?"): {} for name in names},
        "required": [name for name in names if not name.endswith("?")],
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return package(tmp_path, monkeypatch, mode="search")


@pytest.fixture
def server(folder: Path) -> Server:
    made = Server("books")
    made.mount_manifest(folder)
    return made


def test_a_question_finds_the_tool_and_nothing_of_the_api_is_loaded(folder: Path, server: Server) -> None:
    found = said(called(server, "search_tools", query="remove a book"))
    assert found.splitlines()[1].startswith("- delete_book(book_id): Throw a book away")
    assert "describe_tools" in found
    assert loaded(folder) == set()


def test_every_tool_can_be_reached_by_paging_through_the_groups(server: Server) -> None:
    def page(**arguments: Any) -> list[str]:
        lines = said(called(server, "search_tools", query="", **arguments)).splitlines()
        return [line[2:].partition("(")[0] for line in lines if line.startswith("- ")]

    assert page(limit=2) + page(limit=2, offset=2) + page(limit=2, offset=4) == [tool["name"] for tool in BOOKS]
    assert page(group="orders") == ["list_orders"]
    assert page(offset=9) == []


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        (row("get_x", "GET /x/{id}", "Get x", inputSchema=_takes("id", "a?", "b?")), "- get_x(id, a?, b?): Gets an x"),
        (
            row("get_x", "GET /x/{id}", "Look", inputSchema=_takes("id", *(f"{n}?" for n in "abcd"))),
            "- get_x(id and 4 more): Look",
        ),
        (row("get_x", "GET /x", "Look", inputSchema=_takes(*(f"{n}?" for n in "abcd"))), "- get_x(4 optional): Look"),
        (row("get_x", "GET /x", "", description=""), "- get_x(): "),
        (row("getX", "GET /x", "get X", description="A" * 200), f"- getX(): {'A' * 119}…"),
    ],
)
def test_a_line_has_what_a_call_needs_and_says_no_name_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Any, line: str
) -> None:
    tool = tool if tool["title"] != "Get x" else {**tool, "description": "Gets an x. And more."}
    server = Server("x")
    server.mount_manifest(package(tmp_path, monkeypatch, tools=[tool], mode="search"))
    assert said(called(server, "search_tools", query="x")).splitlines()[1] == line


def test_an_unknown_group_and_a_question_without_answer_say_what_there_is(server: Server) -> None:
    wrong = called(server, "search_tools", query="x", group="films")
    assert wrong["isError"] is True
    assert "books, orders" in said(wrong)
    assert "books, orders" in said(called(server, "search_tools", query="xylophone"))


def test_a_description_is_the_tool_as_it_would_have_been_listed(server: Server) -> None:
    lines = said(called(server, "describe_tools", names=["get_book", "delete_book", "get_book"])).splitlines()
    for line, tool in zip(lines, (BOOKS[0], BOOKS[3]), strict=True):
        assert json.loads(line) == {key: tool[key] for key in ("name", "description", "inputSchema", "annotations")}


def test_descriptions_that_are_too_much_are_named_and_can_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = [row(name, "GET /x", "Big", description=name * 15_000) for name in ("aa", "bb")]
    server = Server("big")
    server.mount_manifest(package(tmp_path, monkeypatch, tools=big, mode="search"))
    first, last = said(called(server, "describe_tools", names=["aa", "bb"], whole=True)).splitlines()
    assert json.loads(first)["name"] == "aa"
    assert last.endswith("bb")
    assert json.loads(said(called(server, "describe_tools", names=["bb"], whole=True)))["description"] == "bb" * 15_000


def test_a_long_description_is_shown_in_outline_and_whole_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = {"type": "object", "properties": {f"line{n}": {"type": "string", "description": "x " * 90} for n in range(40)}}  # fmt: skip
    schema: Any = {
        "type": "object",
        "properties": {
            "buyer": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"$ref": "#/$defs/at"}}, "required": ["name"]},
            "kind": {"enum": [f"kind{n}" for n in range(50)]},
            "at": {"$ref": "#/$defs/at"},
            "lots": {"type": "array", "items": {"$ref": "#/$defs/at"}, "description": "y" * 900},
        },
        "required": ["buyer"],
        "$defs": {"at": {**address, "description": "An address."}},
    }  # fmt: skip
    server = Server("big")
    tools = [row("send", "POST /x", "Send", inputSchema=schema), row("get", "GET /x", "Get")]
    server.mount_manifest(package(tmp_path, monkeypatch, tools=tools, mode="search"))
    first, second, note = said(called(server, "describe_tools", names=["send", "get"])).splitlines()
    outline = json.loads(first)["inputSchema"]
    assert len(first) < 4_000
    assert outline["properties"].keys() == schema["properties"].keys()
    assert outline["required"] == ["buyer"]
    assert outline["properties"]["buyer"]["properties"]["name"] == {"type": "string"}
    assert outline["properties"]["at"]["description"] == "An address."
    assert outline["properties"]["kind"]["enum"][-2:] == ["kind11", "…"]
    assert json.loads(second)["inputSchema"] == tools[1]["inputSchema"]
    assert "send. " in note
    assert json.loads(said(called(server, "describe_tools", names=["send"], whole=True)))["inputSchema"] == schema


def test_a_call_gives_the_tools_own_result(server: Server) -> None:
    result = called(server, "call_tool", name="get_book", arguments={"book_id": 1})
    assert result["structuredContent"] == {"id": 1, "fields": None}
    assert result["_meta"]["from"] == "the API"
    assert said(called(server, "call_tool", name="list_books")) == "done"


@pytest.mark.parametrize(
    ("call", "text", "hint"),
    [
        ({"name": "get_book"}, "book_id", "describe_tools"),
        ({"name": "get_book", "arguments": {"book_id": "x"}}, "book_id", "describe_tools"),
        ({"name": "get_book", "arguments": {"book_id": 1, "colour": "red"}}, "colour", "describe_tools"),
        ({"name": "get_boks"}, "get_boks", "search_tools"),
        ({"name": "call_tool"}, "call_tool", "search_tools"),
        ({"name": "get_book", "arguments": "{}"}, "arguments", ""),
        ({"name": "get_book", "arguments": {"book_id": 13}}, "no such book", ""),
    ],
)
def test_a_wrong_call_is_told_with_the_tool_that_helps(server: Server, call: Any, text: str, hint: str) -> None:
    result = called(server, "call_tool", **call)
    assert result["isError"] is True
    assert text in said(result)
    assert hint in said(result)


def test_a_profile_bounds_what_can_be_found_described_and_called(server: Server) -> None:
    server.offer(profile="read-only")
    assert "delete_book" not in said(called(server, "search_tools", query="delete a book"))
    for tool, arguments in (("describe_tools", {"names": ["delete_book"]}), ("call_tool", {"name": "delete_book"})):
        assert called(server, tool, **arguments)["isError"] is True


@pytest.mark.parametrize(
    ("profile", "hints"),
    [
        ("full", {"readOnlyHint": False, "destructiveHint": True}),
        ("adding", {"readOnlyHint": False, "destructiveHint": False}),
        ("read-only", {"readOnlyHint": True}),
    ],
)
def test_the_hints_of_the_call_tool_hold_for_whatever_it_may_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, hints: Any
) -> None:
    server = Server("books")
    adding = {"adding": ["create_book", "get_book"]}
    server.mount_manifest(package(tmp_path, monkeypatch, mode="search", profile=profile, profiles=adding))
    tools = {tool["name"]: tool for tool in use(server, lambda client: client.list_tools())}
    assert hints.items() <= tools["call_tool"]["annotations"].items()
    assert tools["search_tools"]["annotations"]["readOnlyHint"] is True


def test_the_three_names_are_none_of_the_apis_and_none_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [row(name, f"GET /{name}", name) for name in ("call_tool", "search_api_tools")]
    server = Server("names")
    server.mount_manifest(package(tmp_path, monkeypatch, tools=tools))

    @server.tool
    async def describe_server_tools() -> None:
        """A tool of one's own."""

    server.offer("search")
    assert listed(server)[:3] == ["search_api3_tools", "describe_api3_tools", "call_api3_tool"]
    assert said(called(server, "call_api3_tool", name="call_tool")) == "done"
