"""What servers ask of a client's model, and for its roots, on the wire of each revision."""

from __future__ import annotations

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY
from mcpfactory_runtime.revisions import LEGACY, Revision
from tests.runtime.requirements import requirement
from tests.runtime.wire.questions import RICH, SAID, converse, question, rich
from tests.runtime.wire.raw_client import speak

pytestmark = pytest.mark.anyio

TOOL = {"name": "look", "inputSchema": {"type": "object"}}


def sampling() -> Server:
    server = Server("sampling")

    @server.tool
    async def poem(ctx: Context) -> str:
        """Ask for a poem."""
        answer = await ctx.sample("A poem!", max_tokens=7, systemPrompt="Rhyme.")
        return f"{answer.role} {answer.model}: {answer.text}"

    @server.tool
    async def with_tools(ctx: Context) -> str:
        """Ask with tools."""
        return (await ctx.sample("Look!", tools=[TOOL], toolChoice={"mode": "auto"})).text

    @server.tool
    async def with_context(ctx: Context) -> str:
        """Ask with the context of this server."""
        return (await ctx.sample("Well?", includeContext="thisServer")).text

    @server.tool
    async def places(ctx: Context) -> str:
        """Ask for roots."""
        return ", ".join(root.uri for root in await ctx.roots())

    return server


@requirement("sampling.ask", "sampling.malformed")
async def test_a_sample_is_asked_for_and_read(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        method, params = await question(client, "poem")
        assert method == "sampling/createMessage"
        assert (params["maxTokens"], params["systemPrompt"]) == (7, "Rhyme.")
        assert params["messages"] == [{"role": "user", "content": {"type": "text", "text": "A poem!"}}]
        good = await converse(client, "poem", SAID)
        assert good["result"]["content"][0]["text"] == "assistant m: Roses"
        for wrong in ({}, {**SAID, "content": None}, {**SAID, "content": []}, {**SAID, "content": "Roses"}):
            assert (await converse(client, "poem", wrong))["error"]["code"] == INVALID_PARAMS


@requirement("sampling.declared", "roots.declared", "initialize.respect-capabilities", "input-required.declared")
async def test_neither_samples_nor_roots_are_asked_of_those_who_declared_none(revision: Revision) -> None:
    code = MISSING_CAPABILITY if revision.modern else INVALID_REQUEST
    async with speak(sampling(), revision) as client:
        for tool in ("poem", "places"):
            assert await client.code("tools/call", {"name": tool, "arguments": {}}) == code
        assert client.heard == []


@requirement("sampling.tools-declared")
@rich
async def test_tools_are_sent_to_those_who_declared_them(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        code = MISSING_CAPABILITY if revision.modern else INVALID_REQUEST
        assert await client.code("tools/call", {"name": "with_tools", "arguments": {}}) == code
    async with speak(sampling(), revision, sampling={"tools": {}}) as client:
        _, params = await question(client, "with_tools")
        assert params["tools"] == [TOOL]


@requirement("sampling.no-tools-before")
@pytest.mark.parametrize("revision", [revision for revision in LEGACY.values() if revision not in RICH], ids=str)
async def test_no_tools_are_sent_before_there_were_any(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={"tools": {}}) as client:
        _, params = await question(client, "with_tools")
        assert not {"tools", "toolChoice"} & set(params)


@requirement("sampling.context-declared")
@rich
async def test_context_is_asked_of_those_who_declared_it(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        _, params = await question(client, "with_context")
        assert "includeContext" not in params
    async with speak(sampling(), revision, sampling={"context": {}}) as client:
        _, params = await question(client, "with_context")
        assert params["includeContext"] == "thisServer"


@requirement("roots.list", "roots.unavailable", "roots.changed")
async def test_roots_are_read_or_their_absence_is_an_error(revision: Revision) -> None:
    async with speak(sampling(), revision, roots={"listChanged": True}) as client:
        good = await converse(client, "places", {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]})
        assert good["result"]["content"][0]["text"] == "file:///a, file:///b"
        for wrong in ({}, {"roots": None}, {"roots": ["file:///a"]}):
            assert (await converse(client, "places", wrong))["error"]["code"] == INVALID_PARAMS
        await client.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert await client.silence() == []


@requirement("sampling.refused", "roots.unavailable")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_an_error_of_the_client_ends_the_call_unless_the_handler_takes_it(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}, roots={}) as client:
        for tool in ("poem", "places"):
            message = client.make("tools/call", {"name": tool, "arguments": {}})
            await client.say(message)
            asked = await client.hear()
            await client.say({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
            assert (await client.answer(message["id"]))["error"] == {"code": -1, "message": "no"}
