"""Tests of the fixtures for the conformance suite, in memory, in every revision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from mcpfactory_runtime import McpError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import REVISIONS, TASKS
from mcpfactory_runtime.testing import connect

from everything_mcp.content import JSON_SCHEMA
from everything_mcp.server import server

Value = TypeVar("Value")


def use(task: Callable[[Client], Awaitable[Value]], revision: str = "", **options: Any) -> Value:
    """Run `task` with a connected client."""

    async def run() -> Value:
        async with connect(server, revision=revision, **options) as client:
            return await task(client)

    return asyncio.run(run())


def answer(params: dict[str, Any]) -> dict[str, Any]:
    """Accept a form with a text in each text field, and defaults elsewhere."""
    fields = params["requestedSchema"]["properties"]
    texts = {name: "Ann" for name, field in fields.items() if field == {"type": "string"}}
    return {"action": "accept", "content": texts}


CLIENT: dict[str, Any] = {
    "elicitation": answer,
    "sampling": lambda _: {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}},
    "roots": [{"uri": "file:///work"}],
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_first_tool_can_be_called_without_arguments(revision: str) -> None:
    async def task(client: Client) -> dict[str, Any]:
        return await client.call_tool((await client.list_tools())[0]["name"])

    assert use(task, revision)["content"][0]["text"] == "This is a simple text response for testing."


def test_every_tool_and_prompt_has_a_description() -> None:
    async def task(client: Client) -> list[dict[str, Any]]:
        return [*await client.list_tools(), *await client.list_prompts()]

    assert [item["name"] for item in use(task) if not item.get("description")] == []


def test_the_2020_12_schema_is_listed_unchanged() -> None:
    async def task(client: Client) -> list[dict[str, Any]]:
        return await client.list_tools()

    schemas = {tool["name"]: tool["inputSchema"] for tool in use(task)}
    assert schemas["json_schema_2020_12_tool"] == JSON_SCHEMA
    assert schemas["test_x_mcp_header"]["properties"]["region"]["x-mcp-header"] == "Region"


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("test_sampling", {"prompt": "Capital?"}, "LLM response: Paris"),
        ("test_input_required_result_elicitation", {}, "Hello, Ann!"),
        ("test_input_required_result_multiple_inputs", {}, "Paris (accept, 1 roots)"),
        ("test_input_required_result_multi_round", {}, "{'name': 'Ann'} likes {'color': 'Ann'}"),
        ("test_elicitation_sep1034_defaults", {}, "John Doe"),
    ],
)
def test_tools_ask_in_both_lifecycles(tool: str, arguments: dict[str, Any], text: str) -> None:
    for revision in list(REVISIONS)[-2:]:
        result = use(lambda client: client.call_tool(tool, arguments), revision, **CLIENT)
        assert text in result["content"][0]["text"]


def test_only_declared_capabilities_are_asked_for() -> None:
    result = use(
        lambda client: client.call_tool("test_input_required_result_capabilities"), sampling=CLIENT["sampling"]
    )
    assert result["content"][0]["text"] == "Answered: greeting"


def test_a_needed_capability_is_named() -> None:
    with pytest.raises(McpError) as refused:
        use(lambda client: client.call_tool("test_missing_capability"))
    assert refused.value.data == {"requiredCapabilities": {"sampling": {}}}


def test_changing_tools_come_and_go() -> None:
    async def task(client: Client) -> list[bool]:
        present = []
        for _ in range(2):
            await client.call_tool("test_trigger_tool_change")
            present.append("changing_tool" in [tool["name"] for tool in await client.list_tools()])
        return present

    assert sorted(use(task)) == [False, True]


def test_resources_and_prompts_are_read() -> None:
    async def task(client: Client) -> tuple[Any, Any]:
        data = await client.read_resource("test://template/7/data")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        return data[0]["text"], prompt["messages"][0]["content"]["text"]

    data, prompt = use(task)
    assert '"id":"7"' in data
    assert prompt == "Prompt with arguments: arg1='a', arg2='b'"


def test_tools_can_be_tasks_and_wait_for_answers() -> None:
    async def task(client: Client) -> dict[str, Any]:
        made = await client.request("tools/call", {"name": "confirm_delete", "arguments": {"filename": "a"}})
        wanted = {"taskId": made["taskId"]}
        while "inputRequests" not in await client.request("tasks/get", wanted):
            pass
        answers = {"confirm": {"action": "accept", "content": {"confirm": True}}}
        await client.request("tasks/update", {**wanted, "inputResponses": answers})
        while (state := await client.request("tasks/get", wanted))["status"] == "working":
            pass
        result: dict[str, Any] = state["result"]
        return result

    declared = {"elicitation": {}, "extensions": {TASKS: {}}}
    assert use(task, capabilities=declared)["content"][0]["text"] == "Deleted a."


def test_the_skill_is_served_with_all_its_files() -> None:
    async def task(client: Client) -> list[str]:
        (skill,) = (await client.request("skills/list"))["skills"]
        for file in skill["resources"]:
            await client.read_resource(file["uri"])
        return [file["uri"] for file in skill["resources"]]

    assert len(use(task)) == 3
