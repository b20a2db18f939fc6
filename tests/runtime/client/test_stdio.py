"""The client against processes: the official SDK's server, and old and bad ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.client import Client, ConnectionLostError
from mcpfactory_runtime.client.stdio import StdioChannel
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, R2024_11_05
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
SDK = [sys.executable, str(HERE / "sdk_server.py")]


def old(manner: str = "old", version: str = LATEST_LEGACY.name, **options: Any) -> Client:
    return Client.connect_stdio([sys.executable, str(HERE / "old_server.py"), manner, version], **options)


async def use(client: Client) -> None:
    """What the official server offers, called once each."""
    assert client.server_info["name"] == "sdk"
    assert client.instructions == "Be kind."
    assert [tool["name"] for tool in await client.list_tools()] == ["add", "count"]
    assert (await client.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
    steps: list[Any] = []
    await client.call_tool("count", progress=lambda params: steps.append(params["progress"]))
    assert steps == [1, 2]
    assert [resource["uri"] for resource in await client.list_resources()] == ["memo://today"]
    assert (await client.read_resource("memo://today"))[0]["text"] == "a fine day"
    assert [prompt["name"] for prompt in await client.list_prompts()] == ["greet"]
    assert (await client.get_prompt("greet", {"name": "Ann"}))["messages"][0]["content"]["text"] == "Hello Ann"
    assert await client.list_resource_templates() == []
    await client.ping()
    with pytest.raises(McpError) as caught:
        await client.request("no/such/method")
    assert caught.value.code == METHOD_NOT_FOUND


async def test_the_official_server_is_found_to_speak_the_newest_revision() -> None:
    async with Client.connect_stdio(SDK, probe_timeout=TIMEOUT) as client:
        assert client.revision is LATEST
        await use(client)
        sent = [entry.message["method"] for entry in client.transcript if entry.direction == "sent"]
    assert sent[0] == "server/discover"
    assert "initialize" not in sent


@pytest.mark.parametrize("revision", [min(LEGACY), max(LEGACY)])
async def test_the_official_server_speaks_every_handshake_revision_wished_for(revision: str) -> None:
    async with Client.connect_stdio(SDK, revision=revision) as client:
        assert client.revision.name == revision
        await use(client)
    assert client.transcript[0].message["method"] == "initialize"


async def test_a_process_that_refuses_discovery_gets_a_handshake() -> None:
    async with old() as client:
        assert (client.revision, client.instructions) == (LATEST_LEGACY, "old")
    methods = [entry.message["method"] for entry in client.transcript if entry.direction == "sent"]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_process_that_ignores_discovery_gets_a_handshake() -> None:
    async with old("deaf", R2024_11_05.name, probe_timeout=0.3) as client:
        assert client.revision is R2024_11_05
        await client.ping()


async def test_all_pages_of_a_list_are_read_and_a_loop_is_noticed() -> None:
    async with old() as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["tool0", "tool1", "tool2"]
        assert await client.request("tools/list", {"cursor": "loop"}) == {"tools": [], "nextCursor": "loop"}


async def test_the_server_may_ask_in_between() -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": params["message"]}}

    async with old(mode="legacy", elicitation=elicit, roots=[{"uri": "file:///x"}]) as client:
        declared = client.transcript[0].message["params"]["capabilities"]
        assert declared == {"elicitation": {"form": {}}, "roots": {}}
        for method, expected in (
            ("elicitation/create", '"result": {"action": "accept", "content": {"name": "who?"}}'),
            ("roots/list", '"result": {"roots": [{"uri": "file:///x"}]}'),
            ("ping", '"result": {}'),
            ("sampling/createMessage", '"error": {"code": -32601'),
        ):
            result = await client.call_tool("ask", {"method": method})
            assert expected in result["content"][0]["text"]


async def test_the_end_of_a_process_is_told_with_its_last_words() -> None:
    async with old("dying", mode="legacy") as client:
        with pytest.raises(ConnectionLostError, match=r"exit code 1(.|\n)*out of paper"):
            await client.call_tool("x")
        with pytest.raises(ConnectionLostError):
            await client.ping()


async def test_a_program_that_is_missing_is_told() -> None:
    with pytest.raises(ConnectionLostError, match=r"cannot start '/no/such/program'"):
        async with Client.connect_stdio(["/no/such/program"]):
            pass


async def test_text_between_messages_is_kept_as_evidence_and_does_no_harm() -> None:
    async with old("noisy", mode="legacy") as client:
        await client.ping()
    assert "a stray print" in [entry.message for entry in client.transcript]


async def test_a_process_ends_with_its_input_and_is_killed_if_it_does_not() -> None:
    async with old(mode="legacy") as client:
        pass
    assert isinstance(client.channel, StdioChannel)
    assert client.channel.returncode == 0
    command = [sys.executable, str(HERE / "old_server.py"), "stubborn", LATEST_LEGACY.name]
    async with Client(StdioChannel(command, grace=0.5), mode="legacy") as client:
        pass
    assert isinstance(client.channel, StdioChannel)
    assert client.channel.returncode == -9
