"""A store in a file: the process is killed, comes back, or has others beside it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.server.tasks.manager import ENVIRONMENT, TaskOptions
from mcpfactory_runtime.storage.tasks import SqliteTaskStore
from mcpfactory_runtime.testing import connect as connect_memory
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import SAMPLE, YES, begin, code, core, extension, get, until
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


def process_of(client: Client) -> int:
    pid: int = client.channel._process.pid  # type: ignore[attr-defined]  # a test may kill
    return pid


@requirement("task.durable")
async def test_after_a_kill_finished_tasks_are_answered_and_running_ones_have_failed(tmp_path: Path) -> None:
    env = {ENVIRONMENT: str(tmp_path / "tasks.db")}
    async with Client.connect_stdio(SAMPLE, env, **extension()) as client:
        done = await until(client, await begin(client, "count"), "completed")
        running = await begin(client, "work")
        await until(client, running, "input_required")
        os.kill(process_of(client), signal.SIGKILL)
    async with Client.connect_stdio(SAMPLE, env, **extension()) as client:
        kept = await get(client, done)
        assert {**kept, "_meta": None} == {**done, "_meta": None}
        lost = await until(client, running, "failed")  # when the lease of its process is over
        assert lost["error"]["code"] == INTERNAL_ERROR
        assert "process ended" in lost["error"]["message"]
        assert "hint:" in lost["error"]["message"]
    async with Client.connect_stdio(SAMPLE, env, **core()) as client:  # and a client of the other form
        listed = (await client.request("tasks/list"))["tasks"]
        assert [task["status"] for task in listed] == ["completed", "failed"]
        result = await client.request("tasks/result", {"taskId": done["taskId"]})
        assert result["structuredContent"] == {"result": 7}
        assert await code(client, "tasks/result", {"taskId": running["taskId"]}) == INTERNAL_ERROR


async def test_a_server_that_ends_in_order_fails_what_is_running(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with connect_memory(sample.make(path), **extension()) as client:
        running = await begin(client, "work")
        await until(client, running, "input_required")
    async with connect_memory(sample.make(path), **extension()) as client:
        ended = await get(client, running)
        assert ended["status"] == "failed"
        assert "server ended" in ended["error"]["message"]


async def test_processes_that_share_a_file_see_and_answer_and_cancel_each_others_tasks(tmp_path: Path) -> None:
    def store() -> TaskOptions:
        return TaskOptions(SqliteTaskStore(tmp_path / "tasks.db"), watch=0.01)

    one, two = sample.make(store()), sample.make(store())
    async with connect_memory(one, **extension()) as worker, connect_memory(two, **extension()) as other:
        task = await begin(worker, "work")
        assert set((await until(other, task, "input_required"))["inputRequests"]) == {"go"}
        await other.request("tasks/update", {"taskId": task["taskId"], "inputResponses": {"go": YES}})
        done = await until(other, task, "completed", "failed")
        assert done["result"]["structuredContent"] == {"result": "went on: True"}

        thread = await begin(worker, "in_a_thread")
        await other.request("tasks/cancel", {"taskId": thread["taskId"]})
        assert (await get(worker, thread))["status"] == "cancelled"
    async with asyncio.timeout(TIMEOUT):
        while sample.RUNNING.is_set():
            await asyncio.to_thread(lambda: None)


async def test_a_task_whose_other_process_died_is_failed_while_we_live(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with connect_memory(sample.make(path), **extension()) as client:
        async with Client.connect_stdio(SAMPLE, {ENVIRONMENT: str(path)}, **extension()) as other:
            task = await begin(other, "work")
            assert (await until(client, task, "input_required"))["taskId"] == task["taskId"]
            os.kill(process_of(other), signal.SIGKILL)
        assert (await until(client, task, "failed"))["error"]["code"] == INTERNAL_ERROR
