"""Tasks as the last handshake revision has them in its core, in memory and over HTTP."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import R2025_11_25
from mcpfactory_runtime.server.tasks.manager import RELATED, TaskOptions
from mcpfactory_runtime.testing import connect as connect_memory
from mcpfactory_runtime.types import Json
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import YES, Connect, begin, code, core, get, received, until
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


def call(tool: str, **params: Any) -> Json:
    return {"name": tool, "arguments": {}, **params}


@requirement("task-core.capability", "task-core.listed-to-known")
async def test_tasks_are_offered_and_listing_them_only_where_clients_can_be_told_apart(
    connect: Connect, transport: str
) -> None:
    async with connect(**core()) as client:
        offered = client.capabilities["tasks"]
        assert offered["requests"] == {"tools": {"call": {}}}
        assert offered["cancel"] == {}
        assert ("list" in offered) == (transport != "http")
        if transport == "http":
            assert await code(client, "tasks/list", {}) == METHOD_NOT_FOUND
        assert "extensions" not in client.capabilities
        support = {tool["name"]: tool.get("execution") for tool in await client.list_tools()}
    assert support["work"] == {"taskSupport": "optional"}
    assert support["only_as_task"] == {"taskSupport": "required"}
    assert support["plain"] is None


@requirement("task-core.required", "task-core.forbidden")
async def test_tool_and_client_must_agree_on_a_task(connect: Connect) -> None:
    async with connect(**core()) as client:
        assert await code(client, "tools/call", call("only_as_task")) == METHOD_NOT_FOUND
        assert await code(client, "tools/call", call("plain", task={})) == METHOD_NOT_FOUND
        assert (await client.request("tools/call", call("count")))["structuredContent"] == {"result": 7}


@requirement("task-core.undeclared")
async def test_a_server_without_tasks_takes_no_notice_of_the_wish_for_one() -> None:
    from tests.runtime.interaction.sample import server

    async with connect_memory(server, revision=R2025_11_25.name) as client:
        assert "tasks" not in client.capabilities
        result = await client.request("tools/call", {"name": "add", "arguments": {"a": 1}, "task": {"ttl": 5}})
        assert result["content"]
        assert await code(client, "tasks/get", {"taskId": "x"}) == METHOD_NOT_FOUND


@requirement(
    "task-core.created",
    "task-core.id",
    "task-core.begins-working",
    "task-core.timestamps",
    "task-core.ttl",
    "task-core.get",
    "task-core.result",
    "task-core.related",
    "task-core.not-related",
)
async def test_a_call_becomes_a_task_with_the_result_of_the_plain_call(connect: Connect) -> None:
    async with connect(**core()) as client:
        plain = await client.request("tools/call", call("count"))
        created = await client.request("tools/call", call("count", task={"ttl": 60_000}))
        task = created["task"]
        assert task["status"] == "working"
        assert task["ttl"] == 60_000
        assert task["pollInterval"] > 0
        assert len(task["taskId"]) >= 20
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", task["createdAt"])
        assert task["lastUpdatedAt"] >= task["createdAt"]
        assert created["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        result = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert result.pop("_meta") == {RELATED: {"taskId": task["taskId"]}}
        assert result == plain
        done = await get(client, task)
        assert (done["status"], done["createdAt"], done["ttl"]) == ("completed", task["createdAt"], 60_000)
        assert "_meta" not in done
        assert "result" not in done
        again = await begin(client, "count")
        assert again["taskId"] != task["taskId"]


@requirement("task-core.result-waits", "task-core.input-required", "task-core.related", "task-core.transitions")
async def test_the_result_is_waited_for_and_questions_travel_with_it(connect: Connect) -> None:
    asked: list[Json] = []

    def elicit(params: Json) -> Json:
        asked.append(params)
        return YES

    async with connect(**core(elicitation=elicit)) as client:
        task = await begin(client, "work")
        waiting = await until(client, task, "input_required")
        assert asked == []  # nothing is asked before the client comes for it
        result = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert result["structuredContent"] == {"result": "went on: True"}
        assert asked[0]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        assert asked[0]["message"] == "Go on?"
        done = await get(client, task)
        assert done["status"] == "completed"
        assert done["lastUpdatedAt"] >= waiting["lastUpdatedAt"]


async def test_several_questions_are_put_at_once_and_answers_may_come_in_any_order(connect: Connect) -> None:
    second = asyncio.Event()

    async def elicit(params: Json) -> Json:
        if params["message"] == "A?":
            await second.wait()
            return YES
        second.set()
        return {"action": "accept", "content": {"go": False}}

    async with connect(**core(elicitation=elicit)) as client:
        task = await begin(client, "ask_both")
        result = await client.request("tasks/result", {"taskId": task["taskId"]})
    assert result["content"][0]["text"] == "True False"


@requirement("task-core.cancel", "task-core.cancel-ended", "task-core.transitions")
async def test_a_task_is_cancelled_once_and_has_no_result(connect: Connect) -> None:
    async with connect(**core(elicitation=lambda _: YES)) as client:
        task = await begin(client, "work")
        await until(client, task, "input_required")
        cancelled = await client.request("tasks/cancel", {"taskId": task["taskId"]})
        assert cancelled["status"] == "cancelled"
        assert cancelled["taskId"] == task["taskId"]
        assert "_meta" not in cancelled
        assert await code(client, "tasks/cancel", {"taskId": task["taskId"]}) == INVALID_PARAMS
        assert await code(client, "tasks/result", {"taskId": task["taskId"]}) == INVALID_REQUEST
        done = await begin(client, "count")
        await until(client, done, "completed")
        assert await code(client, "tasks/cancel", {"taskId": done["taskId"]}) == INVALID_PARAMS


@requirement("task-core.result-waits")
async def test_who_waits_for_the_result_learns_that_the_task_was_cancelled(connect: Connect) -> None:
    asked = asyncio.Event()

    async def elicit(params: Json) -> Json:
        asked.set()
        await asyncio.Event().wait()
        return YES

    async with connect(**core(elicitation=elicit)) as client:
        task = await begin(client, "work")
        waiting = asyncio.ensure_future(client.request("tasks/result", {"taskId": task["taskId"]}))
        await asked.wait()
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        with pytest.raises(McpError) as caught:
            await waiting
        assert caught.value.code == INVALID_REQUEST


@requirement("task-core.failed", "task-core.result")
async def test_a_tool_that_reports_an_error_is_a_failed_task_with_a_result(connect: Connect) -> None:
    async with connect(**core()) as client:
        task = await begin(client, "fail")
        failed = await until(client, task, "failed", "completed")
        assert (failed["status"], failed["statusMessage"]) == ("failed", "out of tea")
        result = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert result["isError"] is True


@requirement("task-core.failed", "task-core.result")
async def test_an_error_of_the_protocol_is_answered_as_it_was_raised(connect: Connect) -> None:
    async with connect(**core()) as client:
        task = await begin(client, "break_down")
        assert (await until(client, task, "failed", "completed"))["status"] == "failed"
        with pytest.raises(McpError) as caught:
            await client.request("tasks/result", {"taskId": task["taskId"]})
        assert (caught.value.code, caught.value.message, caught.value.data) == (sample.BROKEN, "broken", {"part": 1})
        crashed = await begin(client, "crash")
        result = await client.request("tasks/result", {"taskId": crashed["taskId"]})
        assert result["isError"] is True
        assert "secret" not in str(result)


@requirement("task-core.unknown")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["nothing", "", 5, None])
async def test_an_unknown_task_is_refused(method: str, task_id: Any) -> None:
    async with connect_memory(sample.make(), **core()) as client:
        assert await code(client, method, {"taskId": task_id}) == INVALID_PARAMS


@requirement("task-core.list")
async def test_tasks_are_listed_in_pages_in_the_order_of_creation() -> None:
    async with connect_memory(sample.make(page_size=2), **core()) as client:
        made = [(await begin(client, "count"))["taskId"] for _ in range(5)]
        first = await client.request("tasks/list")
        second = await client.request("tasks/list", {"cursor": first["nextCursor"]})
        third = await client.request("tasks/list", {"cursor": second["nextCursor"]})
        assert [task["taskId"] for page in (first, second, third) for task in page["tasks"]] == made
        assert "nextCursor" not in third
        assert "_meta" not in first
        for cursor in ("nonsense", "bm9uZQ==", "\xe9", 5):
            assert await code(client, "tasks/list", {"cursor": cursor}) == INVALID_PARAMS


@requirement("task-core.progress", "task-core.related")
async def test_progress_and_messages_go_on_after_the_call_was_answered(connect: Connect) -> None:
    seen: list[Json] = []
    async with connect(**core(elicitation=lambda _: YES)) as client:
        await client.set_log_level("debug")
        created = await client.request("tools/call", call("steps", task={}), progress=seen.append)
        task_id = created["task"]["taskId"]
        assert (await client.request("tasks/result", {"taskId": task_id}))["content"][0]["text"] == "all steps done"
        async with asyncio.timeout(TIMEOUT):
            while len(received(client, "notifications/progress")) < 2:
                await client.ping()
        told = received(client, "notifications/progress")
        assert [params["progress"] for params in told] == [1, 3]
        assert len({params["progressToken"] for params in told}) == 1
        assert all(params["_meta"] == {RELATED: {"taskId": task_id}} for params in told)
        assert [params["_meta"] for params in received(client, "notifications/message")] == [
            {RELATED: {"taskId": task_id}}
        ]


@requirement("task-core.limits")
async def test_running_tasks_and_their_time_are_bounded() -> None:
    options = TaskOptions(limit=2, ttl=5_000, max_ttl=60_000, watch=0.01)
    async with connect_memory(sample.make(options), **core(elicitation=lambda _: YES)) as client:
        running = [await begin(client, "work") for _ in range(2)]
        assert running[0]["ttl"] == 5_000
        assert await code(client, "tools/call", call("work", task={})) == INVALID_REQUEST
        await client.request("tasks/cancel", {"taskId": running[0]["taskId"]})
        async with asyncio.timeout(TIMEOUT):
            while True:  # the place is free when the handler has ended
                try:
                    long = await begin(client, "work", task={"ttl": 999_999})
                except McpError:
                    continue
                break
        assert long["ttl"] == 60_000
