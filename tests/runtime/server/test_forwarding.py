"""Tool calls that are sent on without a task: answered, cancelled, handled after all, counted, and waited for at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server, ToolError
from mcpfactory_runtime.protocol.connection import Call
from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.server.forwarding import Forward
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.server.session import Session
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio

HELLO = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


class Elsewhere:
    """Keeps the calls that were sent on, until somebody answers them."""

    def __init__(self) -> None:
        self.sent: list[Forward] = []
        self.withdrawn: list[Any] = []
        self.arrived = asyncio.Event()
        self.away = False

    def ready(self, _call: Call) -> bool:
        return not self.away

    def send(self, forward: Forward) -> None:
        self.sent.append(forward)
        forward.withdraw = lambda: self.withdrawn.append(forward.call.id)
        self.arrived.set()


def forwarding(**options: Any) -> tuple[Server, Elsewhere]:
    """A server with one tool, which is elsewhere; its handler says so when it is asked after all."""
    server, elsewhere = Server("here", **options), Elsewhere()

    @server.tool
    async def echo(text: str, ctx: Context) -> str:
        """Say it."""
        return f"handled {text} {ctx.request_state.get('seen', '')}"

    server.registry.tools["echo"].forwarder = elsewhere
    server.registry.forwards = True
    return server, elsewhere


class Line:
    """A client of a server on a message stream, which writes and reads by hand."""

    def __init__(self, server: Server) -> None:
        self.answers: list[dict[str, Any]] = []
        self.session = Session(server, lambda data: self.answers.append(json.loads(data)))
        self.say("initialize", HELLO)
        self.say("notifications/initialized", {}, None)
        self.answers.clear()

    def say(self, method: str, params: dict[str, Any], number: int | None = 0) -> None:
        identity = {} if number is None else {"id": number}
        self.session.feed(json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode())

    def echo(self, number: int, text: str = "x") -> None:
        self.say("tools/call", {"name": "echo", "arguments": {"text": text}}, number)


async def line(work: Callable[[Line, Elsewhere], Awaitable[None]], **options: Any) -> None:
    server, elsewhere = forwarding(**options)
    async with server.running():
        client = Line(server)
        await work(client, elsewhere)
        await client.session.close(0)


async def test_calls_are_answered_in_the_order_of_their_answers_and_no_task_waits_for_them() -> None:
    async def work(client: Line, elsewhere: Elsewhere) -> None:
        before = asyncio.all_tasks()
        for number in range(1, 51):
            client.echo(number)
        assert asyncio.all_tasks() == before
        for forward in reversed(elsewhere.sent):
            forward.answer(said(f"to {forward.call.id}"))
        assert [(one["id"], one["result"]["content"][0]["text"]) for one in client.answers] == [
            (number, f"to {number}") for number in range(50, 0, -1)
        ]
        assert asyncio.all_tasks() == before

    await line(work)


async def test_a_cancelled_call_is_withdrawn_and_what_comes_later_goes_nowhere() -> None:
    async def work(client: Line, elsewhere: Elsewhere) -> None:
        client.echo(7)
        client.say("notifications/cancelled", {"requestId": 7}, None)
        assert elsewhere.withdrawn == [7]
        elsewhere.sent[0].answer(said("late"))
        elsewhere.sent[0].answer(None)
        assert client.answers == []

    await line(work)


async def test_the_handler_answers_where_no_result_came_and_knows_what_did() -> None:
    async def work(client: Line, elsewhere: Elsewhere) -> None:
        client.echo(1, "question")
        elsewhere.sent[0].context.request_state["seen"] = "before"
        elsewhere.sent[0].answer(None)
        await client.session.wait_idle()
        (answer,) = client.answers
        assert answer["result"]["content"][0]["text"] == "handled question before"

    await line(work)


async def test_nothing_goes_past_middleware() -> None:
    class No(Middleware):
        async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Any:
            raise ToolError("not today")

    server, elsewhere = forwarding()
    server.add_middleware(No())
    async with connect(server) as client:
        result = await client.call_tool("echo", {"text": "x"})
    assert result["content"][0]["text"] == "not today"
    assert elsewhere.sent == []
