"""What handlers raise that is no Exception, or has no text: every call is answered, and nothing is held up by it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mcpfactory_runtime import Server, ToolError
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST, Revision
from tests.runtime.transports.conftest import Process, hello, request
from tests.runtime.wire.raw_client import Json, speak
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


class BaseError(BaseException):
    """What only a BaseException is."""


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
    server.tool("in_time", timeout=TIMEOUT)(fail_async)
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
    words = f"The tool {tool} failed because of an internal error; see the server's log."
    assert result["content"] == [{"type": "text", "text": words}]


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
