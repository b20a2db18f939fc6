"""Ends that come at the same time, and requests that are given up."""

from __future__ import annotations

import asyncio

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.testing import connect as connect_memory
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import YES, begin, core, extension, get, until
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


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
        async with asyncio.timeout(TIMEOUT):
            await interrupted.wait()
