"""The extension `io.modelcontextprotocol/tasks` of the newest revision, in memory and over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_SUBSCRIPTION
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    McpError,
)
from mcpfactory_runtime.revisions import LATEST, TASKS
from mcpfactory_runtime.testing import connect as connect_memory
from mcpfactory_runtime.types import Json
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import EXTENDED, YES, Connect, begin, code, extension, get, received, until
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

UNDECLARED: Json = {"_meta": {META_CAPABILITIES: {"elicitation": {"form": {}}}}}


def call(tool: str, **params: Any) -> Json:
    return {"name": tool, "arguments": {}, **params}


async def update(client: Client, task: Json, **responses: Any) -> Json:
    return await client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": responses})


def bare(result: Json) -> Json:
    """A result without the server's introduction."""
    return {key: value for key, value in result.items() if key != "_meta"}


@requirement("task.advertised")
async def test_the_extension_is_advertised_and_the_old_capability_is_not(connect: Connect) -> None:
    async with connect(**extension()) as client:
        assert client.capabilities["extensions"][TASKS] == {}
        assert "tasks" not in client.capabilities
        assert all("execution" not in tool for tool in await client.list_tools())


@requirement("version.extensions-off")
@requirement("task.declared", "task.required")
async def test_who_does_not_declare_the_extension_with_the_request_gets_no_task(connect: Connect) -> None:
    async with connect(**extension()) as client:
        plain = await client.request("tools/call", call("count", **UNDECLARED))
        assert plain["resultType"] == "complete"
        assert plain["structuredContent"] == {"result": 7}
        with pytest.raises(McpError) as caught:
            await client.request("tools/call", call("only_as_task", **UNDECLARED))
        assert caught.value.code == MISSING_CAPABILITY
        assert caught.value.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        asked = await client.request("tools/call", call("work", **UNDECLARED))  # an ordinary call that asks
        assert asked["resultType"] == "input_required"


@requirement("task.undeclared-methods")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_the_methods_are_refused_to_who_does_not_declare_the_extension(connect: Connect, method: str) -> None:
    async with connect(**extension()) as client:
        task = await begin(client, "work")
        params = {"taskId": task["taskId"], "inputResponses": {}, **UNDECLARED}
        assert await code(client, method, params) == MISSING_CAPABILITY


@requirement("task.result-type", "task.durable", "task.unguessable", "task.complete", "task.get")
async def test_a_call_becomes_a_task_that_ends_with_the_result_of_the_plain_call(connect: Connect) -> None:
    async with connect(**extension()) as client:
        plain = await client.request("tools/call", call("count", **UNDECLARED))
        task = await client.request("tools/call", call("count"))
        assert task["resultType"] == "task"
        assert task["status"] in ("working", "completed")
        assert len(task["taskId"]) >= 20
        assert type(task["ttlMs"]) is int
        assert type(task["pollIntervalMs"]) is int
        assert not task.keys() & {"task", "ttl", "pollInterval", "result", "error", "inputRequests", "requestState"}
        assert (await get(client, task))["taskId"] == task["taskId"]
        done = await until(client, task, "completed")
        assert done["resultType"] == "complete"
        assert bare(done["result"]) == bare(plain)
        assert "_meta" not in done["result"]
        assert (done["createdAt"], done["ttlMs"]) == (task["createdAt"], task["ttlMs"])


@requirement("task.tool-error", "task.failed", "task.get")
async def test_what_a_tool_reports_completes_a_task_and_what_breaks_the_protocol_fails_it(connect: Connect) -> None:
    async with connect(**extension()) as client:
        failed = await until(client, await begin(client, "fail"), "completed", "failed")
        assert failed["status"] == "completed"
        assert failed["result"]["isError"] is True
        crashed = await until(client, await begin(client, "crash"), "completed", "failed")
        assert crashed["status"] == "completed"
        assert "secret" not in str(crashed)
        broken = await until(client, await begin(client, "break_down"), "completed", "failed")
        assert broken["status"] == "failed"
        assert broken["error"] == {"code": sample.BROKEN, "message": "broken", "data": {"part": 1}}
        assert "result" not in broken


