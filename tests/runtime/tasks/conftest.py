"""Clients of the sample server in memory and over HTTP, in both forms of tasks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.revisions import LATEST, R2025_11_25, TASKS
from mcpfactory_runtime.server.tasks.manager import TaskOptions
from mcpfactory_runtime.testing import connect as connect_memory
from mcpfactory_runtime.types import Json
from tests.runtime.tasks import sample
from tests.timeouts import TIMEOUT
from tests.timeouts import wait_until as until_true

Connect = Callable[..., AbstractAsyncContextManager[Client]]
SAMPLE = [sys.executable, str(Path(sample.__file__))]
EXTENDED: Json = {"elicitation": {"form": {}}, "sampling": {}, "extensions": {TASKS: {}}}
YES: Json = {"action": "accept", "content": {"go": True}}


@pytest.fixture(scope="session")
def sample_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the sample server as a process over HTTP; return its URL."""
    log = tmp_path_factory.mktemp("tasks") / "stderr"
    with log.open("wb") as stderr, subprocess.Popen([*SAMPLE, "--http", "--port", "0"], stderr=stderr) as process:
        until_true(
            lambda: "http://" in log.read_text("utf-8") or process.poll() is not None, lambda: log.read_text("utf-8")
        )
        told = log.read_text("utf-8")
        assert process.poll() is None, told
        yield told.split()[-1]
        process.terminate()
        assert process.wait(TIMEOUT) == 0


@pytest.fixture(params=["memory", "mounted", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def connect(transport: str, request: pytest.FixtureRequest) -> Connect:
    """Return a function that opens a client in memory, in a mounted server, or over HTTP; test_restart.py covers stdio."""
    url = request.getfixturevalue("sample_url") if transport == "http" else ""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Client]:
        if transport != "http":
            server = sample.make(TaskOptions(watch=0.01))
            if transport == "mounted":
                whole = Server("whole", tasks=TaskOptions(watch=0.01))
                whole.mount(server)
                server = whole
            async with connect_memory(server, **options) as client:
                yield client
        else:
            async with Client.connect_http(url, **options) as client:
                yield client

    return opened


def core(**options: Any) -> Json:
    """Return the options of a client of the core feature."""
    return {"revision": R2025_11_25.name, "timeout": TIMEOUT, **options}


def extension(**options: Any) -> Json:
    """Return the options of a client that declares the extension."""
    return {"revision": LATEST.name, "capabilities": EXTENDED, "timeout": TIMEOUT, **options}


async def begin(client: Client, tool: str, arguments: Json | None = None, **params: Any) -> Json:
    """Call a tool as a task; return the task."""
    task: Json = {} if client.revision.modern else {"task": {}}
    result = await client.request("tools/call", {"name": tool, "arguments": arguments or {}, **task, **params})
    if client.revision.modern:
        assert result["resultType"] == "task", result
        return result
    task: Json = result["task"]
    return task


async def get(client: Client, task: Json | str) -> Json:
    """Return the current task."""
    return await client.request("tasks/get", {"taskId": task if isinstance(task, str) else task["taskId"]})


async def until(client: Client, task: Json, *statuses: str) -> Json:
    """Poll until the task has one of the statuses; return the task."""
    now: Json = {}
    try:
        async with asyncio.timeout(TIMEOUT):
            while True:
                now = await get(client, task)
                if now["status"] in statuses:
                    return now
    except TimeoutError:
        raise AssertionError(now) from None


async def code(client: Client, method: str, params: Json) -> int:
    """Return the error code of a request that must be refused."""
    with pytest.raises(McpError) as caught:
        await client.request(method, params)
    return caught.value.code


def received(client: Client, method: str) -> list[Json]:
    """Return the params of the server's messages with a method."""
    messages = [entry.message for entry in client.transcript if entry.direction == "received"]
    return [message["params"] for message in messages if isinstance(message, dict) and message.get("method") == method]
