"""Ends that come at the same time, and requests that are given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.tasks.manager import TaskManager, TaskOptions
from mcpfactory_runtime.server.tasks.record import Task
from mcpfactory_runtime.server.tasks.store import MemoryTaskStore
from mcpfactory_runtime.testing import connect as connect_memory
from tests.patience import PATIENCE
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import YES, begin, core, extension, get, until

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@requirement("task-core.cancelled-stays", "task-core.transitions")
async def test_a_cancelled_task_stays_cancelled_whatever_its_handler_returns() -> None:
    async with connect_memory(sample.make(), **core(elicitation=lambda _: YES)) as client:
        task = await begin(client, "stubborn")
        await until(client, task, "input_required")
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        for _ in range(20):
            assert (await get(client, task))["status"] == "cancelled"


@pytest.mark.parametrize("round", range(20))
async def test_an_answer_and_a_cancellation_at_once_leave_one_end_that_lasts(round: int) -> None:  # noqa: A002 - says what it is
    async with connect_memory(sample.make(), **extension()) as client:
        task = await begin(client, "work")
        await until(client, task, "input_required")
        answer = client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": {"go": YES}})
        cancel = client.request("tasks/cancel", {"taskId": task["taskId"]})
        await asyncio.gather(*((answer, cancel) if round % 2 else (cancel, answer)))
        end = await until(client, task, "completed", "cancelled", "failed")
        assert end["status"] in ("completed", "cancelled")
        assert ("result" in end) == (end["status"] == "completed")
        for _ in range(5):
            assert await get(client, task) == end


async def test_two_cancellations_at_once_of_the_core_feature_succeed_once() -> None:
    async with connect_memory(sample.make(), **core(elicitation=lambda _: YES)) as client:
        task = await begin(client, "work")
        await until(client, task, "input_required")
        wanted = {"taskId": task["taskId"]}
        ends = await asyncio.gather(
            client.request("tasks/cancel", wanted), client.request("tasks/cancel", wanted), return_exceptions=True
        )
        assert sum(isinstance(end, McpError) for end in ends) == 1


async def test_a_cancelled_function_is_interrupted_where_it_waits() -> None:
    server = Server("interrupted")
    started, interrupted = asyncio.Event(), asyncio.Event()

    @server.tool(task="optional")
    async def think(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.cancelled
            interrupted.set()
        return "never"

    async with connect_memory(server, **extension()) as client:
        task = await begin(client, "think")
        await started.wait()
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        async with asyncio.timeout(PATIENCE):
            await interrupted.wait()


async def test_of_two_who_wait_the_second_takes_over_when_the_first_is_lost() -> None:
    calls: list[asyncio.Event] = []
    asked = asyncio.Event()

    async def elicit(params: Json) -> Json:
        calls.append(asyncio.Event())
        asked.set()
        if len(calls) == 1:
            await calls[0].wait()
        return YES

    server = sample.make(TaskOptions(watch=0.01))
    async with connect_memory(server, **core(elicitation=elicit)) as client:
        task = await begin(client, "work")
        wanted = {"taskId": task["taskId"]}
        first = asyncio.ensure_future(client.request("tasks/result", wanted))
        await asked.wait()
        second = asyncio.ensure_future(client.request("tasks/result", wanted))
        await client.ping()
        manager = server.extensions.task_manager
        assert manager is not None
        async with asyncio.timeout(PATIENCE):
            while manager._watches[task["taskId"]].version < 0:  # until both know the newest version
                await client.ping()
        assert len(calls) == 1
        first.cancel()
        assert (await second)["structuredContent"] == {"result": "went on: True"}


async def test_who_knows_an_older_version_than_others_is_told_again() -> None:
    manager = TaskManager(TaskOptions(watch=0.01))
    task = await manager.create("tool", "", None)
    told: list[Task | None] = []
    changed = asyncio.Event()

    def late(now: Task | None) -> None:
        told.append(now)
        changed.set()

    manager.watch(task, lambda _: None)
    newer = await manager.change(task.id, lambda now: now.with_message("news"))
    manager.watch(task, late)  # with what it read before the change
    async with asyncio.timeout(PATIENCE):
        await changed.wait()
    assert told == [newer]
    await manager.close()


class SlowStore(MemoryTaskStore):
    """A store that keeps tasks only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def create(self, task: Task) -> Task:
        self.asked.set()
        await self.let.wait()
        return await super().create(task)


