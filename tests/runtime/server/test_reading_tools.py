"""Resources and prompts in handlers of the same server, and as tools for clients that know only these."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio


def notes() -> Server:
    server = Server("notes")

    @server.resource("notes://today", mime_type="text/plain", description="What is to be done.")
    def today() -> str:
        return "Buy milk."

    @server.resource("notes://pictures/{name}", mime_type="image/png")
    async def picture(name: str, ctx: Context) -> bytes | None:
        return None if name == "none" else f"{name} of {ctx.server.name}".encode()

    @server.prompt
    def summarise(style: str, length: int = 3) -> str:
        """Ask for a summary."""
        return f"Summarise in {length} {style} words."

    @server.tool
    async def both(ctx: Context) -> str:
        contents = await ctx.read_resource("notes://today")
        messages = await ctx.get_prompt("summarise", style="short")
        return f"{contents[0]['text']} {messages[0]['content']['text']}"

    @server.tool
    async def neither(uri: str, prompt: str, ctx: Context) -> list[str]:
        said = []
        for asking in (ctx.read_resource(uri), ctx.get_prompt(prompt), ctx.get_prompt("summarise", size="9")):
            try:
                await asking
            except ToolError as error:
                said.append(str(error))
        return said

    return server


async def said(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result
    return (result.get("structuredContent") or {}).get("result", result.get("structuredContent"))


async def test_a_handler_reads_resources_and_fills_in_prompts_of_its_server() -> None:
    whole = Server("whole")
    whole.mount(notes(), "part")
    async with connect(notes()) as client:
        assert await said(client, "both") == "Buy milk. Summarise in 3 short words."
        missing = await said(client, "neither", uri="notes://pictures/none", prompt="no")
        assert missing[:2] == [
            "This server has no resource 'notes://pictures/none'.",
            "This server has no prompt 'no'.",
        ]
        assert "style" in missing[2]
    async with connect(whole) as client:  # in a part it means the part's own
        assert await said(client, "part_both") == "Buy milk. Summarise in 3 short words."


async def test_clients_that_know_only_tools_list_and_read_by_them() -> None:
    server = notes()
    server.add_reading_tools()
    async with connect(server) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert tools["read_resource"]["annotations"]["readOnlyHint"] is True
        listed = await said(client, "list_resources")
        assert listed["resources"] == [
            {"uri": "notes://today", "name": "today", "description": "What is to be done.", "mimeType": "text/plain"}
        ]
        assert [one["uriTemplate"] for one in listed["templates"]] == ["notes://pictures/{name}"]
        (text,) = (await client.call_tool("read_resource", {"uri": "notes://today"}))["content"]
        assert text == {"type": "text", "text": "Buy milk."}
        (blob,) = (await client.call_tool("read_resource", {"uri": "notes://pictures/cat"}))["content"]
        assert base64.b64decode(blob["resource"]["blob"]) == b"cat of notes"
        assert blob["resource"]["mimeType"] == "image/png"
        (prompt,) = (await said(client, "list_prompts"))["prompts"]
        assert [argument["name"] for argument in prompt["arguments"]] == ["style", "length"]
        filled = await said(client, "get_prompt", name="summarise", arguments={"style": "plain", "length": "5"})
        assert filled["messages"][0]["content"]["text"] == "Summarise in 5 plain words."
        for tool, arguments, words in (
            ("read_resource", {"uri": "notes://none"}, "has no resource 'notes://none'"),
            ("get_prompt", {"name": "none"}, "has no prompt 'none'"),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused["isError"]
            assert words in refused["content"][0]["text"]


def test_a_name_that_is_taken_is_refused_and_nothing_is_added() -> None:
    server = notes()
    server.tool(name="get_prompt")(nothing)
    with pytest.raises(ValueError, match="tool 'get_prompt' already exists"):
        server.add_reading_tools()
    assert "list_resources" not in server.registry.tools


async def nothing() -> None: ...