@requirement("task.all-questions", "task.update", "task.update-partial", "task.complete")
async def test_questions_are_answered_one_by_one_and_unknown_answers_are_ignored(connect: Connect) -> None:
    async with connect(**extension()) as client:
        task = await begin(client, "ask_both")
        asking = await until(client, task, "input_required")
        assert set(asking["inputRequests"]) == {"a", "b"}
        assert asking["inputRequests"]["a"] == {
            "method": "elicitation/create",
            "params": {"message": "A?", "requestedSchema": sample.GO},
        }
        assert bare(await update(client, task, a=YES, nobody={"x": 1})) == {"resultType": "complete"}
        still = await get(client, task)
        assert (still["status"], set(still["inputRequests"])) == ("input_required", {"b"})
        await update(client, task, a={"action": "cancel"})  # answered already: ignored
        await update(client, task, b={"action": "accept", "content": {"go": False}})
        done = await until(client, task, "completed", "failed")
        assert done["result"]["content"][0]["text"] == "True False"
        assert bare(await update(client, task, b=YES)) == {"resultType": "complete"}  # ended: ignored


@requirement("task.keys")
async def test_no_key_is_used_for_two_questions(connect: Connect) -> None:
    async with connect(**extension()) as client:
        task = await begin(client, "ask_twice")
        first = set((await until(client, task, "input_required"))["inputRequests"])
        await update(client, task, **dict.fromkeys(first, YES))
        async with asyncio.timeout(TIMEOUT):
            while not (second := set((await get(client, task)).get("inputRequests", {}))):
                pass
        assert first == {"again"}
        assert len(second) == 1
        assert not first & second
        await update(client, task, **dict.fromkeys(first | second, YES))
        done = await until(client, task, "completed")
        assert done["result"]["structuredContent"] == {"result": [True, True]}


@requirement("task.cancel", "task.complete")
async def test_cancelling_is_acknowledged_however_often(connect: Connect) -> None:
    async with connect(**extension()) as client:
        task = await begin(client, "work")
        await until(client, task, "input_required")
        for _ in range(3):
            assert bare(await client.request("tasks/cancel", {"taskId": task["taskId"]})) == {"resultType": "complete"}
        cancelled = await get(client, task)
        assert cancelled["status"] == "cancelled"
        assert not cancelled.keys() & {"result", "error", "inputRequests"}
        done = await until(client, await begin(client, "count"), "completed")
        await client.request("tasks/cancel", {"taskId": done["taskId"]})
        assert (await get(client, done))["status"] == "completed"


@requirement("task.unknown-get", "task.unknown-other")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_an_unknown_task_is_refused(connect: Connect, method: str) -> None:
    async with connect(**extension()) as client:
        assert await code(client, method, {"taskId": "nothing", "inputResponses": {}}) == INVALID_PARAMS


@requirement("task.retired")
@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_what_the_core_feature_had_is_gone(connect: Connect, method: str) -> None:
    async with connect(**extension()) as client:
        assert await code(client, method, {"taskId": "x"}) == METHOD_NOT_FOUND


@requirement("task.ignores-old")
async def test_the_old_wish_for_a_task_changes_nothing(connect: Connect) -> None:
    async with connect(**extension()) as client:
        for requested in ({"ttl": 5}, "nonsense"):
            assert (await client.request("tools/call", call("plain", task=requested)))["resultType"] == "complete"
            assert (await client.request("tools/call", call("count", task=requested)))["ttlMs"] == 3_600_000


@requirement("task.asks-first")
async def test_a_tool_may_ask_in_the_request_and_become_a_task_afterwards(connect: Connect) -> None:
    async with connect(**extension()) as client:
        first = await client.request("tools/call", call("later", arguments={"quick": False}))
        assert first["resultType"] == "input_required"
        assert "taskId" not in first
        answers = {
            "inputResponses": {"name": {"action": "accept", "content": {"name": "Ann"}}},
            "requestState": first["requestState"],
        }
        task = await client.request("tools/call", call("later", arguments={"quick": False}, **answers))
        assert task["resultType"] == "task"
        assert not task.keys() & {"requestState", "inputRequests"}
        await until(client, task, "input_required")
        await update(client, task, go=YES)
        done = await until(client, task, "completed", "failed")
        assert done["result"]["structuredContent"] == {"result": "Ann True"}


