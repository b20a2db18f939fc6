"""`def` tools that need nothing but a thread: their answers, failures, cancellations and the end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from mcpfactory_runtime import Context, McpError, Server, ToolError
from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.server.middleware.layers import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.session import Session
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
HELLO = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Line:
    """A client of a server in this process; counts the tasks that the server makes."""

    def __init__(self, server: Server) -> None:
        self.answers: list[dict[str, Any]] = []
        self.tasks = 0
        self._answered = asyncio.Event()
        self.session = Session(server, self._take)
        self.say("initialize", HELLO)
        self.say("notifications/initialized", {}, None)
        self.answers.clear()
        asyncio.get_running_loop().set_task_factory(self._count)

    def say(self, method: str, params: dict[str, Any], number: int | None = 0) -> None:
        identity = {} if number is None else {"id": number}
        self.session.feed(json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode())

    def call(self, tool: str, number: int = 1, **arguments: Any) -> None:
        self.say("tools/call", {"name": tool, "arguments": arguments}, number)

    async def told(self, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(TIMEOUT):
            while len(self.answers) < count:
                self._answered.clear()
                await self._answered.wait()
        return self.answers

    async def text(self, tool: str, **arguments: Any) -> str:
        self.answers.clear()
        self.call(tool, **arguments)
        (answer,) = await self.told()
        return str(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"])

    def _take(self, data: bytes) -> None:
        message = json.loads(data)
        if "id" in message:
            self.answers.append(message)
            self._answered.set()

    def _count(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        self.tasks += 1
        return asyncio.Task(work, loop=loop, **options)


@pytest.fixture
def server() -> Server:
    server = Server("plain")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail(how: str) -> str:
        errors: dict[str, BaseException] = {
            "told": ToolError("no such note"),
            "secret": RuntimeError("password"),
            "refused": McpError(-31000, "odd"),
            "left": SystemExit("left"),
            "stopped": StopIteration("stopped"),
        }
        raise errors[how]

    @server.tool
    def where(ctx: Context) -> str:
        return ctx.revision

    return server


@pytest.fixture
async def line(server: Server) -> AsyncIterator[Line]:
    async with server.running():
        made = Line(server)
        yield made
        await made.session.close(1)
        asyncio.get_running_loop().set_task_factory(None)


async def test_a_cancelled_call_is_not_answered_and_does_not_begin_if_it_has_not(server: Server, line: Line) -> None:
    begun, gate, ran = threading.Event(), threading.Event(), []

    @server.tool
    def hold(name: str) -> str:
        ran.append(name)
        begun.set()
        gate.wait(TIMEOUT)
        return name

    line.call("hold", 1, name="running")
    await asyncio.to_thread(begun.wait, TIMEOUT)
    line.call("hold", 2, name="waiting")
    for number in (2, 1):
        line.say("notifications/cancelled", {"requestId": number}, None)
    gate.set()
    line.call("add", 3, a=1, b=1)
    assert [one["id"] for one in await line.told()] == [3]
    assert ran == ["running"]


class Around(Middleware):
    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Any:
        result = await call_next(call)
        return {**result, "content": [{"type": "text", "text": "around"}]}


async def _with_middleware(server: Server, line: Line) -> str:
    server.add_middleware(Around())
    return await line.text("add", a=1, b=1)


async def _with_context(_server: Server, line: Line) -> str:
    return await line.text("where")


@pytest.mark.parametrize(("way", "said"), [(_with_middleware, "around"), (_with_context, LATEST_LEGACY.name)])
async def test_what_needs_more_goes_the_longer_way(
    server: Server, line: Line, way: Callable[..., Any], said: str
) -> None:
    assert await way(server, line) == said