async def test_a_call_that_is_given_up_before_the_task_is_kept_leaves_nothing_behind() -> None:
    store = SlowStore()
    async with connect_memory(sample.make(TaskOptions(store)), **extension()) as client:
        given_up = asyncio.ensure_future(client.request("tools/call", {"name": "work", "arguments": {}}))
        await store.asked.wait()
        given_up.cancel()
        await client.request("server/discover")
        store.let.set()
        await client.request("server/discover")
        assert await store.list("", None, 9) == ([], False)


async def test_a_call_that_is_given_up_before_it_becomes_a_task_is_cancelled() -> None:
    server = Server("given-up")
    started, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool(task="required", defer_task=True)
    async def think(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    async with connect_memory(server, **extension()) as client:
        call = asyncio.ensure_future(client.request("tools/call", {"name": "think", "arguments": {}}))
        await started.wait()
        call.cancel()
        async with asyncio.timeout(PATIENCE):
            await cancelled.wait()


async def test_a_result_without_a_json_form_fails_the_task_and_nothing_else() -> None:
    server = Server("odd")

    @server.tool(task="required")
    async def odd(ctx: Context) -> Any:
        from mcpfactory_runtime import ToolResult

        return ToolResult([{"type": "text", "text": object()}])

    async with connect_memory(server, **extension()) as client:
        end = await until(client, await begin(client, "odd"), "failed", "completed")
        assert end["status"] == "failed"


async def test_a_deferred_tool_is_a_task_from_the_beginning_for_who_asked_for_one() -> None:
    def elicit(params: Json) -> Json:
        return YES if params["message"] == "Go on?" else {"action": "accept", "content": {"name": "Ann"}}

    async with connect_memory(sample.make(), **core(elicitation=elicit)) as client:
        task = await begin(client, "later", {"quick": False})
        result = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert result["structuredContent"] == {"result": "Ann True"}
        plain = await client.request("tools/call", {"name": "later", "arguments": {"quick": False}})
        assert plain["structuredContent"] == {"result": "Ann True"}


async def test_a_task_ends_with_the_last_of_a_burst_of_messages(tmp_path: Path) -> None:
    server = Server("burst", tasks=tmp_path / "tasks.db")

    @server.tool(task="required")
    async def burst(ctx: Context) -> str:
        for number in range(1000):
            await ctx.report_progress(number, 1000, f"number {number}")
            if number < 5:
                await asyncio.sleep(0)  # the store is at work on one of them when the rest comes
        return "done"

    async with connect_memory(server, **extension()) as client:
        done = await until(client, await begin(client, "burst"), "completed")
        assert done["statusMessage"] == "number 999"


def test_a_tool_says_what_task_can_be() -> None:
    server = Server("wrong")
    with pytest.raises(ValueError, match="hint: 'optional' or 'required'"):

        @server.tool(task="always")  # type: ignore[call-overload, untyped-decorator]  # that is what is tested
        async def tool() -> str:
            return ""


async def test_reading_waiting_and_following_leave_nothing_behind_in_the_manager() -> None:
    server = sample.make(TaskOptions(watch=0.01))
    async with connect_memory(server, **core(elicitation=lambda _: YES)) as client:
        for _ in range(3):
            task = await begin(client, "work")
            await client.request("tasks/result", {"taskId": task["taskId"]})
        manager = server.extensions.task_manager
        assert manager is not None
        async with asyncio.timeout(PATIENCE):
            while manager._watches or manager._runs or manager._supervisors or manager._claims:
                await client.ping()