@requirement("task.no-progress")
async def test_a_task_sends_neither_progress_nor_messages_but_says_how_it_goes(connect: Connect) -> None:
    async with connect(**extension(log_level="debug")) as client:
        task = await client.request("tools/call", call("steps"), progress=lambda _: None)
        async with asyncio.timeout(TIMEOUT):
            while (await get(client, task)).get("statusMessage") != "one of three":
                pass
        await until(client, task, "input_required")
        await update(client, task, go=YES)
        done = await until(client, task, "completed")
        assert done["statusMessage"] == "three of three"
        assert received(client, "notifications/progress") == []
        assert received(client, "notifications/message") == []


@requirement("task.status-listen")
async def test_a_stream_tells_of_the_tasks_that_it_names(connect: Connect) -> None:
    async with connect(**extension()) as client:
        task, other = await begin(client, "work"), await begin(client, "work")
        wanted = {"notifications": {"taskIds": [task["taskId"], "unknown", task["taskId"]]}}
        listening = asyncio.ensure_future(client.request("subscriptions/listen", wanted, timeout=None))
        async with asyncio.timeout(TIMEOUT):
            while not received(client, "notifications/subscriptions/acknowledged"):
                await client.request("server/discover")
            await until(client, task, "input_required")
            await update(client, task, go=YES)
            await update(client, other, go=YES)
            while [told["status"] for told in received(client, "notifications/tasks")][-1:] != ["completed"]:
                await client.request("server/discover")
        listening.cancel()
        acknowledged = received(client, "notifications/subscriptions/acknowledged")[0]
        assert acknowledged["notifications"] == {"taskIds": [task["taskId"]]}
        told = received(client, "notifications/tasks")
        assert {params["taskId"] for params in told} == {task["taskId"]}
        tags = {str(params["_meta"][META_SUBSCRIPTION]) for params in [acknowledged, *told]}
        assert len(tags) == 1
        done = await get(client, task)
        assert {key: told[-1][key] for key in told[-1] if key != "_meta"} == {
            key: done[key] for key in done if key not in ("_meta", "resultType")
        }


@requirement("task.status-undeclared")
async def test_a_stream_for_tasks_needs_the_extension() -> None:
    async with connect_memory(sample.make(), **extension()) as client:
        wanted: Json = {"notifications": {"taskIds": ["x"]}, **UNDECLARED}
        assert await code(client, "subscriptions/listen", wanted) == MISSING_CAPABILITY
        wrong: Any
        for wrong in ("x", [5], {}):
            assert await code(client, "subscriptions/listen", {"notifications": {"taskIds": wrong}}) == INVALID_PARAMS


@requirement("task.header")
async def test_over_http_the_name_header_repeats_the_task(sample_url: str) -> None:
    import httpx

    async with Client.connect_http(sample_url, **extension()) as client, httpx.AsyncClient(trust_env=False) as http:
        task = await begin(client, "count")
        sent = next(entry.message for entry in client.transcript if entry.direction == "sent")
        envelope = {**sent["params"]["_meta"], META_CAPABILITIES: EXTENDED}
        for named, expected in (
            ({"Mcp-Name": task["taskId"]}, None),
            ({"Mcp-Name": "other"}, HEADER_MISMATCH),
            ({}, HEADER_MISMATCH),
        ):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                body = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": method,
                    "params": {"taskId": task["taskId"], "inputResponses": {}, "_meta": envelope},
                }
                headers = {"MCP-Protocol-Version": LATEST.name, "Mcp-Method": method, **named}
                response = await http.post(sample_url, json=body, headers=headers)
                assert response.json().get("error", {}).get("code") == expected
                assert response.status_code == (200 if expected is None else 400)
