"""What handlers raise that is no Exception, or has no text: every call is answered, and nothing is held up by it."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcpfactory_runtime import Server, ToolError
from mcpfactory_runtime.protocol.connection import Connection
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, Revision
from mcpfactory_runtime.server.middleware import Middleware
from tests.patience import PATIENCE
from tests.runtime.transports.conftest import Process, hello, request
from tests.runtime.wire.speech import Json, speak, web

pytestmark = pytest.mark.anyio


class BaseError(BaseException):
    """What only a BaseException is."""


class UntoldError(ToolError):
    def __str__(self) -> str:
        raise BaseError("no text")


RAISED: dict[str, Callable[[], BaseException]] = {
    "own": BaseError,
    "exit": lambda: SystemExit(3),
    "generator": GeneratorExit,
    "group": lambda: BaseExceptionGroup("several", [BaseError()]),
}


def failing(raised: Callable[[], BaseException]) -> Server:
    """A server all of whose handlers raise the same."""
    server = Server("failing")

    def fail() -> Any:
        raise raised()

    async def fail_async() -> Any:
        raise raised()

    async def complete(ref: Any, argument: Any) -> list[str]:
        raise raised()

    server.tool("in_thread")(fail)
    server.tool("inline", inline=True)(fail)
    server.tool("on_loop")(fail_async)
    server.tool("in_time", timeout=PATIENCE)(fail_async)
    server.prompt("prompt")(fail_async)
    server.resource("failing://resource", name="resource")(fail)
    server.completion(complete)
    return server


@pytest.mark.parametrize("tool", ["in_thread", "inline", "on_loop", "in_time"])
@pytest.mark.parametrize("raised", RAISED)
async def test_a_tool_that_raises_what_is_no_exception_is_answered_like_one_that_raises_any(
    revision: Revision, raised: str, tool: str
) -> None:
    async with speak(failing(RAISED[raised]), revision) as client:
        result = await client.call(tool)
        assert client.stream.session.connection.in_flight == {}
    assert result["isError"] is True
    words = f"The tool {tool} failed because of an internal error; the server's log says more."
    assert result["content"] == [{"type": "text", "text": words}]


async def test_what_closes_the_coroutines_that_wait_is_answered_too(revision: Revision) -> None:
    server = Server("failing")

    @server.tool
    async def closes() -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, GeneratorExit())
        await future

    async with speak(server, revision) as client:
        assert await client.code("tools/call", {"name": "closes"}) == INTERNAL_ERROR
        assert client.stream.session.connection.in_flight == {}


@pytest.mark.parametrize("raised", RAISED)
async def test_so_are_prompts_resources_and_completion_by_an_error(revision: Revision, raised: str) -> None:
    asked: list[tuple[str, Json]] = [
        ("prompts/get", {"name": "prompt"}),
        ("resources/read", {"uri": "failing://resource"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "a", "value": ""}},
        ),
    ]
    async with speak(failing(RAISED[raised]), revision) as client:
        for method, params in asked:
            assert await client.code(method, params) == INTERNAL_ERROR
        assert client.stream.session.connection.in_flight == {}


@pytest.mark.parametrize("around", ["on_request", "on_tool"])
async def test_middleware_may_raise_such_a_thing_too(revision: Revision, around: str) -> None:
    async def raise_it(self: Any, subject: Any, call_next: Any) -> Json:
        raise BaseError

    server = Server("failing")
    server.tool("fine")(lambda: "fine")
    server.add_middleware(type("Failing", (Middleware,), {around: raise_it})())
    async with speak(server, revision) as client:
        answer = await client.ask("tools/call", {"name": "fine"})
        assert client.stream.session.connection.in_flight == {}
    if around == "on_tool":
        assert answer["result"]["isError"] is True
    else:
        assert answer["error"]["code"] == INTERNAL_ERROR


@pytest.mark.parametrize("tool", ["in_thread", "inline", "on_loop"])
async def test_over_http_it_is_a_result_in_both_lifecycles(tool: str) -> None:
    async with web(failing(BaseError), max_requests=2) as http:
        session = await http.begin(LATEST_LEGACY)
        for _ in range(3):  # one more than have room
            modern = await http.ask(LATEST, "tools/call", {"name": tool})
            assert modern.status == 200
            assert (await modern.json())["result"]["isError"] is True
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
            in_session = await http.post(call, mcp_session_id=session)
            assert (await in_session.messages())[-1]["result"]["isError"] is True


async def test_a_handler_that_cancels_itself_is_answered_over_http() -> None:
    async with web(failing(asyncio.CancelledError)) as http:
        for tool in ("in_thread", "inline", "on_loop"):
            answer = await http.ask(LATEST, "tools/call", {"name": tool})
            assert (answer.status, (await answer.json())["error"]["code"]) == (200, INTERNAL_ERROR)


async def test_a_part_that_is_mounted_answers_so_too(revision: Revision) -> None:
    whole = Server("whole")
    whole.mount(failing(BaseError), "part")
    async with speak(whole, revision) as client:
        assert (await client.call("part_on_loop"))["isError"] is True


@pytest.mark.parametrize("kind", ["in_thread", "inline", "on_loop"])
async def test_an_error_for_the_model_without_a_text_is_named_by_its_class(revision: Revision, kind: str) -> None:
    async with speak(failing(lambda: UntoldError("x")), revision) as client:
        result = await client.call(kind)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "UntoldError"}]


async def test_answers_that_arrive_together_with_one_that_cannot_be_taken_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = threading.Barrier(4, timeout=PATIENCE)
    server = Server("neighbours")

    @server.tool
    def meet(number: int) -> int:
        together.wait()
        return number

    answer = Connection.answer

    def refuse_two(connection: Connection, call: Any, outcome: Any) -> bytes:
        if call.params["arguments"] == {"number": 2}:
            raise BaseError
        return answer(connection, call, outcome)

    async with speak(server, LATEST_LEGACY) as client:
        monkeypatch.setattr(Connection, "answer", refuse_two)
        calls = [client.make("tools/call", {"name": "meet", "arguments": {"number": n}}) for n in range(1, 5)]
        await client.say(*calls)
        answered = {(await client.hear())["id"] for _ in range(3)}
        assert answered == {call["id"] for call in calls} - {calls[1]["id"]}
        monkeypatch.undo()


INTERRUPTED = """
from mcpfactory_runtime import Server
server = Server("interrupted")
def interrupt(): raise KeyboardInterrupt
async def interrupt_async(): raise KeyboardInterrupt
server.tool("in_thread")(interrupt)
server.tool("inline", inline=True)(interrupt)
server.tool("on_loop")(interrupt_async)
server.run()
"""


def test_an_interrupt_that_a_handler_raises_ends_no_server() -> None:
    server = Process([sys.executable, "-c", INTERRUPTED])
    with server.process:
        server.ask(hello())
        for number, tool in enumerate(("in_thread", "inline", "on_loop"), 1):
            assert server.ask(request("tools/call", {"name": tool}, number))["result"]["isError"] is True
        assert server.end() == 0
        assert server.errors().count("KeyboardInterrupt\n") == 3


def test_the_text_of_an_error_is_always_one_that_json_can_hold() -> None:
    async def ask() -> Json:
        async with speak(failing(lambda: ToolError("a\ud800b")), LATEST) as client:
            return {"result": await client.call("on_loop"), "thread": await client.call("in_thread")}

    told = asyncio.run(ask())
    assert told["result"]["content"] == told["thread"]["content"] == [{"type": "text", "text": "a?b"}]
    assert json.dumps(told)
