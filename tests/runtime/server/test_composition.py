"""Servers mounted in another one: what they offer, whose middleware and lifespan hold, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcpfactory_runtime import Context, McpError, Server, ToolError, ToolRequest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
LOG: list[str] = []


def part(name: str) -> Server:
    made = Server(name, version="1")

    @made.lifespan
    async def life(_: Server) -> AsyncIterator[str]:
        LOG.append(f"open {name}")
        yield f"state of {name}"
        LOG.append(f"close {name}")

    @made.tool(annotations={"readOnlyHint": True})
    async def where(word: str, ctx: Context) -> str:
        """Say where it runs."""
        return f"{word}: {ctx.state}, {ctx.server.name}"

    @made.tool
    def add(a: int, b: int = 2) -> int:
        return a + b

    @made.tool
    async def twice(a: int, ctx: Context) -> int:
        return int((await ctx.call("add", a=a, b=a))["result"])

    @made.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return f"{answer.content['name']} at {ctx.state}"

    @made.tool
    async def fails() -> str:
        raise ToolError(f"{name} failed")

    @made.tool_middleware("add")
    async def more(call: ToolRequest, call_next: Any) -> dict[str, Any]:
        call.arguments = {**call.arguments, "a": call.arguments["a"] + 100}
        result: dict[str, Any] = await call_next(call)
        return result

    @made.resource(f"{name}://about/{{topic}}")
    async def about(topic: str, ctx: Context) -> str:
        return f"{topic} of {ctx.state}"

    @made.resource(f"{name}://self")
    def itself() -> str:
        return name

    @made.prompt
    async def greet(person: str, ctx: Context) -> str:
        return f"{person}, from {ctx.state}"

    @made.completion
    async def complete(ref: Any, argument: Any) -> list[str]:
        return [f"{name} {ref.name or ref.uri} {argument.value}"]

    return made


def whole() -> Server:
    LOG.clear()
    made = Server("whole", version="1")

    @made.tool
    async def add(a: int, ctx: Context) -> str:
        return f"{a} {ctx.state} {ctx.server.name}"

    made.mount(part("tea"), "tea")
    made.mount(part("coffee"), "coffee")
    return made


async def said(client: Client, tool: str, **arguments: Any) -> Any:
    return (await client.call_tool(tool, arguments))["structuredContent"]["result"]


@pytest.mark.parametrize("revision", ["", "2025-06-18"])
async def test_everything_of_the_parts_is_offered_and_runs_in_its_part(revision: str) -> None:
    def answer(_: Any) -> Any:
        return {"action": "accept", "content": {"name": "Ada"}}

    async with connect(whole(), revision, elicitation=answer) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        names = ("where", "add", "twice", "ask", "fails")
        assert list(tools) == ["add", *(f"tea_{name}" for name in names), *(f"coffee_{name}" for name in names)]
        assert tools["tea_where"]["annotations"] == {"readOnlyHint": True}
        assert tools["tea_where"]["inputSchema"]["required"] == ["word"]
        assert await said(client, "add", a=1) == "1 None whole"
        assert await said(client, "tea_where", word="x") == "x: state of tea, tea"
        assert await said(client, "coffee_add", a=1) == 103
        assert await said(client, "tea_twice", a=5) == 110
        assert await said(client, "tea_ask") == "Ada at state of tea"
        assert (await client.call_tool("tea_fails"))["content"][0]["text"] == "tea failed"
        wrong = await client.call_tool("tea_where", {"word": 3})
        assert wrong["isError"]
        assert "word" in wrong["content"][0]["text"]
        assert (await client.read_resource("coffee://about/milk"))[0]["text"] == "milk of state of coffee"
        assert (await client.read_resource("tea://self"))[0]["text"] == "tea"
        prompt = await client.get_prompt("tea_greet", {"person": "Ada"})
        assert prompt["messages"][0]["content"]["text"] == "Ada, from state of tea"
        for reference, words in (
            ({"type": "ref/prompt", "name": "tea_greet"}, "tea greet A"),
            ({"type": "ref/resource", "uri": "coffee://about/{topic}"}, "coffee coffee://about/{topic} A"),
        ):
            assert (await client.complete(reference, "person", "A"))["values"] == [words]
        with pytest.raises(McpError):
            await client.call_tool("where", {"word": "x"})
    assert LOG == ["open tea", "open coffee", "close coffee", "close tea"]


async def test_a_part_of_a_part_keeps_its_own_state() -> None:
    LOG.clear()
    inner, middle, outer = part("inner"), Server("middle", version="1"), Server("outer", version="1")
    middle.mount(inner, "in")
    outer.mount(middle, "mid")
    async with connect(outer) as client:
        assert await said(client, "mid_in_where", word="x") == "x: state of inner, inner"
        assert await said(client, "mid_in_add", a=1) == 103
        assert (await client.complete({"type": "ref/prompt", "name": "mid_in_greet"}, "person", "A"))["values"] == [
            "inner greet A"
        ]


async def test_clients_of_the_whole_are_told_what_changes_in_a_part_of_a_part() -> None:
    told: list[Any] = []
    both = asyncio.Event()
    inner, middle, outer = part("inner"), Server("middle", version="1"), Server("outer", version="1")

    @inner.tool
    async def touch(ctx: Context) -> None:
        ctx.server.notify_resource_updated("inner://self")
        inner.notify_resource_updated("inner://other")  # nobody asked for it
        inner.notify_resource_updated("inner://self")

    def notified(method: str, params: Any) -> None:
        told.append((method, params["uri"]))
        if len(told) == 2:
            both.set()

    middle.mount(inner, "in")
    outer.mount(middle, "mid")
    async with connect(outer, "2025-06-18", notified=notified) as client:
        await client.call("resources/subscribe", {"uri": "inner://self"})
        await client.call_tool("mid_in_touch")
        async with asyncio.timeout(TIMEOUT):
            await both.wait()
    assert told == [("notifications/resources/updated", "inner://self")] * 2


def test_what_clashes_is_refused_and_nothing_is_mounted() -> None:
    made = Server("whole", version="1")

    @made.tool
    async def tea_twice() -> None: ...

    with pytest.raises(
        ValueError, match="'tea_twice' of tea is already taken\nhint: mount the server with another prefix"
    ):
        made.mount(part("tea"), "tea")
    assert list(made.registry.tools) == ["tea_twice"]
    assert not made.registry.resources
    assert made.parts == []
    other = Server("other", version="1")
    made.mount(other)
    with pytest.raises(ValueError, match="cannot be a part of itself"):
        other.mount(made)
    with pytest.raises(ValueError, match="cannot be a part of itself"):
        made.mount(made)


async def test_what_a_part_gets_or_loses_later_is_so_in_the_whole_and_its_clients_are_told() -> None:
    told: list[str] = []
    inner, middle, outer = part("inner"), Server("middle", version="1"), Server("outer", version="1")
    middle.mount(inner, "in")
    outer.mount(middle, "mid")
    outer.remove_tool("mid_in_fails")
    outer.transform_tool("mid_in_add", rename="sum")

    @outer.tool
    async def mid_in_late() -> str:
        return "the whole's own"

    async with connect(outer, "2025-06-18", notified=lambda method, _: told.append(method)) as client:

        @inner.tool
        async def early() -> str:
            return "from the part"

        @inner.tool
        async def late() -> str:
            return "left out"

        inner.resource("inner://new", name="new")(lambda: "new")
        inner.transform_tool("fails", description="Another one, which the whole took away.")
        inner.remove_tool("twice")
        inner.remove_prompt("greet")
        names = [tool["name"] for tool in await client.list_tools()]
        assert names == ["mid_in_where", "sum", "mid_in_ask", "mid_in_late", "mid_in_early"]
        assert await said(client, "mid_in_early") == "from the part"
        assert await said(client, "mid_in_late") == "the whole's own"
        assert await said(client, "sum", a=1) == 103
        assert (await client.read_resource("inner://new"))[0]["text"] == "new"
        with pytest.raises(McpError):  # without any prompt there is no such method
            await client.get_prompt("mid_in_greet", {"person": "Ada"})
    for kind in ("tools", "resources", "prompts"):
        assert f"notifications/{kind}/list_changed" in told


async def test_ready_checks_and_pages_of_parts_are_the_wholes_too() -> None:
    tea, made = part("tea"), Server("whole", version="1")
    works = True

    @tea.ready_check
    def kettle() -> bool:
        return works

    tea.app("ui://tea/cup", html="<p>tea</p>")
    tea.tool(app="ui://tea/cup")(cup)
    made.mount(tea, "tea")
    assert await made.readiness.run_checks() == {"tea_kettle": True}
    works = False
    made.readiness.stop()  # what was kept of the first look
    assert await made.readiness.run_checks() == {"tea_kettle": False}
    async with connect(made) as client:
        assert client.capabilities["extensions"] == {"io.modelcontextprotocol/ui": {}}
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert tools["tea_cup"]["_meta"]["ui"]["resourceUri"] == "ui://tea/cup"
        assert (await client.read_resource("ui://tea/cup"))[0]["text"] == "<p>tea</p>"


async def cup() -> str:
    return "a cup"
