"""Everything that a server says of tasks in the core feature is valid by the specification's published schema."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.revisions import R2025_11_25
from mcpfactory_runtime.testing import connect as connect_memory
from tests.runtime.spec_types import faults
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import YES, begin, core, get, until

pytestmark = pytest.mark.anyio

RESULTS = {
    "initialize": "InitializeResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CreateTaskResult",
    "tasks/get": "GetTaskResult",
    "tasks/result": "CallToolResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
}


async def test_every_message_about_tasks_is_valid() -> None:
    def check(value: Any, wire_type: str) -> None:
        assert faults(value, wire_type, R2025_11_25) == [], (wire_type, value)

    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    options = core(elicitation=lambda _: YES, sampling=lambda _: said, log_level="debug")
    async with connect_memory(sample.make(), **options) as client:
        await client.list_tools()
        for tool in ("work", "count", "fail", "break_down", "steps", "ask_both", "ask_model", "only_as_task"):
            task = await begin(client, tool, _meta={"progressToken": tool})
            await get(client, task)
            try:
                await client.request("tasks/result", {"taskId": task["taskId"]})
            except McpError:
                assert tool == "break_down"
            await get(client, task)
        task = await begin(client, "work")
        await until(client, task, "input_required")
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        await client.request("tasks/list")
        entries = list(client.transcript)
    methods = {
        entry.message["id"]: entry.message["method"]
        for entry in entries
        if "method" in entry.message and "id" in entry.message and entry.direction == "sent"
    }
    checked: dict[str, int] = {}
    for entry in entries:
        message = entry.message
        if entry.direction == "sent":
            continue
        check(message, "JSONRPCMessage")
        if "result" in message:
            kind = RESULTS.get(methods[message["id"]], "Result")
            check(message["result"], kind)
        elif "method" in message:
            kind = "ServerRequest" if "id" in message else "ServerNotification"
            check(message, kind)
            kind = message["method"]
        else:
            kind = "error"
        checked[kind] = checked.get(kind, 0) + 1
    assert set(checked) >= {*RESULTS.values(), "notifications/tasks/status", "elicitation/create", "error"}
    assert checked["notifications/tasks/status"] >= 9
