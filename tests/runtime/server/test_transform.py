"""Tools that are made of others: what callers see, what they may send, and what the other tool is given."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.server.registry import Tool
from mcpfactory_runtime.testing import connect
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio


def shop() -> Server:
    server = Server("shop", version="1")

    @server.tool(annotations={"readOnlyHint": True}, title="Search")
    async def search_everything(
        q: str,
        kind: Literal["book", "map"],
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        shelf: str = "main",
        ctx: Context | None = None,
    ) -> dict[str, Any]:
        """Search.

        Args:
            q: words.
            kind: of what.
            limit: at most so many.
            shelf: where.
        """
        if q == "fail":
            raise ValueError("secret")
        return {"q": q, "kind": kind, "limit": limit, "shelf": shelf, "state": ctx.state if ctx else None}

    @server.tool
    def plain(text: str) -> str:
        """Give it back."""
        return text

    return server


async def test_callers_see_the_new_names_and_the_other_tool_gets_its_own():
    server = shop()
    server.transform_tool(
        "search_everything",
        rename="find_books",
        title="Find books",
        description="Find books by words.",
        arguments={
            "q": {"rename": "words", "description": "Words of the title."},
            "kind": {"fix": "book"},
            "limit": {"default": 5},
            "shelf": {"hide": True},
        },
    )
    async with connect(server) as client:
        tools = await client.list_tools()
        assert [tool["name"] for tool in tools] == ["find_books", "plain"]
        tool = tools[0]
        assert (tool["title"], tool["description"], tool["annotations"]["readOnlyHint"]) == (
            "Find books",
            "Find books by words.",
            True,
        )
        schema = tool["inputSchema"]
        assert (list(schema["properties"]), schema["required"]) == (["words", "limit"], ["words"])
        assert schema["properties"]["words"]["description"] == "Words of the title."
        assert schema["properties"]["limit"]["default"] == 5
        found = await client.call_tool("find_books", {"words": "tea"})
        assert found["structuredContent"] == {"q": "tea", "kind": "book", "limit": 5, "shelf": "main", "state": None}
        found = await client.call_tool("find_books", {"words": "tea", "limit": 7})
        assert found["structuredContent"]["limit"] == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"words": "tea", "kind": "map"}, "unknown argument kind"),
        ({"words": "tea", "shelf": "secret"}, "unknown argument shelf"),
        ({"q": "tea"}, "unknown argument q"),
        ({"words": "tea", "limit": 0}, "limit"),
        ({"words": "tea", "other": 1}, "other"),
        ({}, "words"),
    ],
)
async def test_what_callers_do_not_see_they_cannot_send(arguments, said):
    server = shop()
    changes: Any = {"q": {"rename": "words"}, "kind": {"fix": "book"}, "shelf": {"hide": True}}
    server.transform_tool("search_everything", arguments=changes)
    async with connect(server) as client:
        found = await client.call_tool("search_everything", arguments)
    assert found["isError"]
    assert said in found["content"][0]["text"]
    assert found["content"][0]["text"].startswith("Invalid arguments")


async def test_a_result_is_mapped_with_a_schema_of_its_own_and_failures_are_not():
    server = shop()

    def count(found: dict[str, Any]) -> int:
        return int(found["limit"])

    async def shout(text: str) -> str:
        return text.upper()

    server.transform_tool("search_everything", result=count)
    server.transform_tool("plain", result=shout)
    async with connect(server) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert tools["search_everything"]["outputSchema"]["properties"]["result"]["type"] == "integer"
        found = await client.call_tool("search_everything", {"q": "tea", "kind": "map"})
        assert found["structuredContent"] == {"result": 10}
        failed = await client.call_tool("search_everything", {"q": "fail", "kind": "map"})
        assert failed["isError"]
        assert "secret" not in str(failed)
        assert (await client.call_tool("plain", {"text": "tea"}))["content"][0]["text"] == "TEA"


async def test_tools_of_parts_are_transformed_and_keep_their_own_state_and_scopes():
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def life(server: Server) -> Any:
        yield "the part's"

    part, whole = shop(), Server("whole", version="1")
    part.lifespan(life)
    part.registry.tools["search_everything"].scopes = ("shop:read",)
    whole.mount(part, "shop")
    whole.transform_tool("shop_search_everything", rename="find", arguments={"kind": {"fix": "map"}})
    assert whole.registry.tools["find"].scopes == ("shop:read",)
    async with connect(whole) as client:
        assert (await client.call_tool("find", {"q": "tea"}))["structuredContent"]["state"] == "the part's"


def plain_schema(**more: Any) -> Server:
    server = Server("one", version="1")
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"], **more}
    server.tool(name="one", input_schema=schema)(lambda a, b=None: a)
    return server


@parametrize_subtests(
    "options, error, said",
    [
        ({"arguments": {"x": {"hide": True}}}, ValueError, "has no argument x"),
        ({"arguments": {"q": {"hidden": True}}}, TypeError, "unknown option hidden"),
        ({"arguments": {"q": {"hide": True}}}, ValueError, "cannot be hidden without a default"),
        ({"arguments": {"q": {"fix": "a", "rename": "b"}}}, ValueError, "fix cannot be combined"),
        (
            {"arguments": {"kind": {"fix": "song"}}},
            ValueError,
            "kind must be one of .*\nhint: use a value that the tool accepts",
        ),
        (
            {"arguments": {"limit": {"default": 51}}},
            ValueError,
            "limit must be at most 50.*\nhint: use a value that the tool accepts",
        ),
        ({"arguments": {"q": {"rename": "limit"}}}, ValueError, "two arguments would have the name 'limit'"),
        ({"rename": "plain"}, ValueError, "tool 'plain' already exists"),
        ({"rename": "a b"}, ValueError, "'a b' is not a valid tool name"),
        ({"result": lambda a, b: a}, TypeError, "must take one argument"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_written(options, error, said):
    server = shop()
    before = dict(server.registry.tools)
    with pytest.raises(error, match=said):
        server.transform_tool("search_everything", **options)
    assert server.registry.tools == before


def test_unknown_and_generated_tools_and_schemas_that_name_arguments_elsewhere_are_refused():
    with pytest.raises(KeyError, match="unknown tool 'nothing'"):
        shop().transform_tool("nothing", rename="some")
    server = plain_schema(dependentRequired={"b": ["a"]})
    with pytest.raises(ValueError, match="names arguments in dependentRequired"):
        server.transform_tool("one", arguments={"b": {"rename": "c"}})
    server.transform_tool("one", arguments={"b": {"description": "text"}})


async def test_an_open_schema_passes_others_on_but_nothing_hidden():
    server = Server("open", version="1")

    tool = Tool("open", {"name": "open", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}})
    seen: list[Any] = []

    async def keep(**arguments: Any) -> str:
        seen.append(arguments)
        return "kept"

    tool.handler = keep
    server.add_tool(tool)
    server.transform_tool("open", arguments={"a": {"fix": 1}})
    async with connect(server) as client:
        await client.call_tool("open", {"b": 2, "c": 3})
        assert (await client.call_tool("open", {"a": 5}))["isError"]
    assert seen == [{"a": 1, "b": 2, "c": 3}]
