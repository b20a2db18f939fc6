"""Everything that the server says is valid by the published schema of the revision that it is said in."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.revisions.projection import RESULT_TYPES
from mcpfactory_runtime.testing import connect
from tests.runtime.interaction.sample import server
from tests.runtime.requirements import requirement
from tests.runtime.spec_types import faults

pytestmark = pytest.mark.anyio


def valid(value: Any, wire_type: str, revision: Revision) -> None:
    assert faults(value, wire_type, revision) == [], (wire_type, value)


async def use_everything(client: Client) -> None:
    """Call each tool, read each resource, get each prompt; whatever comes back is in the transcript."""
    unending = {"wait_for_ever"}
    given: dict[str, dict[str, Any]] = {
        "add": {"a": 1},
        "in_a_thread": {"text": "x"},
        "describe": {"book": {"title": "T"}},
    }
    for tool in await client.list_tools():
        if tool["name"] not in unending:
            try:
                await client.call_tool(tool["name"], given.get(tool["name"]), progress=lambda _: None)
            except McpError:
                continue
    await client.list_resource_templates()
    for uri in [resource["uri"] for resource in await client.list_resources()] + ["book://a/1", "memo://none"]:
        try:
            await client.read_resource(uri)
        except McpError:
            continue
    await client.list_prompts()
    await client.get_prompt("ask_for", {"topic": "tea"})
    await client.complete({"type": "ref/prompt", "name": "ask_for"}, "topic", "t")


def answers() -> dict[str, Any]:
    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        field = next(iter(params["requestedSchema"]["properties"]))
        return {"action": "accept", "content": {field: "x"}}

    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    return {"elicitation": elicit, "sampling": lambda _: said, "roots": [{"uri": "file:///work"}], "log_level": "debug"}


@requirement("message.schema", "message.notification-no-id")
async def test_every_message_of_the_server_is_valid_in_its_revision(revision: Revision) -> None:
    async with connect(server, revision=revision.name, **answers()) as client:
        await use_everything(client)
        entries = list(client.transcript)
    asked: dict[Any, str] = {}
    checked = 0
    for entry in entries:
        message = entry.message
        if entry.direction == "sent":
            if "method" in message and "id" in message:
                asked[message["id"]] = message["method"]
            continue
        checked += 1
        valid(message, "JSONRPCMessage", revision)
        if "result" in message:
            result = message["result"]
            wire_type = RESULT_TYPES.get(asked[message["id"]], "Result")
            valid(
                result, "InputRequiredResult" if result.get("resultType") == "input_required" else wire_type, revision
            )
        elif "method" in message and "id" not in message:
            valid(message, "ServerNotification", revision)
        elif "method" in message:
            valid(message, "ServerRequest", revision)
    assert checked > 40
