"""Middleware: around requests and tools, of every kind and however they are called; and the ready ones."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from mcpfactory_runtime import Context, McpError, Middleware, Request, Server, ToolError, ToolRequest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.server.middleware import Caching, ErrorShaping, Logging, NextRequest, RateLimit, Retry
from mcpfactory_runtime.types import Json
from tests.runtime.server.generated_package import use

BOTH = [LATEST.name, LATEST_LEGACY.name]


def make_server() -> Server:
    server = Server("notes")

    @server.tool(annotations={"readOnlyHint": True})
    def double(number: int) -> int:
        return number * 2

    @server.tool
    async def outer(number: int, ctx: Context) -> int:
        return int((await ctx.call("double", number=number))["result"])

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    return server


def text_of(result: Any) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("revision", BOTH)
def test_the_first_that_was_added_is_the_outermost_and_may_change_arguments_and_results(revision: str) -> None:
    server, seen = make_server(), []

    @server.tool_middleware
    async def first(call: ToolRequest, call_next: Any) -> Json:
        seen.append(("first", dict(call.arguments)))
        result: Json = await call_next(call)
        return {**result, "content": [*result["content"], {"type": "text", "text": "checked"}]}

    @server.tool_middleware("double")
    async def second(call: ToolRequest, call_next: Any) -> Json:
        call.arguments["number"] += 1
        seen.append(("second", dict(call.arguments)))
        result: Json = await call_next(call)
        return result

    async def task(client: Client) -> list[str]:
        return [block["text"] for block in (await client.call_tool("double", {"number": 1}))["content"]]

    assert use(server, task, revision=revision) == ["4", "checked"]
    assert seen == [("first", {"number": 1}), ("second", {"number": 2})]


def test_middleware_of_a_tool_is_around_calls_by_other_tools_too() -> None:
    server, seen = make_server(), []

    @server.tool_middleware("double")
    async def watch(call: ToolRequest, call_next: Any) -> Json:
        seen.append(call.name)
        if call.arguments["number"] > 100:
            raise ToolError("Too much.")
        result: Json = await call_next(call)
        return result

    async def task(client: Client) -> tuple[str, str]:
        good = await client.call_tool("outer", {"number": 3})
        bad = await client.call_tool("outer", {"number": 300})
        return text_of(good), text_of(bad)

    assert use(server, task) == ("6", "Too much.")
    assert seen == ["double", "double"]


@pytest.mark.parametrize("revision", BOTH)
def test_middleware_of_requests_may_hide_what_a_list_has_and_refuse(revision: str) -> None:
    server = make_server()

    @server.middleware("tools/list")
    async def hide(request: Request, call_next: NextRequest) -> Json:
        result = await call_next(request)
        return {**result, "tools": [tool for tool in result["tools"] if tool["name"] != "outer"]}

    @server.middleware("resources/read")
    async def refuse(request: Request, call_next: NextRequest) -> Json:
        if request.params["uri"] == "notes://secret":
            raise McpError(INVALID_REQUEST, "not for you")
        return await call_next(request)

    async def task(client: Client) -> tuple[list[str], str, int]:
        listed = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
        read = (await client.request("resources/read", {"uri": "notes://a"}))["contents"][0]["text"]
        with pytest.raises(McpError) as refused:
            await client.request("resources/read", {"uri": "notes://secret"})
        return listed, read, refused.value.code

    assert use(server, task, revision=revision) == (["double"], "note a", INVALID_REQUEST)


@pytest.mark.parametrize("revision", BOTH)
def test_middleware_may_ask_the_user_and_so_may_the_tool_behind_it(revision: str) -> None:
    server = Server("asking")
    messages: list[str] = []

    @server.tool
    async def pay(ctx: Context) -> str:
        return str((await ctx.elicit("how much?", {"type": "object", "properties": {"x": {"type": "string"}}})).content)

    @server.middleware("tools/call")
    async def consent(request: Request, call_next: NextRequest) -> Json:
        asked = await request.context.elicit("sure?", {"type": "object", "properties": {"x": {"type": "string"}}})
        messages.append(str(asked.content))
        return await call_next(request)

    async def answer(params: Json) -> Json:
        return {"action": "accept", "content": {"x": params["message"]}}

    async def task(client: Client) -> str:
        return text_of(await client.call_tool("pay"))

    assert use(server, task, revision=revision, elicitation=answer) == "{'x': 'how much?'}"
    assert set(messages) == {"{'x': 'sure?'}"}


def test_middleware_and_handler_share_what_they_keep_for_a_request() -> None:
    server = Server("shared")

    @server.tool
    def who(ctx: Context) -> str:
        ctx.session_state["calls"] = ctx.session_state.get("calls", 0) + 1
        return f"{ctx.request_state['user']} {ctx.session_state['calls']}"

    @server.middleware
    async def login(request: Request, call_next: NextRequest) -> Json:
        assert request.context.request_state == {}
        request.context.request_state["user"] = "Ada"
        return await call_next(request)

    async def task(client: Client) -> list[str]:
        return [text_of(await client.call_tool("who")) for _ in range(2)]

    assert use(server, task) == ["Ada 1", "Ada 2"]


def test_what_cannot_be_middleware_is_refused_with_a_hint() -> None:
    server = make_server()
    with pytest.raises(TypeError, match="async def plain"):

        @server.tool_middleware
        def plain(call: ToolRequest, call_next: Any) -> None: ...

    with pytest.raises(ValueError, match="tools/lits") as unknown:
        server.middleware("tools/lits")(_pass)
    assert "tools/list" in str(unknown.value)
    with pytest.raises(TypeError, match="neither on_request nor on_tool"):
        server.add_middleware(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="neither"):
        server.add_middleware(Middleware())


def test_a_forgotten_return_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server = make_server()

    @server.tool_middleware
    async def forgets(call: ToolRequest, call_next: Any) -> None:
        await call_next(call)

    async def task(client: Client) -> bool:
        return bool((await client.call_tool("double", {"number": 1}))["isError"])

    assert use(server, task)
    assert "forgets returned NoneType" in caplog.text


async def _pass(call: Any, call_next: Any) -> Any:
    return await call_next(call)


# -- ready ones ------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Flaky:
    """A server whose tools count their calls, and fail at the first ones."""

    def __init__(self, failures: int = 0) -> None:
        self.calls = 0
        self.failures = failures
        self.server = Server("flaky")
        self.server.tool(annotations={"readOnlyHint": True})(self.read)
        self.server.tool(self.write)

    def read(self, key: str = "", other: int = 0) -> str:
        """Read."""
        return self._work()

    def write(self) -> str:
        """Write."""
        return self._work()

    def _work(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("secret host is down")
        return f"call {self.calls}"

    def texts(self, *calls: tuple[str, Json]) -> list[str]:
        async def task(client: Client) -> list[str]:
            return [text_of(await client.call_tool(name, given)) for name, given in calls]

        found: list[str] = use(self.server, task)
        return found


def test_caching_keeps_results_of_reading_tools_for_their_time() -> None:
    flaky, clock = Flaky(), Clock()
    flaky.server.add_middleware(Caching(60, clock=clock))

    @flaky.server.tool(annotations={"readOnlyHint": True})
    def later() -> str:
        clock.now += 61
        return "later"

    same: list[tuple[str, Json]] = [("read", {"key": "a", "other": 1}), ("read", {"other": 1, "key": "a"})]
    assert flaky.texts(*same) == ["call 1", "call 1"]
    assert flaky.texts(("read", {"key": "b"}), ("write", {}), ("write", {})) == ["call 2", "call 3", "call 4"]
    assert flaky.texts(("later", {}), *same) == ["later", "call 5", "call 5"]


def test_retry_calls_again_what_may_be_called_again() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    flaky = Flaky(failures=2)
    flaky.server.add_middleware(Retry(3, 0.5, sleep=sleep))
    assert flaky.texts(("read", {})) == ["call 3"]
    assert waits == [0.5, 1.0]
    flaky.calls = 0
    assert "failed" in flaky.texts(("write", {}))[0]
    assert flaky.calls == 1


def test_a_rate_limit_of_a_tool_holds_for_each_client() -> None:
    flaky, clock = Flaky(), Clock()
    flaky.server.add_middleware(RateLimit({"read": "2/m"}, clock=clock))
    found = flaky.texts(*[("read", {})] * 3, ("write", {}))
    assert found[:2] == ["call 1", "call 2"]
    assert "2 calls in 60 s; try again in 30 s" in found[2]
    assert found[3] == "call 3"
    clock.now = 30
    assert flaky.texts(("read", {})) == ["call 4"]
    with pytest.raises(ValueError, match="5/x"):
        RateLimit({"": "5/x"})


def test_words_for_exceptions_are_the_authors() -> None:
    flaky = Flaky(failures=2)
    flaky.server.add_middleware(ErrorShaping({ConnectionError: "The shop is closed.", ValueError: str}))
    found = flaky.texts(("read", {}), ("read", {"other": "x"}))
    assert found[0] == "The shop is closed."
    assert "other" in found[1]  # what is wrong with arguments stays as it is


def test_logging_writes_a_line_of_json_for_each(caplog: pytest.LogCaptureFixture) -> None:
    flaky = Flaky(failures=1)
    flaky.server.add_middleware(Logging(arguments=True, clock=Clock()))
    with caplog.at_level(logging.INFO, "mcpfactory_runtime.requests"):
        flaky.texts(("read", {"key": "a"}))
    lines = [json.loads(record.message) for record in caplog.records if record.name.endswith(".requests")]
    tool = next(line for line in lines if "tool" in line)
    request = next(line for line in lines if line.get("method") == "tools/call")
    assert (tool["tool"], tool["arguments"], tool["outcome"]) == ("read", {"key": "a"}, "ConnectionError")
    assert (request["outcome"], request["ms"], request["id"]) == ("failed", 0.0, tool["id"])
